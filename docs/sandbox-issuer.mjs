// A sample back office for `partner-voucher-conformance --product`. It reads one step as JSON from standard input and
// prints its result as JSON.
import { text } from "node:stream/consumers";

const { step, api, key, order, product, count, validUntil, code } = JSON.parse(await text(process.stdin));

/** Sends a call until it has a final response. Every call here may be repeated. */
async function call(path, body) {
  for (;;) {
    // A redirect would send the key to another address.
    const options = { headers: { "X-Api-Key": key }, redirect: "manual", signal: AbortSignal.timeout(60_000) };
    options.cache = "no-store";
    if (body !== undefined) Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    if (body !== undefined) options.headers["Content-Type"] = "application/json";
    const response = await fetch(`${api}/issuer${path}`, options).catch(() => null);
    const answer = await response?.json().catch(() => null);
    if (answer && response.ok) return { ok: true, answer };
    // An answer without the service's code is a proxy's: the outcome is unknown.
    const isService = [answer?.code, answer?.error].every((each) => typeof each === "string");
    if (isService && response.status < 500 && ![408, 429].includes(response.status)) return { ok: false, answer };
    await new Promise((resolve) => setTimeout(resolve, 1000 * (Number(response?.headers.get("retry-after")) || 1)));
  }
}

async function issue() {
  // The same reference for every attempt of this order.
  const { ok, answer } = await call(`/products/${product}/batches`, { issueRef: `order-${order}`, count, validUntil });
  // Another batch: the reference belongs to an older order.
  if (!ok || answer.otherBatch) return { outcome: "refused" };
  const codes = [];
  for (let cursor = ""; cursor !== null; ) {
    const page = await call(`/batches/${answer.id}/vouchers?limit=1000${cursor && `&cursor=${cursor}`}`);
    codes.push(...page.answer.items.map((voucher) => voucher.code));
    cursor = page.answer.nextCursor;
  }
  return { outcome: "issued", codes };
}

async function voidVoucher() {
  const { ok } = await call("/vouchers/void", { code, reason: `returned, order ${order}` });
  return { outcome: ok ? "voided" : "refused" };
}

/** What was stolen is suspended, and resumed once it is found. A customer who was ill gets a later end. */
async function change(verb, body = {}) {
  const { ok } = await call(`/vouchers/${verb}`, { code, ...body });
  return { outcome: ok ? `${verb.replace(/e$/, "")}ed` : "refused" };
}

const steps = {
  issue,
  void: voidVoucher,
  suspend: () => change("suspend", { reason: `stolen, order ${order}` }),
  resume: () => change("resume"),
  extend: () => change("extend", { validUntil }),
};
console.log(JSON.stringify(await steps[step]()));
