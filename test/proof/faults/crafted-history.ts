import { type Ask, type AskFor, type Exchange, History, restoreReferences } from "./history.ts";
import type { Failure } from "./http-call.ts";

// Hand-made histories for the tests of the rules.

const key = { id: "key_till", secret: "", organizationId: "org_1" };
const otherKey = { ...key, id: "key_web" };
const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
const elsewhere = { ...voucher, id: "vch_2" };
const redeem: AskFor<"redeem"> = {
  operation: "redeem",
  key,
  voucher,
  externalRef: "order-1",
  by: { code: "CODE" },
  token: null,
};
const lookUp: Ask = { operation: "lookUp", key, voucher };
const reserve: Ask = { operation: "reserve", key, voucher };
const voids: Ask = { operation: "void", key, voucher };
/** Until two seconds. */
const extend: AskFor<"extend"> = { operation: "extend", key, voucher, validUntil: new Date(2_000).toISOString() };
const release: Ask = { operation: "release", key, voucher, ticket: "rsv_1" };
const offer = { productId: "prd_1", batchId: "bat_1", listingId: "lst_1", supply: 2 };
const claimOf = (id: string): Ask => ({ operation: "acquire", user: { id, token: "" }, offer, by: { claim: true } });
const listFrom = (ms: number): Ask => {
  return { operation: "list", key, from: new Date(ms).toISOString(), after: null, limit: 2 };
};

const batch = { id: "bat_1", vouchers: [voucher, elsewhere] };
const issue: Ask = { operation: "issue", key, productId: "prd_1", issueRef: "batch-1", count: 2 };
const codesOf: Ask = { operation: "codes", key, batchId: "bat_1", count: 2 };
const endsContract: Ask = { operation: "endContract", key, contractId: "ctr_1" };
const voidsBatch: Ask = { operation: "voidBatch", key, batch };
const erases: Ask = { operation: "erase", key, externalRef: "order-1", form: "erased:1" };

const AT = new Date(1_000).toISOString();
const LATER = new Date(5_000).toISOString();
const REDEMPTION = { voucherInstanceId: "vch_1", redeemCode: "R-1", redeemedAt: AT };
const FIRST = { ...REDEMPTION, alreadyConfirmed: false };
const ACTIVE = { id: "vch_1", status: "Active", redeemedAt: null, reservation: null };
const USED = { ...ACTIVE, status: "Redeemed", redeemedAt: AT };
const TYPES = ["voucher.instance.issued", "voucher.instance.redeemed"];
/** Reservations begin at 200 ms and end at 900 ms. */
const [STARTED, EXPIRES] = [new Date(200).toISOString(), new Date(900).toISOString()];
const ticketOf = (ticket: string) => ({ ticket, token: `token of ${ticket}`, expiresAt: EXPIRES, voucher: "vch_1" });
const heldBy = (ticket: string | null, expiresAt = EXPIRES) => ({
  ...ACTIVE,
  reservation: { ticket, heldByCaller: ticket !== null, startedAt: STARTED, expiresAt },
});

/** The requests, each with its answer's body or code, or the reason why no answer came. */
const ANSWERS: Record<string, [Ask, object | string]> = {
  redeemed: [redeem, FIRST],
  "redeemed otherwise": [
    { ...redeem, externalRef: "order-2" },
    { ...FIRST, redeemCode: "R-2" },
  ],
  "unknown otherwise": [{ ...redeem, externalRef: "order-2" }, "redeem_unknown"],
  capped: [{ ...redeem, externalRef: "order-3" }, "cap_reached"],
  "other key capped": [{ ...redeem, key: otherKey, externalRef: "order-3" }, "cap_reached"],
  "redeemed by another": [{ ...redeem, key: otherKey }, FIRST],
  "redeemed by its ticket": [{ ...redeem, by: { ticket: "rsv_1" } }, FIRST],
  "redeemed by another by its ticket": [{ ...redeem, key: otherKey, by: { ticket: "rsv_1" } }, FIRST],
  "redeemed by another with its token": [{ ...redeem, key: otherKey, token: "token of rsv_1" }, FIRST],
  "redeemed by another with a strange token": [{ ...redeem, key: otherKey, token: "strange" }, FIRST],
  "redeemed with a strange token": [{ ...redeem, token: "strange" }, FIRST],
  "redeemed by its ticket and token": [{ ...redeem, by: { ticket: "rsv_1" }, token: "token of rsv_1" }, FIRST],
  "redeemed by its ticket and a token of another": [
    { ...redeem, by: { ticket: "rsv_1" }, token: "token of rsv_2" },
    FIRST,
  ],
  "redeemed elsewhere": [
    { ...redeem, voucher: elsewhere },
    { ...FIRST, voucherInstanceId: "vch_2" },
  ],
  "unknown elsewhere": [{ ...redeem, voucher: elsewhere }, "redeem_unknown"],
  "timed out elsewhere": [{ ...redeem, voucher: elsewhere }, "redeem_timeout"],
  "other redeem gone": [{ ...redeem, key: otherKey, externalRef: "order-2" }, "timeout"],
  "ticket's redeem gone": [{ ...redeem, by: { ticket: "rsv_1" } }, "timeout"],
  mismatched: [{ ...redeem, key: otherKey, token: "token of rsv_1" }, "token_mismatch"],
  "mismatched by its ticket": [{ ...redeem, by: { ticket: "rsv_1" }, token: "token of rsv_1" }, "token_mismatch"],
  "mismatched by its ticket and a strange token": [
    { ...redeem, by: { ticket: "rsv_1" }, token: "strange" },
    "token_mismatch",
  ],
  repeated: [redeem, { ...REDEMPTION, alreadyConfirmed: true }],
  "repeated with another code": [redeem, { ...REDEMPTION, redeemCode: "R-2", alreadyConfirmed: true }],
  "timed out": [redeem, "redeem_timeout"],
  unknown: [redeem, "redeem_unknown"],
  gone: [redeem, "timeout"],
  refused: [redeem, "refused"],
  busy: [redeem, "voucher_busy"],
  "kept out": [{ ...redeem, key: otherKey }, "voucher_reserved"],
  ended: [{ ...redeem, by: { ticket: "rsv_1" } }, "reservation_ended"],
  found: [{ operation: "redemption", key, externalRef: "order-1" }, REDEMPTION],
  "not found": [{ operation: "redemption", key, externalRef: "order-1" }, "redemption_not_found"],
  "found under another": [
    { operation: "redemption", key, externalRef: "order-2" },
    { ...REDEMPTION, redeemCode: "R-2" },
  ],
  active: [lookUp, ACTIVE],
  free: [lookUp, ACTIVE],
  held: [lookUp, heldBy("rsv_1")],
  "held again": [lookUp, heldBy("rsv_2")],
  taken: [{ ...lookUp, key: otherKey }, heldBy(null)],
  used: [lookUp, USED],
  "taken until later": [{ ...lookUp, key: otherKey }, heldBy(null, LATER)],
  "used later": [lookUp, { ...USED, redeemedAt: LATER }],
  voided: [lookUp, { ...ACTIVE, status: "Voided" }],
  voids: [voids, { voided: true, alreadyVoided: false }],
  "voids again": [voids, { voided: true, alreadyVoided: true }],
  "void unknown": [voids, "unavailable"],
  "void refused as used": [voids, "voucher_used"],
  "refused as voided": [redeem, "voucher_voided"],
  suspended: [lookUp, { ...ACTIVE, status: "Suspended" }],
  suspends: [{ operation: "suspend", key, voucher }, { suspended: true }],
  "suspend unknown": [{ operation: "suspend", key, voucher }, "unavailable"],
  "resume unknown": [{ operation: "resume", key, voucher }, "unavailable"],
  resumes: [{ operation: "resume", key, voucher }, { suspended: false }],
  "reserve refused as suspended": [reserve, "voucher_suspended"],
  extends: [extend, { extended: true }],
  "extends by less": [{ ...extend, validUntil: new Date(1_500).toISOString() }, { extended: true }],
  "extend unknown": [extend, "unavailable"],
  "extend too early": [extend, "invalid_request"],
  "extension recorded": [
    { operation: "events", key, voucher },
    { hashes: ["a", "b", "c"], types: ["issued", "expired", "extended"].map((type) => `voucher.instance.${type}`) },
  ],
  expired: [lookUp, { ...ACTIVE, status: "Expired" }],
  "refused as expired": [redeem, "voucher_expired"],
  reserved: [reserve, ticketOf("rsv_1")],
  "reserved again": [reserve, ticketOf("rsv_2")],
  "reserved with another token": [reserve, { ...ticketOf("rsv_1"), token: "another" }],
  "other reserve gone": [{ ...reserve, key: otherKey }, "timeout"],
  "reserve refused as voided": [reserve, "voucher_voided"],
  "reserve refused as reserved": [{ ...reserve, key: otherKey }, "voucher_reserved"],
  "reserve unknown": [reserve, "unavailable"],
  "refused as used": [reserve, "voucher_used"],
  released: [release, { released: true }],
  "release unknown": [release, "unavailable"],
  "nothing released": [release, { released: false }],
  issued: [
    { operation: "events", key, voucher },
    { hashes: ["a"], types: TYPES.slice(0, 1) },
  ],
  "chain broken": [
    { operation: "events", key, voucher },
    { hashes: [], types: [], broken: "its second hash differs" },
  ],
  "expiry recorded": [
    { operation: "events", key, voucher },
    { hashes: ["a", "b"], types: ["voucher.instance.issued", "voucher.instance.expired"] },
  ],
  sealed: [
    { operation: "publicEvents", key, voucher },
    { hashes: ["a", "b"], types: TYPES },
  ],
  forked: [
    { operation: "events", key, voucher },
    { hashes: ["a", "c"], types: TYPES },
  ],
  claimed: [
    { operation: "events", key, voucher },
    { hashes: ["a", null], types: ["voucher.instance.issued", "voucher.instance.claimed"] },
  ],
  listed: [listFrom(0), { redemptions: [{ ...REDEMPTION, externalRef: "order-1" }], completeUntil: LATER }],
  unlisted: [listFrom(0), { redemptions: [], completeUntil: LATER }],
  "listed until before": [listFrom(0), { redemptions: [], completeUntil: AT }],
  "listed from after": [listFrom(2_000), { redemptions: [], completeUntil: LATER }],
  "listed as erased": [
    listFrom(0),
    { redemptions: [{ ...REDEMPTION, externalRef: "erased:1" }], completeUntil: LATER },
  ],
  erased: [erases, { vouchers: 1, events: 1, references: 0 }],
  "erasure gone": [erases, "timeout"],
  "batch issued": [issue, { id: "bat_1", count: 2, alreadyIssued: false }],
  "batch issued as another": [issue, { id: "bat_2", count: 2, alreadyIssued: false }],
  "batch repeated": [issue, { id: "bat_1", count: 2, alreadyIssued: true }],
  "batch repeated with other content": [issue, { id: "bat_1", count: 2, alreadyIssued: true, otherBatch: true }],
  "batch gone": [issue, "timeout"],
  "batch refused": [issue, "refused"],
  "codes shown": [codesOf, { items: [{ serial: 1 }, { serial: 2 }] }],
  "one code shown": [codesOf, { items: [{ serial: 2 }] }],
  "batch voided": [voidsBatch, { voided: 2, alreadyFinal: 0, remaining: 0 }],
  "batch void ended": [voidsBatch, { voided: 1, alreadyFinal: 1, remaining: 0 }],
  "batch partly voided": [voidsBatch, { voided: 1, alreadyFinal: 0, remaining: 1 }],
  "batch miscounted": [voidsBatch, { voided: 1, alreadyFinal: 0, remaining: 0 }],
  "batch void unknown": [voidsBatch, "unavailable"],
  "batch found final": [voidsBatch, { voided: 0, alreadyFinal: 2, remaining: 0 }],
  "contract ended": [endsContract, { status: "Ended" }],
  "contract found ended": [endsContract, "wrong_status"],
  "end of contract unknown": [endsContract, "unavailable"],
  "ann claims": [claimOf("ann"), { voucherId: "vch_1", alreadyConfirmed: false }],
  "ann finds nothing": [claimOf("ann"), "sold_out"],
  "eve finds nothing": [claimOf("eve"), "sold_out"],
};

/** Makes a history of answers like "100-200 redeemed" and webhooks like "150 webhook". By default, nothing expires. */
export function answersOf(calls: readonly string[], validUntilMs?: number): History {
  const history = new History();
  for (const call of calls) {
    const [times = "", ...words] = call.split(" ");
    const [invokedMs = 0, returnedMs = invokedMs] = times.split("-").map(Number);
    if (words[0] === "webhook") {
      const { id: voucherId, organizationId } = voucher;
      const told = {
        voucherId,
        organizationId,
        externalRef: "order-1",
        redeemCode: "R-1",
        sequence: 2,
        redeemedAt: AT,
      };
      history.webhooks.push({ ...told, recordHash: "b", returnedMs });
      continue;
    }
    const [given, got] = structuredClone(ANSWERS[words.join(" ")]) as [Ask, object | string];
    const hasEnd = validUntilMs !== undefined && "voucher" in given;
    const ask = hasEnd ? ({ ...given, voucher: { ...given.voucher, validUntilMs } } as Ask) : given;
    history.add(answer(invokedMs, returnedMs, ask, got));
  }
  restoreReferences(history);
  return history;
}

/** Makes a call that got this body, this code, or no answer for this reason. */
export function answer(
  invokedMs: number,
  returnedMs: number,
  ask: Ask,
  got: object | string,
): Omit<Exchange, "number"> {
  const isOk = typeof got === "object";
  const failure = got === "timeout" || got === "refused" ? (got satisfies Failure) : null;
  return {
    ask,
    api: "api-1",
    attempt: 1,
    failure,
    retryAfter: "1",
    status: failure !== null ? null : isOk ? 200 : 409,
    sentAtMs: invokedMs,
    endedAtMs: returnedMs,
    invokedMs,
    returnedMs,
    code: isOk ? undefined : got,
    body: isOk ? got : {},
  };
}
