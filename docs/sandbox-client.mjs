// A sample client for `voucherctl sandbox check`: the checkout of a small shop. docs/sandbox.md describes the steps.
// It reads one step as JSON from standard input and prints its result as JSON.
import { text } from "node:stream/consumers";

const { step, api, key, order, code, codes, state } = JSON.parse(await text(process.stdin));
const PATIENCE_MS = 30_000;

/** No final response within the time limit. The shop keeps the order and runs the step again later. */
class OutcomeUnknown extends Error {}

/** Sends one call until it gets a final response: the result of a 2xx, or the error of a 4xx. */
async function call(method, path, body) {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (let attempt = 0; ; attempt++) {
    let waitMs = Math.min(1000 * 2 ** attempt, 8000);
    try {
      const response = await fetch(`${api}/partner/vouchers/${path}`, {
        method,
        headers: { "X-Api-Key": key, "Content-Type": "application/json" },
        body: JSON.stringify(body),
        cache: "no-store",
        redirect: "manual", // A redirect would send the key to another address.
        signal: AbortSignal.timeout(15_000),
      });
      const retryAfter = Number(response.headers.get("retry-after"));
      if (retryAfter > 0) waitMs = retryAfter * 1000;
      const { status } = response;
      const answer = await response.json();
      if (response.ok && answer) return { ok: true, answer };
      const isService = [answer?.code, answer?.error].every((each) => typeof each === "string");
      if (!isService) throw new Error("This answer is a proxy's.");
      // A daily limit lasts until midnight.
      const isFinal = answer.code === "cap_reached" || ![408, 429].includes(status);
      if (status < 500 && isFinal) return { ok: false, answer: { ...answer, status } };
    } catch {
      // No response, or an incomplete one. The outcome is unknown, so the same call is sent again.
    }
    waitMs *= 1 + Math.random() / 4;
    if (Date.now() + waitMs > giveUpAt) throw new OutcomeUnknown();
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Only a 409 and these prove that nothing was redeemed. After others, an earlier run may have redeemed it. */
function refused({ status, code: reason }) {
  if (status !== 409 && !["voucher_not_found", "cap_reached"].includes(reason)) throw new OutcomeUnknown();
  return { outcome: "refused", reason };
}

/** Redeems the voucher under the order's reference. */
async function redeem() {
  const seen = await call("GET", encodeURIComponent(code));
  if (!seen.ok) return refused(seen.answer);
  // The same reference for every attempt of this order. By the code, the order's reservation does not matter.
  const externalRef = `shop-${order}`;
  const { ok, answer } = await call("POST", "redeem", { code, externalRef });
  if (!ok) return refused(answer);
  // Another voucher: the reference belongs to an older order. This voucher is not redeemed.
  if (answer.voucherInstanceId !== seen.answer.voucher.id) return { outcome: "refused", reason: "reference_reused" };
  // alreadyConfirmed: true is a success too.
  return { outcome: "redeemed", redeemCode: answer.redeemCode };
}

async function reserve() {
  const { ok, answer } = await call("POST", "reserve", { code });
  return ok ? { outcome: "reserved", state: { ticket: answer.ticket } } : refused(answer);
}

async function cancel() {
  await call("POST", "release", { ticket: state.ticket, reason: "customer left" });
  return { outcome: "released" };
}

/** What the shop stores of an order with several vouchers before the payment. A later run continues with it. */
let stored = state;

/** Reserves every voucher of the order, or none. Then redeems each by its ticket, under a reference of its own. */
async function redeemAll() {
  const tickets = stored?.tickets ?? [];
  for (const each of codes.slice(tickets.length)) {
    const { ok, answer } = await call("POST", "reserve", { code: each });
    if (ok && !tickets.includes(answer.ticket)) {
      tickets.push(answer.ticket);
      continue;
    }
    for (const ticket of tickets) await call("POST", "release", { ticket, reason: "another voucher was refused" });
    return ok ? { outcome: "refused", reason: "entered_twice" } : refused(answer);
  }
  stored = { tickets };
  const redeemCodes = [];
  for (const [index, ticket] of tickets.entries()) {
    const { ok, answer } = await call("POST", "redeem", { ticket, externalRef: `shop-${order}-${index + 1}` });
    if (!ok) refused(answer); // Throws unless this proves that nothing was redeemed.
    // What is redeemed stays redeemed when another voucher is refused.
    redeemCodes.push(ok && !answer.otherVoucher ? answer.redeemCode : null);
  }
  const count = redeemCodes.filter((each) => each !== null).length;
  const outcome = count === codes.length ? "redeemed" : count > 0 ? "partly" : "refused";
  return { outcome, redeemCodes, state: stored };
}

const STEPS = { checkout: redeem, pay: redeem, reserve, cancel, basket: redeemAll };

try {
  const run = STEPS[step];
  console.log(JSON.stringify(run ? await run() : { outcome: "unsupported" }));
} catch (error) {
  if (!(error instanceof OutcomeUnknown)) throw error;
  console.log(JSON.stringify({ outcome: "unknown", state: stored }));
}
