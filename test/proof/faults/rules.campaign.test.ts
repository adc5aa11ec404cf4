import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { checkAnswers } from "./answer-rules.ts";
import { answersOf } from "./crafted-history.ts";
import { type Ask, type AskFor, type Exchange, History } from "./history.ts";
import { checkErasures, checkIssuers } from "./issuer-rules.ts";
import {
  type RecordedAcquisition,
  type RecordedRedemption,
  type RecordedReservation,
  type Records,
  toRecords,
} from "./records.ts";
import { checkAcquisitions, checkRedeems, checkReleases, type Freeze } from "./rules.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks the rules of the campaign with hand-made histories.

const WAIT_MS = 3_000;
const key = { id: "key_till", secret: "", organizationId: "org_1" };
const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
const order = { externalRef: "order-1", by: { code: "CODE" }, token: null };
const redeem: AskFor<"redeem"> = { operation: "redeem", key, voucher, ...order };
const offer = { productId: "prd_1", batchId: "bat_1", listingId: "lst_1", supply: 2 };
const claimOf = (id: string): Ask => ({ operation: "acquire", user: { id, token: "" }, offer, by: { claim: true } });

const ASKS: Record<string, Ask> = {
  redeem,
  another: { ...redeem, key: { ...key, id: "key_web" } },
  byTicket: { ...redeem, by: { ticket: "rsv_1" } },
  elsewhere: { ...redeem, voucher: { ...voucher, id: "vch_2" } },
  ann: claimOf("ann"),
  bob: claimOf("bob"),
  eve: claimOf("eve"),
};

const DENIED = "a denied redemption does not exist";
const NO_ATTEMPT = "a redemption has an attempt";
const ENDED = "a refusal ends what came before";
const HUNG_UP = "redeem 0-1200 hung up";
const UNKNOWN = "redeem 900-910 503 redeem_unknown";
const FIRST = "redeem 900-1100 200 first";

it.each<[what: string, at: number, calls: string[], broken: string | null]>([
  ["accept an attempt and its repeat", 1_000, [FIRST, "redeem 1200-1210 200 again"], null],
  ["accept an earlier timeout", 3_600, ["redeem 500-3590 503 redeem_timeout", "redeem 3595-3700 200 first"], null],
  [
    "accept a redemption by a call that was sent after a refusal of its reference",
    1_000,
    ["redeem 800-810 503 redeem_unknown", "redeem 820-840 409 voucher_expired", "redeem 850-1100 200 first"],
    null,
  ],
  ["report a denied retry", 1_298, [HUNG_UP, "redeem 1300-4400 503 redeem_timeout"], DENIED],
  ["accept a denied retry decided before", 1_299, [HUNG_UP, "redeem 1300-4400 503 redeem_timeout"], null],
  ["report a refusal of a redeemed reference", 1_000, [HUNG_UP, "redeem 1002-1300 409 voucher_expired"], DENIED],
  ["accept a refusal that may be older", 1_000, [HUNG_UP, "redeem 990-1300 409 voucher_expired"], null],
  ["report a redemption after its timeout", 3_200, ["redeem 100-3150 503 redeem_timeout"], NO_ATTEMPT],
  ["report a redemption after its refusal", 1_000, ["redeem 900-950 409 voucher_expired"], NO_ATTEMPT],
  ["report a redemption of a call that was never accepted", 1_000, ["redeem 800-850 refused"], NO_ATTEMPT],
  ["report a redemption that is only repeated", 1_000, ["redeem 800-1100 200 again"], NO_ATTEMPT],
  ["report a redemption with another key", 1_000, ["another 800-2000 hung up"], NO_ATTEMPT],
  ["report a redemption with another ticket", 1_000, ["byTicket 800-2000 hung up"], NO_ATTEMPT],
  ["accept a redemption of a call that hung up", 1_000, ["redeem 800-2000 hung up"], null],
  ["accept a redemption at the deadline", 4_102, ["redeem 1000-1100 503 redeem_unknown"], null],
  ["report a redemption after the deadline", 4_103, ["redeem 1000-1100 503 redeem_unknown"], NO_ATTEMPT],
  // A frozen process may read a request after the caller has disconnected.
  ["accept a late redemption after a hang-up", 4_103, ["redeem 1000-2200 hung up"], null],
  ["report a redemption far too late after a hang-up", 30_000, ["redeem 1000-2200 hung up"], NO_ATTEMPT],
  ["report an attempt that a refusal ended", 1_000, [UNKNOWN, "redeem 920-940 409 voucher_expired"], ENDED],
  ["report an attempt that a timeout elsewhere ended", 1_000, [UNKNOWN, "elsewhere 920-940 503 redeem_timeout"], ENDED],
  ["report an attempt that a busy voucher ended", 1_000, [UNKNOWN, "redeem 920-940 503 voucher_busy"], ENDED],
  ["accept an attempt beside an unavailable service", 1_000, [UNKNOWN, "redeem 920-940 503 unavailable"], null],
  ["report a redemption after a busy voucher", 1_000, ["redeem 900-950 503 voucher_busy"], NO_ATTEMPT],
  // The process may have read the first call after it refused the second one.
  ["accept an attempt that may have been read later", 1_000, [UNKNOWN, "redeem 911-931 409 voucher_expired"], null],
  ["report an attempt given up", 11_000, ["redeem 900-950 hung up", "redeem 10903-10990 409 voucher_expired"], ENDED],
])("the fault campaigns' rules for redeems %s", (_what, at, calls, broken) => {
  const confirmed = { redeemed: true, voucherInstanceId: voucher.id, redeemCode: "R-1" };
  const history = historyOf(calls, { ...confirmed, redeemedAt: new Date(at).toISOString() });
  const records = toRecords(new SteppedClock(), { redemptions: [redeemedAt(at)] });
  expect(checkRedeems(history, records, WAIT_MS).map(({ rule }) => rule)).toEqual(broken === null ? [] : [broken]);
});

it.each<[what: string, freeze: Freeze, broken: string | null]>([
  ["report a redemption of a request that waited for a frozen process", { fromMs: 850, untilMs: 4_000 }, NO_ATTEMPT],
  ["accept a redemption of a process that was frozen too shortly to notice it", { fromMs: 850, untilMs: 3_000 }, null],
  ["accept a redemption of a process that was frozen after the request", { fromMs: 950, untilMs: 4_000 }, null],
  ["accept a redemption of a process that went on before the caller gave up", { fromMs: -3_000, untilMs: 1_900 }, null],
])("the fault campaigns' rules for freezes %s", (_what, freeze, broken) => {
  const records = toRecords(new SteppedClock(), { redemptions: [redeemedAt(4_100)] });
  const history = historyOf(["redeem 900-2000 hung up"]);
  const found = checkRedeems(history, records, WAIT_MS, new Map([["api-1", [freeze]]]));
  expect(found.map(({ rule }) => rule)).toEqual(broken === null ? [] : [broken]);
});

const HELD: RecordedReservation = {
  ticket: "rsv_1",
  voucherId: voucher.id,
  keyId: key.id,
  state: "Live",
  startedAtMs: 200,
  expiresAtMs: 900,
  endedAtMs: null,
};
const FOREIGN: RecordedReservation = { ...HELD, keyId: "key_web", expiresAtMs: 1_500 };

it.each<
  [what: string, ticket: string | null, reservation: RecordedReservation, token: string | null, isRight: boolean]
>([
  ["another key's reservation", null, FOREIGN, null, false],
  ["the own key's reservation", null, { ...FOREIGN, keyId: key.id }, null, true],
  ["another key's reservation that began later", null, { ...FOREIGN, startedAtMs: 1_001 }, null, true],
  ["another key's reservation that had ended", null, { ...FOREIGN, endedAtMs: 900 }, null, true],
  ["another key's reservation, which it consumed", "rsv_1", { ...FOREIGN, endedAtMs: 1_000 }, null, false],
  ["another key's reservation, which it consumed with its token", "rsv_1", { ...FOREIGN, endedAtMs: 1_000 }, "t", true],
])("the fault campaigns' rules judge a redemption during %s", (_what, ticket, reservation, token, isRight) => {
  const redemptions = [{ ...redeemedAt(1_000), ticket }];
  const records = toRecords(new SteppedClock(), { redemptions, reservations: [reservation] });
  const history = historyOf(["redeem 900-2000 hung up"]);
  for (const { ask } of history.of("redeem")) Object.assign(ask, { token });
  const found = checkRedeems(history, records, WAIT_MS).map(({ rule }) => rule);
  expect(found).toEqual(isRight ? [] : ["a reservation keeps other keys out"]);
});

/** Makes a user's claim, from a text such as "ann vch_1 1000". */
function acquired(text: string, batchId = offer.batchId): RecordedAcquisition {
  const [user, voucherId = "", atMs = "1000"] = text.split(" ");
  return { acquisition: `claim ${user} prd_1`, voucherId, batchId, acquiredAtMs: Number(atMs) };
}

const ANN = "ann 900-1050 200 first vch_1";
const ALL = ["ann 900-2000 hung up", "bob 900-2000 hung up", "eve 900-2000 hung up"];
const BEYOND = "no voucher is acquired twice or beyond supply";
const NEW_ONCE = "an acquisition is new once";
const NO_CALL = "an acquisition has a call";
const REPEATED = "a repeated acquisition is recognised";
const SOLD_OUT = "sold out means that nothing is left";

it.each<[what: string, acquisitions: string[], calls: string[], broken: string | null]>([
  [
    "accept acquisitions, repeats and a refusal when nothing is left",
    ["ann vch_1", "bob vch_2 1100"],
    [ANN, "ann 1060-1070 200 again vch_1", "bob 900-1200 503 voucher_busy", "eve 1000-1150 409 sold_out"],
    null,
  ],
  ["report an acquisition that two answers call new", ["ann vch_1"], [ANN, ANN], NEW_ONCE],
  ["report an acquisition that every call denied", ["ann vch_1"], ["ann 900-1050 200 again vch_1"], NO_CALL],
  [
    "report a refused repeat",
    ["ann vch_1", "bob vch_2"],
    [ANN, "bob 900-1050 hung up", "ann 1100-1150 409 sold_out"],
    REPEATED,
  ],
  [
    "report sold_out while vouchers are left",
    ["ann vch_1", "bob vch_2 1200"],
    [ANN, "bob 900-1250 200 first vch_2", "eve 1100-1150 409 sold_out"],
    SOLD_OUT,
  ],
  ["report a voucher of two users", ["ann vch_1", "bob vch_1"], ALL, BEYOND],
  ["report acquisitions beyond supply", ["ann vch_1", "bob vch_2", "eve vch_3"], ALL, BEYOND],
])("the fault campaigns' rules for claims and purchases %s", (_what, acquisitions, calls, broken) => {
  const recorded = acquisitions.map((text) => acquired(text));
  const found = checkAcquisitions(historyOf(calls), toRecords(new SteppedClock(), { acquisitions: recorded }));
  expect(found.map(({ rule }) => rule)).toEqual(broken === null ? [] : [broken]);
});

const HAS_VOUCHERS = "an issued batch has its vouchers";
const STILL_ACTIVE = "a voided batch has no Active voucher";
const NOT_ENDED = "an ended contract stays ended";

it.each<[what: string, voided: number, calls: string, broken: string[]]>([
  ["accept an issue and its repeat", 0, "100-200 batch issued, 201-300 batch repeated, 201-300 codes shown", []],
  ["accept a repeat of a call without an answer", 0, "100-200 batch gone, 150-300 batch repeated", []],
  ["report an issue with another count of vouchers", -1, "100-200 batch issued", [HAS_VOUCHERS]],
  ["report other content", 0, "10-20 batch issued, 30-40 batch repeated with other content", [HAS_VOUCHERS]],
  [
    "report several batches of a reference",
    0,
    "100-200 batch issued, 201-300 batch issued as another",
    [HAS_VOUCHERS, "a reference issues one batch", "an issue is new once"],
  ],
  ["report two first issues", 0, "100-200 batch issued, 201-300 batch issued", ["an issue is new once"]],
  ["report a repeat of nothing", 0, "1-9 batch refused, 10-20 batch repeated", ["a repeated issue has a first one"]],
  ["report codes that are missing", 0, "100-200 one code shown", ["a batch shows all of its vouchers"]],
  ["accept a void of a batch in parts", 2, "100-200 batch partly voided, 201-300 batch void ended", []],
  [
    "report a miscounted void",
    1,
    "100-200 batch miscounted",
    ["a void of a batch counts each voucher once", STILL_ACTIVE],
  ],
  ["report vouchers that are not voided", 1, "100-200 batch voided", ["a voided voucher stays voided", STILL_ACTIVE]],
  ["report vouchers that a repeat found final", 0, "100-200 batch found final", [STILL_ACTIVE]],
  ["accept an end of a contract and its repeat", 2, "1-9 contract ended, 10-20 contract found ended", []],
  ["accept an end without an answer", 1, "1-9 end of contract unknown", []],
  ["report a contract that is not ended", 1, "1-9 contract ended", [NOT_ENDED]],
  ["report a contract that a repeat found ended", 1, "1-9 contract found ended", [NOT_ENDED]],
])("the fault campaigns' rules for issues, batch voids and ends of contracts %s", (_what, voided, calls, broken) => {
  const batch = { id: "bat_1", vouchers: voided < 0 ? 1 : 2, voided, active: 2 - Math.abs(voided) };
  const records = toRecords(new SteppedClock(), { batches: [batch], endedContracts: voided === 2 ? ["ctr_1"] : [] });
  expect(checkIssuers(answersOf(calls.split(", ")), records).map(({ rule }) => rule)).toEqual(broken);
});

const SHOWN_AGAIN = "an erased reference is not shown again";
const TOO_SOON = "a reference is shown erased only after its erasure began";

it.each<[what: string, wasErased: boolean, calls: string, broken: string[]]>([
  ["accept an erasure", true, "1-9 redeemed, 10-20 erased, 15-25 listed, 21-30 listed as erased", []],
  ["accept an erasure without an answer", false, "1-9 redeemed, 10-20 erasure gone, 21-30 listed", []],
  ["accept an erasure before the redemption was told", false, "1-19 redeemed, 10-20 erased, 21-30 listed", []],
  ["report a reference that is shown again", true, "1-9 redeemed, 10-20 erased, 21-30 listed", [SHOWN_AGAIN]],
  [
    "report a reference that is erased too soon",
    true,
    "1-9 redeemed, 10-11 listed as erased, 12-20 erased",
    [TOO_SOON],
  ],
  ["report a reference that nothing erased", false, "1-9 redeemed, 10-11 listed as erased", [TOO_SOON]],
  ["report an erasure that is lost", false, "1-9 redeemed, 10-20 erased", ["an erasure stays"]],
])("the fault campaigns' rules for erasures %s", (_what, wasErased, calls, broken) => {
  const records = toRecords(new SteppedClock(), { redemptions: [{ ...redeemedAt(1_000), wasErased }] });
  expect(checkErasures(answersOf(calls.split(", ")), records).map(({ rule }) => rule)).toEqual(broken);
});

const RELEASED: RecordedReservation = { ...HELD, state: "Released", endedAtMs: 305 };

it("checkReleases reports a reservation that was released without a release call", () => {
  const records = toRecords(new SteppedClock(), { reservations: [RELEASED] });
  expect(checkReleases(answersOf(["300-310 released"]), records)).toEqual([]);
  expect(checkReleases(answersOf([]), records).map(({ rule }) => rule)).toEqual(["a release has a call"]);
});

it.each<[call: string, broken: string | null]>([
  ["300-310 active", null],
  ["300-310 held", null],
  ["300-310 held again", "a look-up shows a reservation of the voucher"],
  ["300-310 unknown", "every answer is documented"],
  ["300-310 chain broken", "no chain is ever broken"],
])("the fault campaigns' rules for single answers judge %s: %s", (call, broken) => {
  const records: Records = toRecords(new SteppedClock(), { reservations: [HELD] });
  expect(checkAnswers(answersOf([call]), records).map(({ rule }) => rule)).toEqual(broken === null ? [] : [broken]);
});

/** Runs `work` with a clock whose offset from the host's clock changes to these values at 2 s, 3 s and so on. */
async function withSteppedClock(offsetsMs: readonly number[], work: (clock: SteppedClock) => void) {
  const directory = mkdtempSync(join(tmpdir(), "stepped-clock-"));
  try {
    const clock = new SteppedClock(join(directory, "offset"));
    for (const [step, offsetMs] of offsetsMs.entries()) {
      vi.useFakeTimers({ toFake: ["Date"], now: 2_000 + step * 1_000 });
      await clock.set(offsetMs);
    }
    work(clock);
  } finally {
    vi.useRealTimers();
    rmSync(directory, { recursive: true });
  }
}

it("SteppedClock's range contains every time that a host clock with jumps may have shown", () =>
  withSteppedClock([5_000, -5_000, 0], (clock) => {
    // At 2 s of the host's clock, the clock steps to 7 s, at 3 s to -2 s, and at 4 s back to the host's time. A process
    // that has not read the last step yet continues from the time before it.
    expect([clock.first(1_500), clock.last(1_500)]).toEqual([1_500, 6_500]);
    expect([clock.first(7_500), clock.last(7_500)]).toEqual([2_500, 12_500]);
    expect([clock.first(20_000), clock.last(20_000)]).toEqual([20_000, 20_000]);
    expect(clock.latestShown(2_500, 3_500)).toBe(8_000);
  }));

it("SteppedClock's range contains the times of a process that has not noticed a jump of the host's clock", () =>
  withSteppedClock([-2_000, 4_000], (clock) => {
    // 100 ms after a step forward, a process that has not read it may decide at any time between its own 1.1 s and a
    // second later.
    for (const ms of [1_100, 2_100]) {
      expect(clock.first(ms)).toBeLessThanOrEqual(3_100);
      expect(clock.last(ms)).toBeGreaterThanOrEqual(3_100);
    }
    // A process follows a clock's step back at once.
    expect(clock.last(5_000)).toBe(7_000);
  }));

it("SteppedClock's range contains the service's times during a jump of the database's clock", () => {
  const yearMs = 365 * 86_400_000;
  return withSteppedClock([yearMs, 0, -yearMs, 0], (clock) => {
    // The database's clock was a year ahead from 2 s to 3 s of the host's clock, and a year behind from 4 s to 5 s.
    expect([clock.first(2_500), clock.last(2_500)]).toEqual([2_000, 5_000]);
    expect([clock.first(3_500), clock.last(3_500)]).toEqual([2_000, 5_000]);
    expect([clock.first(6_000), clock.last(6_000)]).toEqual([2_000, 6_000]);
  });
});

it("checkRedeems accepts a redemption after its deadline if a clock jump had moved closed_until ahead", () =>
  withSteppedClock([8_000, -8_000], (clock) => {
    const records = toRecords(clock, { redemptions: [redeemedAt(9_000)] });
    expect(checkRedeems(historyOf(["redeem 3100-3200 hung up"]), records, WAIT_MS)).toEqual([]);
    expect(checkRedeems(historyOf(["redeem 17100-17200 hung up"]), records, WAIT_MS)).toHaveLength(1);
  }));

/**
 * Makes a history of calls such as "redeem 900-1100 200 first": operation, times of request and answer, status, and
 * which body or voucher a success has. "hung up" means that the caller gave up, "refused" that the port was closed.
 */
function historyOf(calls: readonly string[], body: object = {}): History {
  const history = new History();
  for (const call of calls) {
    const [ask = "", times = "", word = "", code = "", voucherId] = call.split(" ");
    const [sentAtMs = 0, endedAtMs = 0] = times.split("-").map(Number);
    const status = /^\d/.test(word) ? Number(word) : null;
    const failure = ({ hung: "timeout", refused: "refused" }[word] ?? null) as Exchange["failure"];
    const answer = status === 200 ? { ...body, voucherId, alreadyConfirmed: code === "again" } : { code };
    history.add({
      ask: structuredClone(ASKS[ask]) as Ask,
      api: "api-1",
      attempt: 1,
      status,
      failure,
      retryAfter: "1",
      sentAtMs,
      endedAtMs,
      invokedMs: sentAtMs,
      returnedMs: endedAtMs,
      code: status === 200 || status === null ? undefined : code,
      body: status === null ? undefined : answer,
    });
  }
  return history;
}

function redeemedAt(redeemedAtMs: number, redeemCode = "R-1"): RecordedRedemption {
  const { id: voucherId, organizationId } = voucher;
  return { voucherId, organizationId, keyId: key.id, ticket: null, redeemCode, externalRef: "order-1", redeemedAtMs };
}
