// A client of the Partner Voucher API without any package. docs/clients.md shows how to use it.

/** The service refused the call; repeating it unchanged would not help. `code` is for programs, the message for people. */
export class VoucherRefused extends Error {
  constructor(status, { error, code, requestId }) {
    super(error);
    Object.assign(this, { status, code, requestId });
  }
}

/** No final response before the time limit. Keep the reference and repeat the call later. */
export class OutcomeUnknown extends Error {}

/** The reference has redeemed another voucher. The voucher of this call was not redeemed: do not deliver. */
export class ReferenceReused extends Error {
  constructor(externalRef, redemption) {
    super(`${externalRef} has redeemed another voucher. Do not deliver.`);
    this.redemption = redemption;
  }
}

/** What waiting does not change: an unknown host, a wrong certificate, protocol or address. */
const LASTING = /ENOTFOUND|EPROTO|ERR_SSL|CERT|UNABLE_TO_|ERR_INVALID/;

/**
 * The calls of one key. Each call is retried after a network error, a 408, 429, 5xx, or an answer that is not the
 * service's, for at most `patienceMs`.
 */
export function voucherClient(api, key, patienceMs = 60_000) {
  const base = api.replace(/\/+$/, "");
  async function call(method, path, body) {
    const giveUpAt = Date.now() + patienceMs;
    for (let attempt = 0; ; attempt++) {
      let waitMs = Math.min(1000 * 2 ** attempt, 8000);
      let cause;
      try {
        const response = await fetch(`${base}/partner/${path}`, {
          method,
          headers: { "X-Api-Key": key, "Content-Type": "application/json" },
          body: JSON.stringify(body),
          cache: "no-store", // Some frameworks keep the answers of fetch.
          redirect: "manual", // A redirect would send the key to another address.
          signal: AbortSignal.timeout(15_000),
        });
        const { ok, status } = response;
        const retryAfter = Number(response.headers.get("retry-after"));
        if (retryAfter > 0) waitMs = retryAfter * 1000;
        const answer = await response.json();
        if (ok && answer) return answer;
        // An answer without the service's code is a proxy's: it says nothing about the voucher.
        const isRefusal = [answer?.code, answer?.error].every((text) => typeof text === "string");
        if (isRefusal && status < 500 && status !== 408 && status !== 429) throw new VoucherRefused(status, answer);
      } catch (error) {
        if (error instanceof VoucherRefused) throw error;
        cause = error; // No response, an incomplete one, or no JSON.
      }
      waitMs *= 1 + Math.random() / 2;
      if (Date.now() + waitMs > giveUpAt || LASTING.test(cause?.cause?.code))
        throw new OutcomeUnknown(`${method} ${path} got no final answer: ${cause?.cause ?? cause}`, { cause });
      await new Promise((resolve) => setTimeout(resolve, waitMs));
    }
  }
  const segment = encodeURIComponent;
  return {
    lookUp: (codeOrTicket) => call("GET", `vouchers/${segment(codeOrTicket)}`),
    events: (codeOrTicket) => call("GET", `vouchers/${segment(codeOrTicket)}/events`),
    reserve: (code) => call("POST", "vouchers/reserve", { code }),
    async redeem(order) {
      const redemption = await call("POST", "vouchers/redeem", order);
      if (redemption.otherVoucher) throw new ReferenceReused(order.externalRef, redemption);
      return redemption;
    },
    release: (ticket, reason) => call("POST", "vouchers/release", { ticket, reason }),
    redemptions: (query) => call("GET", `redemptions?${new URLSearchParams(query)}`),
  };
}
