import { expect, it } from "vitest";
import { checkCaps } from "./caps.ts";
import { answersOf } from "./crafted-history.ts";
import type { History } from "./history.ts";
import { checkOrder } from "./order.ts";
import {
  type RecordedRedemption,
  type RecordedReservation,
  type RecordedVoucher,
  type Records,
  toRecords,
} from "./records.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks `checkOrder` on hand-made histories.

const OLDER = "no answer shows an older state than one shown before it was asked";
const DIFFERENT = "no two answers show different contents of a final state";
const REGISTER = "each voucher behaves as one register";
const CHANGED = "a list never changes before its completeUntil";

it.each<[calls: string, broken: string[]]>([
  // A redemption.
  ["100-200 redeemed, 201-300 used, 301-400 found, 401-500 sealed, 501-600 listed, 601-700 refused as used", []],
  ["100-400 redeemed, 150-200 used, 201-300 repeated", []],
  ["100-400 redeemed, 150-200 used, 160-250 active", []],
  ["100-400 redeemed, 150-200 used, 201-300 active", [REGISTER]],
  ["100-200 redeemed, 200-300 active", []],
  ["100-200 redeemed, 201-300 active", [REGISTER]],
  ["100-200 redeemed, 201-300 redeemed", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 redeemed otherwise", [REGISTER]],
  ["100-200 redeemed, 201-300 reserved", [REGISTER]],
  ["100-200 redeemed, 201-300 ended", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 used later", [REGISTER]],
  ["100-200 redeemed, 201-300 voided", [REGISTER]],
  ["100-200 used", [REGISTER]],
  ["100-200 redeemed, 201-300 found under another", [REGISTER]],
  ["50-99 found", [REGISTER]],
  ["100-200 redeemed, 150 webhook, 201-300 active", [REGISTER]],
  ["100-300 redeemed, 150 webhook, 160-170 active", [REGISTER]],
  // An attempt whose outcome is unknown may take effect at any later time, or never.
  ["100-200 unknown, 300-400 active", []],
  ["100-200 unknown, 300-400 active, 401-500 used, 501-600 found", []],
  ["100-200 unknown, 300-400 used, 401-500 active", [REGISTER]],
  ["100-200 gone, 300-400 reserved, 401-500 used", []],
  ["100-200 refused, 300-400 used", [REGISTER]],
  ["100-200 timed out, 300-400 used", [REGISTER]],
  // A refusal ends every earlier attempt of its reference, including attempts for another voucher.
  ["50-60 unknown, 100-200 timed out, 300-400 used", [REGISTER]],
  ["50-60 unknown, 100-200 timed out elsewhere, 300-400 used", [REGISTER]],
  ["50-60 unknown, 100-200 busy, 300-400 used", [REGISTER]],
  ["50-60 unknown, 100-200 unknown, 300-400 used", []],
  ["50-150 unknown, 100-200 timed out, 300-400 used", []],
  ["50-60 unknown, 100-200 not found, 300-400 used", []],
  ["50-60 unknown, 70-80 used, 100-200 not found", [REGISTER]],
  ["50-250 unknown, 70-80 used, 100-200 timed out elsewhere", [REGISTER]],
  // An attempt without an answer may be in progress for ten seconds.
  ["50-60 gone, 100-200 timed out, 300-400 used", []],
  ["50-60 gone, 70-80 used, 100-200 timed out", [REGISTER]],
  ["50-60 gone, 10040-10050 timed out, 10100-10200 used", []],
  ["50-60 gone, 10060-10070 timed out elsewhere, 10100-10200 used", [REGISTER]],
  // A reference redeems one voucher.
  ["50-60 unknown, 100-200 redeemed elsewhere, 300-400 used", [REGISTER]],
  ["50-60 unknown, 100-200 redeemed elsewhere, 70-80 used", [REGISTER]],
  ["50-60 unknown, 100-200 unknown elsewhere, 300-400 used", []],
  ["300-400 unknown, 100-200 used", [REGISTER]],
  // A refusal because of the daily limit shows that the reference redeemed nothing.
  ["100-200 capped, 201-300 active", []],
  ["100-200 redeemed, 201-300 capped", [REGISTER]],
  ["100-200 reserved, 201-300 other key capped", [REGISTER]],
  // The void of a batch voids each voucher at some moment, unless the voucher is already redeemed.
  ["100-200 batch voided, 201-300 voided, 301-400 refused as voided", []],
  ["100-200 redeemed, 100-200 batch void ended, 201-300 used", []],
  ["100-200 batch voided, 201-300 active", [REGISTER]],
  ["100-200 batch voided, 201-300 redeemed", [REGISTER]],
  ["100-200 batch partly voided, 201-300 active, 301-400 voided", []],
  ["100-200 batch void unknown, 201-300 active, 301-400 voided, 401-500 redeemed", [REGISTER]],
  // An erased reference keeps its redemption.
  ["100-200 redeemed, 201-300 erased, 301-400 repeated, 301-400 found, 301-400 listed as erased", []],
  ["100-200 redeemed, 201-300 erased, 301-400 not found", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 erased, 301-400 unlisted", [CHANGED]],
  // A reservation.
  ["100-200 reserved, 201-300 held, 301-400 reserved, 401-500 released, 501-600 free", []],
  ["100-200 reserved, 201-300 free", [REGISTER]],
  ["100-200 reserved, 150-300 free", []],
  ["100-200 reserved, 201-300 released, 301-400 held", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 released", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserved", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserve unknown, 401-500 held", [REGISTER]],
  ["100-200 reserved, 201-300 nothing released", [REGISTER]],
  ["100-200 reserved, 201-300 reserved again", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 reserved again, 401-500 held", [REGISTER]],
  ["100-200 reserved, 150-300 reserved again, 160-250 released, 301-400 held again", []],
  ["100-200 reserved, 201-300 release unknown, 301-400 held, 401-500 free", []],
  ["100-200 reserved, 201-300 release unknown, 301-400 free, 401-500 held", [REGISTER]],
  ["100-200 reserve unknown, 201-300 free, 301-400 held, 401-500 reserved", []],
  ["201-300 held", [REGISTER]],
  ["100-200 reserved, 201-300 kept out, 301-400 taken", []],
  ["100-200 kept out", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by another", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by its ticket", []],
  ["100-200 reserved, 201-300 released, 301-400 redeemed by its ticket", [REGISTER]],
  ["100-200 reserved, 201-300 ended", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 ended", []],
  ["100-200 reserved, 201-300 redeemed by another by its ticket", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by another with its token", []],
  ["100-200 reserved, 201-300 redeemed by another with a strange token", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed with a strange token", [REGISTER]],
  ["100-200 redeemed with a strange token", [REGISTER]],
  ["100-200 reserved, 201-300 redeemed by its ticket and token", []],
  ["100-200 reserved, 201-300 redeemed by its ticket and a token of another", [REGISTER]],
  ["100-200 reserved, 201-300 mismatched", [REGISTER]],
  ["100-200 reserved, 201-300 released, 301-400 mismatched", []],
  ["100-200 reserved, 201-300 mismatched by its ticket", [REGISTER]],
  ["100-200 reserved, 201-300 mismatched by its ticket and a strange token", []],
  ["100-200 reserved, 201-300 released, 301-400 mismatched by its ticket and a strange token", [REGISTER]],
  ["100-200 reserved, 201-300 taken until later", [REGISTER]],
  // A redeem or reserve whose answer is missing cannot have overridden a live reservation.
  ["100-200 reserved, 210-220 other reserve gone, 300-400 free", [REGISTER]],
  ["100-200 reserved, 210-220 other redeem gone, 300-400 used", [REGISTER]],
  ["100-200 reserved, 210-220 other redeem gone, 910-950 used", []],
  ["100-200 reserved, 210-220 other redeem gone, 300-400 released, 401-500 used", []],
  ["100-200 reserved, 210-220 other reserve gone, 910-950 held again", [REGISTER]],
  ["100-200 reserved, 210-220 other reserve gone, 910-950 reserve refused as reserved", [REGISTER]],
  ["100-200 reserved, 850-860 ticket's redeem gone, 950-960 used", []],
  ["100-200 reserved, 910-920 ticket's redeem gone, 950-960 used", [REGISTER]],
  ["100-200 reserve unknown, 201-300 kept out, 301-400 free", []],
  ["100-200 reserve unknown, 201-300 taken, 301-400 free", [REGISTER]],
  ["100-200 reserve unknown, 201-300 kept out, 301-400 free, 850-890 held", [REGISTER]],
  ["100-200 reserve unknown, 201-300 kept out, 850-950 free", []],
  // The reservation ends at 900 ms.
  ["100-200 reserved, 901-950 free, 951-990 redeemed by another", []],
  ["100-200 reserved, 850-950 free, 860-960 held", []],
  ["100-200 reserved, 910-950 held", [REGISTER]],
  ["100-200 reserved, 910-950 kept out", [REGISTER]],
  // References.
  ["100-200 redeemed, 201-300 timed out", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 busy", [OLDER, REGISTER]],
  ["100-200 redeemed, 201-300 unknown", []],
  ["100-200 redeemed, 201-300 not found", [OLDER, REGISTER]],
  ["100-200 redeemed, 150-250 repeated with another code", [DIFFERENT]],
  // Chains.
  ["50-60 unknown, 100-200 sealed, 201-300 issued", [OLDER, REGISTER]],
  ["50-60 unknown, 100-200 sealed, 150-250 forked", [DIFFERENT]],
  ["50-60 unknown, 150 webhook, 201-300 forked", [DIFFERENT]],
  ["100-200 claimed, 201-300 issued", [OLDER]],
  // Lists.
  ["100-200 redeemed, 201-300 unlisted", [CHANGED]],
  ["100-200 unlisted, 201-300 redeemed", [CHANGED]],
  ["50-60 unknown, 100-200 listed, 150-300 unlisted", [CHANGED]],
  ["100-200 redeemed, 201-300 listed until before", []],
  ["100-200 redeemed, 201-300 listed from after", []],
  ["100-200 listed from after, 201-300 listed until before", [OLDER]],
  // Offers.
  ["100-200 ann claims, 201-300 ann finds nothing", [OLDER]],
  ["100-200 eve finds nothing, 201-300 ann claims", [OLDER]],
  ["100-200 ann claims, 201-300 eve finds nothing", []],
])("checkOrder finds that the history %s breaks the rules %j", (calls, broken) => {
  expect(brokenBy(answersOf(calls.split(", ")))).toEqual(broken);
});

// The voucher is valid until 900 ms.
it.each<[calls: string, broken: string[]]>([
  ["100-200 active, 850-950 expired, 951-990 expired", []],
  ["100-200 expired", [REGISTER]],
  ["100-200 refused as expired", [REGISTER]],
  ["910-920 active", [REGISTER]],
  ["850-920 expired, 930-940 active, 941-950 redeemed", [REGISTER]],
  ["850-920 expired, 860-930 active", []],
  ["910-920 redeemed", [REGISTER]],
  ["910-920 reserved", [REGISTER]],
  ["910-920 voids", [REGISTER]],
  ["910-920 refused as expired, 930-940 expiry recorded", []],
  ["100-200 expiry recorded", [REGISTER]],
  // A redemption that was decided while the voucher was valid may become visible after the end.
  ["850-990 redeemed, 910-920 expired", []],
  ["100-200 gone, 910-920 expired, 930-940 used", []],
  ["905-910 gone, 930-940 used", [REGISTER]],
  ["100-200 redeemed, 910-920 expired", [REGISTER]],
  ["100-200 voids, 910-920 voided", []],
  // Extensions, of valid and of expired vouchers.
  ["100-200 extends, 910-920 active, 2010-2020 expired", []],
  ["100-200 extends, 910-920 expired", [REGISTER]],
  ["100-200 extends, 2010-2020 active", [REGISTER]],
  ["910-920 expired, 930-950 extends, 960-970 redeemed", []],
  ["910-920 expired, 960-970 redeemed, 980-990 extends", [REGISTER]],
  ["910-920 expired, 930-950 extends, 960-970 expiry recorded", [REGISTER]],
  ["910-920 expiry recorded, 930-950 extends, 960-970 extension recorded, 2010-2020 expired", []],
  ["100-200 extend unknown, 910-920 expired, 930-940 active", []],
  ["100-200 extends, 210-220 extends, 230-240 extends by less", [REGISTER]],
  ["100-200 extend too early", [REGISTER]],
  ["2010-2020 extend too early", []],
  ["100-200 extends, 201-250 redeemed, 251-260 extends", [REGISTER]],
  ["100-200 voids, 910-920 expired", [REGISTER]],
])("checkOrder finds that the history %s of an expiring voucher breaks the rules %j", (calls, broken) => {
  expect(brokenBy(answersOf(calls.split(", "), 900))).toEqual(broken);
});

it.each<[calls: string, broken: string[]]>([
  ["100-200 suspends, 201-250 reserved", [REGISTER]],
  ["100-200 suspends, 150-250 reserved", []],
  ["100-200 suspends, 201-250 suspended, 251-300 resumes, 301-400 reserved", []],
  ["100-200 suspends, 201-250 resumes, 251-300 suspended", [REGISTER]],
  ["100-200 suspends, 201-250 active", [REGISTER]],
  ["100-200 suspends, 201-250 reserve refused as suspended, 251-300 voids", []],
  ["100-200 reserve refused as suspended", [REGISTER]],
  ["100-200 suspend unknown, 201-250 active, 251-300 suspended", []],
  ["100-200 voids, 201-300 voided, 301-400 voids again, 401-500 refused as voided", []],
  ["100-200 reserved, 201-300 voids, 301-400 nothing released, 401-500 reserve refused as voided", []],
  ["100-200 voids, 201-300 active", [REGISTER]],
  ["100-200 voids, 201-300 redeemed", [REGISTER]],
  ["100-200 voids, 201-300 voids", [REGISTER]],
  ["100-200 voids again", [REGISTER]],
  ["100-200 reserved, 201-300 voids, 301-400 released", [REGISTER]],
  ["100-200 void unknown, 201-300 active, 301-400 voided", []],
  ["100-200 void unknown, 201-300 voided, 301-400 active", [REGISTER]],
  ["100-200 redeemed, 201-300 void refused as used", []],
  ["100-200 void refused as used, 201-300 redeemed", [REGISTER]],
  ["100-200 refused as voided", [REGISTER]],
])("checkOrder finds that the history %s of a voided voucher breaks the rules %j", (calls, broken) => {
  expect(brokenBy(answersOf(calls.split(", ")))).toEqual(broken);
});

// `lostMs` is when the primary is lost. An unanswered change may be lost with it if no standby has the change, even if
// another call has read the change.
it.each<[calls: string, lostMs: number, broken: string[]]>([
  ["100-200 claimed, 201-300 issued", 50, [OLDER]],
  ["100-200 claimed, 201-300 issued", 250, []],
  ["100-200 claimed, 201-300 issued", 350, [OLDER]],
  ["100-200 redeemed, 201-300 active", 250, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 301-400 free, 401-500 reserved again", 350, []],
  ["100-200 reserve unknown, 201-300 held, 301-400 free, 401-500 reserved", 350, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 301-400 free", 150, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 301-400 free", 450, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 301-400 reserved, 460-500 free", 450, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 250-300 kept out, 350-400 free", 320, [REGISTER]],
  ["100-200 reserve unknown, 201-300 held, 250-300 reserve refused as reserved, 350-400 free", 320, []],
  ["100-200 reserved, 201-300 free", 150, [REGISTER]],
  ["100-200 reserved, 260-300 free", 250, [REGISTER]],
  ["100-200 reserved, 260-300 nothing released", 250, [REGISTER]],
  ["100-200 reserved, 260-300 ended", 250, [REGISTER]],
  ["100-200 reserved, 260-300 mismatched", 250, [REGISTER]],
  ["260-300 kept out", 250, [REGISTER]],
  ["100-200 reserved, 201-300 release unknown, 301-400 free, 450-500 held", 420, []],
  ["100-200 reserved, 201-300 release unknown, 301-400 free, 450-500 held", 250, [REGISTER]],
  ["100-200 reserved, 201-300 released, 450-500 held", 420, [REGISTER]],
  // The release confirmed that the ticket is not live, so the redemption that used it cannot be lost.
  ["50-99 reserved, 100-400 timed out, 200-300 nothing released, 401-500 held", 350, [REGISTER]],
  ["50-99 reserved, 100-400 timed out, 200-300 nothing released, 401-500 held", 80, [REGISTER]],
  ["50-99 reserved, 100-400 timed out, 200-300 used, 401-500 held", 350, [REGISTER]],
  ["100-200 void unknown, 201-300 active, 401-500 voided", 350, []],
  ["100-200 void unknown, 201-300 voided, 401-500 active", 350, [REGISTER]],
  ["100-200 void unknown, 201-300 voids again, 401-500 active", 350, [REGISTER]],
])("checkOrder judges the history %s with a primary lost at %i ms", (calls, lostMs, broken) => {
  const history = answersOf(calls.split(", "));
  history.losses.push({ fromMs: lostMs, untilMs: lostMs });
  expect(brokenBy(history)).toEqual(broken);
});

const REDEEMED: RecordedRedemption = {
  voucherId: "vch_1",
  organizationId: "org_1",
  keyId: "key_till",
  ticket: null,
  redeemCode: "R-1",
  externalRef: "order-1",
  redeemedAtMs: 1_000,
};
const HELD: RecordedReservation = {
  ticket: "rsv_1",
  voucherId: "vch_1",
  keyId: "key_till",
  state: "Live",
  startedAtMs: 200,
  expiresAtMs: 900,
  endedAtMs: null,
};
const CLAIM = { acquisition: "claim ann prd_1", voucherId: "vch_1", batchId: "bat_1", acquiredAtMs: 150 };
const rows = (status: RecordedVoucher["status"], others: Omit<Parameters<typeof toRecords>[1], "vouchers"> = {}) => {
  return { vouchers: [{ id: "vch_1", status, isSuspended: false }], ...others };
};
/** The rows at the end. */
const ROWS: Record<string, Parameters<typeof toRecords>[1]> = {
  nothing: rows("Active"),
  redeemed: rows("Redeemed", { redemptions: [REDEEMED] }),
  "redeemed with another code": rows("Redeemed", { redemptions: [{ ...REDEEMED, redeemCode: "R-2" }] }),
  "redeemed for another order": rows("Redeemed", { redemptions: [{ ...REDEEMED, externalRef: "order-2" }] }),
  held: rows("Active", { reservations: [HELD] }),
  "held by another key": rows("Active", { reservations: [{ ...HELD, keyId: "key_web" }] }),
  "held for less": rows("Active", { reservations: [{ ...HELD, expiresAtMs: 800 }] }),
  released: rows("Active", { reservations: [{ ...HELD, state: "Released", endedAtMs: 305 }] }),
  claimed: { acquisitions: [CLAIM] },
  "another claimed": { acquisitions: [{ ...CLAIM, voucherId: "vch_2" }] },
  "claimed from another batch": { acquisitions: [{ ...CLAIM, batchId: "bat_2" }] },
};

it.each<[calls: string, row: string, broken: string[]]>([
  ["900-1100 redeemed, 1200-1300 repeated, 1200-1300 used", "redeemed", []],
  // No call of the history redeemed the voucher, so this happened before the history.
  ["1100-1200 listed", "redeemed", []],
  ["900-1100 redeemed", "nothing", [OLDER, REGISTER]],
  ["900-1100 redeemed", "redeemed with another code", [DIFFERENT]],
  ["900-1100 redeemed", "redeemed for another order", [OLDER, REGISTER]],
  ["900-990 redeemed", "redeemed", [REGISTER]],
  ["900-910 unknown, 920-930 active", "redeemed", []],
  ["900-910 unknown", "nothing", []],
  ["900-910 unknown, 1100-1110 refused as used", "redeemed", []],
  ["900-910 unknown, 1100-1110 refused as used", "nothing", [REGISTER]],
  ["900-910 unknown, 920-930 refused as used", "redeemed", [REGISTER]],
  ["900-910 unknown, 920-930 used", "redeemed", [REGISTER]],
  ["100-200 voids", "nothing", [REGISTER]],
  ["100-200 suspends", "nothing", [REGISTER]],
  ["210-220 reserved, 230-240 reserved, 250-260 reserve refused as reserved", "held", []],
  ["210-220 reserved", "nothing", [OLDER, REGISTER]],
  ["210-220 reserved", "held by another key", [DIFFERENT]],
  ["210-220 reserved", "held for less", [DIFFERENT]],
  ["100-150 reserved", "held", [REGISTER]],
  ["950-960 reserved", "held", [REGISTER]],
  ["100-110 reserve unknown, 250-260 reserve refused as reserved", "held", []],
  ["100-110 reserve unknown, 150-160 reserve refused as reserved", "held", [REGISTER]],
  ["100-110 reserve unknown, 250-260 reserve refused as reserved", "nothing", [REGISTER]],
  ["210-220 reserved, 230-240 reserved with another token", "held", [DIFFERENT]],
  ["210-220 reserved, 300-310 released, 320-330 nothing released", "released", []],
  ["210-220 reserved, 300-310 released", "held", [DIFFERENT]],
  ["100-200 ann claims", "claimed", []],
  ["100-200 ann claims", "nothing", [OLDER]],
  ["100-200 ann claims", "another claimed", [DIFFERENT]],
  ["100-200 ann claims", "claimed from another batch", [DIFFERENT]],
])("checkOrder judges the history %s with the rows of a voucher that is %s at the end", (calls, row, broken) => {
  expect(brokenBy(answersOf(calls.split(", ")), toRecords(new SteppedClock(), ROWS[row] ?? {}))).toEqual(broken);
});

// The key's limit is two redemptions. `recorded` lists the orders whose redemptions the database has.
it.each<[calls: string, recorded: number[], lostMs: number[], isBroken: boolean]>([
  ["100-200 redeemed, 100-200 redeemed otherwise, 201-300 capped", [1, 2], [], false],
  ["100-200 redeemed, 100-400 redeemed otherwise, 150-300 capped", [1, 2], [], false],
  ["100-200 gone, 201-300 redeemed otherwise, 301-400 capped", [1, 2], [], false],
  ["100-200 redeemed, 201-300 capped, 301-400 redeemed otherwise", [1, 2], [], true],
  ["100-200 redeemed, 201-300 unknown otherwise, 301-400 capped", [1], [], true],
  ["100-200 redeemed, 201-300 unknown otherwise, 301-400 capped", [1], [350], false],
  ["100-200 redeemed, 201-300 capped, 301-400 unknown otherwise", [1], [350], true],
  ["100-200 redeemed, 100-200 redeemed otherwise, 201-300 other key capped", [1, 2], [], true],
  ["100-200 redeemed, 100-200 redeemed otherwise", [1, 2, 3], [], true],
])("checkCaps judges the history %s with the redemptions %j, losses at %j", (calls, recorded, lost, broken) => {
  const history = answersOf(calls.split(", "));
  for (const ms of lost) history.losses.push({ fromMs: ms, untilMs: ms });
  const redemptions = recorded.map((order) => ({ ...REDEEMED, externalRef: `order-${order}` }));
  const records = toRecords(new SteppedClock(), { redemptions, caps: [{ keyId: "key_till", maxPerDay: 2 }] });
  expect(checkCaps(history, records).length > 0).toBe(broken);
});

it("checkOrder finds a broken rule even if unanswered calls and lost primaries allow many orders", () => {
  const open = ["gone", "suspend unknown", "resume unknown", "void unknown", "extend unknown"];
  const calls = open.flatMap((name) => Array.from({ length: 7 }, (_, n) => `${100 + n}-${150 + n} ${name}`));
  const history = answersOf([...calls, "201-250 suspended", "551-560 voided", "651-660 active"]);
  for (const ms of [300, 500]) history.losses.push({ fromMs: ms, untilMs: ms });
  const [found] = checkOrder(history, new SteppedClock());
  expect(found).toMatchObject({ rule: REGISTER, detail: expect.stringContaining("no next one explains its answer") });
});

const brokenBy = (history: History, records: Records | null = null) => [
  ...new Set(checkOrder(history, new SteppedClock(), records).map(({ rule }) => rule)),
];
