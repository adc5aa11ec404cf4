import { type Ask, type AskFor, History } from "./history.ts";
import type { Failure } from "./http-call.ts";

// Hand-made histories for the tests of the rules.

const key = { id: "key_till", secret: "", organizationId: "org_1" };
const otherKey = { ...key, id: "key_web" };
const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
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
const release: Ask = { operation: "release", key, voucher, ticket: "rsv_1" };
const offer = { productId: "prd_1", batchId: "bat_1", listingId: "lst_1", supply: 2 };
const claimOf = (id: string): Ask => ({ operation: "acquire", user: { id, token: "" }, offer, by: { claim: true } });
const listFrom = (ms: number): Ask => ({ operation: "list", key, from: new Date(ms).toISOString(), limit: 2 });

const AT = new Date(1_000).toISOString();
const LATER = new Date(5_000).toISOString();
const REDEMPTION = { voucherInstanceId: "vch_1", redeemCode: "R-1", redeemedAt: AT };
const FIRST = { ...REDEMPTION, alreadyConfirmed: false };
const ACTIVE = { id: "vch_1", status: "Active", redeemedAt: null, reservation: null };
const USED = { ...ACTIVE, status: "Redeemed", redeemedAt: AT };
const TYPES = ["voucher.instance.issued", "voucher.instance.redeemed"];
/** Reservations end at 900 ms. */
const ticketOf = (ticket: string) => ({ ticket, token: `token of ${ticket}`, expiresAt: new Date(900).toISOString() });
const heldBy = (ticket: string | null) => ({ ...ACTIVE, reservation: { ticket, heldByCaller: ticket !== null } });

/** The asks, and the bodies, codes or failures of the answers. */
const ANSWERS: Record<string, [Ask, object | string]> = {
  redeemed: [redeem, FIRST],
  "redeemed otherwise": [
    { ...redeem, externalRef: "order-2" },
    { ...FIRST, redeemCode: "R-2" },
  ],
  "redeemed by another": [{ ...redeem, key: otherKey }, FIRST],
  "redeemed by its ticket": [{ ...redeem, by: { ticket: "rsv_1" } }, FIRST],
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
  "used later": [lookUp, { ...USED, redeemedAt: LATER }],
  voided: [lookUp, { ...ACTIVE, status: "Voided" }],
  reserved: [reserve, ticketOf("rsv_1")],
  "reserved again": [reserve, ticketOf("rsv_2")],
  "reserve unknown": [reserve, "unavailable"],
  "refused as used": [reserve, "voucher_used"],
  released: [release, { released: true }],
  "release unknown": [release, "unavailable"],
  "nothing released": [release, { released: false }],
  issued: [
    { operation: "events", key, voucher },
    { hashes: ["a"], types: TYPES.slice(0, 1) },
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
  "ann claims": [claimOf("ann"), { voucherId: "vch_1", alreadyConfirmed: false }],
  "ann finds nothing": [claimOf("ann"), "sold_out"],
  "eve finds nothing": [claimOf("eve"), "sold_out"],
};

/** A history of answers such as "100-200 redeemed", and of "150 webhook". */
export function answersOf(calls: readonly string[]): History {
  const history = new History();
  for (const call of calls) {
    const [times = "", ...words] = call.split(" ");
    const [invokedMs = 0, returnedMs = invokedMs] = times.split("-").map(Number);
    if (words[0] === "webhook") {
      const { id: voucherId, organizationId } = voucher;
      const told = { voucherId, organizationId, externalRef: "order-1", redeemCode: "R-1", sequence: 2 };
      history.webhooks.push({ ...told, recordHash: "b", returnedMs });
      continue;
    }
    const [ask, answer] = ANSWERS[words.join(" ")] as [Ask, object | string];
    const isOk = typeof answer === "object";
    const failure = answer === "timeout" || answer === "refused" ? (answer satisfies Failure) : null;
    history.add({
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
      code: isOk ? undefined : answer,
      body: isOk ? answer : {},
    });
  }
  return history;
}
