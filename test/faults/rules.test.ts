import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { checkAcquisitions } from "./acquisition-rules.ts";
import { type Ask, type AskFor, type Exchange, History } from "./history.ts";
import type { RecordedAcquisition, RecordedRedemption, Records } from "./records.ts";
import { checkRedeems } from "./redeem-rules.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks the rules of the campaign with hand-made histories.

const WAIT_MS = 3_000;
const key = { id: "key_till", secret: "", organizationId: "org_1" };
const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
const redeem: AskFor<"redeem"> = {
  operation: "redeem",
  key,
  voucher,
  externalRef: "order-1",
  by: { code: "CODE" },
  token: null,
};
const redemption: RecordedRedemption = {
  voucherId: voucher.id,
  organizationId: "org_1",
  keyId: key.id,
  ticket: null,
  redeemCode: "R-1",
  externalRef: "order-1",
  redeemedAtMs: 1_000,
};

/** The outcome of a call: "200 first" and "200 again" are successes; "hung up" is a caller that gave up. */
type Result = "200 first" | "200 again" | "hung up" | "refused" | `${409 | 503} ${string}`;

function historyOf(
  ...calls: [ask: Ask, sentAtMs: number, endedAtMs: number, result: Result, body?: object][]
): History {
  const history = new History();
  for (const [ask, sentAtMs, endedAtMs, result, body] of calls) {
    const [word = "", code = ""] = result.split(" ");
    const status = /^\d/.test(word) ? Number(word) : null;
    const failure = { hung: "timeout", refused: "refused" }[word] ?? null;
    const answer = status === 200 ? { ...body, alreadyConfirmed: code === "again" } : { code };
    history.add({
      ask,
      api: "api-1",
      attempt: 1,
      sentAtMs,
      endedAtMs,
      status,
      failure: failure as Exchange["failure"],
      retryAfter: "1",
      code: status === 200 || status === null ? undefined : code,
      body: status === null ? undefined : answer,
    });
  }
  return history;
}

function recordsOf(redemptions: RecordedRedemption[], acquisitions: RecordedAcquisition[] = []): Records {
  return {
    redemptionsByRef: new Map(redemptions.map((row) => [`${row.organizationId} ${row.externalRef}`, row])),
    redemptionsByVoucher: new Map(redemptions.map((row) => [row.voucherId, row])),
    reservationsByTicket: new Map(),
    reservationsByVoucher: new Map(),
    acquisitions: new Map(acquisitions.map((row) => [row.acquisition, row])),
    clock: new SteppedClock(),
  };
}

describe("the rules for redeems", () => {
  const confirmed = {
    redeemed: true,
    voucherInstanceId: voucher.id,
    redeemCode: "R-1",
    redeemedAt: new Date(redemption.redeemedAtMs).toISOString(),
  };
  const brokenRules = (redemptions: RecordedRedemption[], ...calls: Parameters<typeof historyOf>) =>
    checkRedeems(historyOf(...calls), recordsOf(redemptions), WAIT_MS).map(({ rule }) => rule);
  const DENIED = "a denied redemption does not exist";
  const NO_ATTEMPT = "a redemption has an attempt";

  it("the rules for redeems accept an attempt and its repeat, and a timeout before a later attempt redeems", () => {
    expect(
      brokenRules(
        [redemption],
        [redeem, 900, 1_100, "200 first", confirmed],
        [redeem, 1_200, 1_210, "200 again", confirmed],
      ),
    ).toEqual([]);
    expect(
      brokenRules(
        [{ ...redemption, redeemedAtMs: 3_600 }],
        [redeem, 500, 3_590, "503 redeem_timeout"],
        [redeem, 3_595, 3_700, "200 first", { ...confirmed, redeemedAt: new Date(3_600).toISOString() }],
      ),
    ).toEqual([]);
  });

  it("the rules for redeems report a timeout of a retry after an earlier attempt redeemed", () => {
    const first: Parameters<typeof historyOf>[0] = [redeem, 0, 1_200, "hung up"];
    const deniedAfter = (redeemedAtMs: number) =>
      brokenRules([{ ...redemption, redeemedAtMs }], first, [redeem, 1_300, 4_400, "503 redeem_timeout"]);
    expect(deniedAfter(1_298)).toEqual([DENIED]);
    expect(deniedAfter(1_299)).toEqual([]);
  });

  it("the rules for redeems report a redemption whose only attempts were denied, never accepted, or made with another key or ticket", () => {
    const at = (redeemedAtMs: number) => [{ ...redemption, redeemedAtMs }];
    expect(brokenRules(at(3_200), [redeem, 100, 3_150, "503 redeem_timeout"])).toEqual([NO_ATTEMPT]);
    expect(brokenRules(at(1_000), [redeem, 900, 950, "409 voucher_expired"])).toEqual([NO_ATTEMPT]);
    expect(brokenRules(at(1_000), [redeem, 800, 850, "refused"])).toEqual([NO_ATTEMPT]);
    expect(brokenRules(at(1_000), [redeem, 800, 1_100, "200 again", confirmed])).toEqual([NO_ATTEMPT]);
    const [another, byTicket] = [
      { ...redeem, key: { ...key, id: "key_web" } },
      { ...redeem, by: { ticket: "rsv_1" } },
    ];
    expect(brokenRules(at(1_000), [another, 800, 2_000, "hung up"])).toEqual([NO_ATTEMPT]);
    expect(brokenRules(at(1_000), [byTicket, 800, 2_000, "hung up"])).toEqual([NO_ATTEMPT]);
    expect(brokenRules(at(1_000), [redeem, 800, 2_000, "hung up"])).toEqual([]);
  });

  it("the rules for redeems report a redemption after the deadline of every attempt", () => {
    const at = (redeemedAtMs: number) => [{ ...redemption, redeemedAtMs }];
    expect(brokenRules(at(4_102), [redeem, 1_000, 1_100, "503 redeem_unknown"])).toEqual([]);
    expect(brokenRules(at(4_103), [redeem, 1_000, 1_100, "503 redeem_unknown"])).toEqual([NO_ATTEMPT]);
    // A frozen process may read a request after its caller hung up.
    expect(brokenRules(at(4_103), [redeem, 1_000, 2_200, "hung up"])).toEqual([]);
    expect(brokenRules(at(30_000), [redeem, 1_000, 2_200, "hung up"])).toEqual([NO_ATTEMPT]);
  });

  it("the rules for redeems report a refusal of a reference that has redeemed the voucher", () => {
    const refusedFrom = (sentAtMs: number) =>
      brokenRules([redemption], [redeem, 0, 1_200, "hung up"], [redeem, sentAtMs, 1_300, "409 voucher_expired"]);
    expect(refusedFrom(1_002)).toEqual([DENIED]);
    expect(refusedFrom(990)).toEqual([]);
  });

  it("the rules for redeems report a redemption by an attempt that was made before a refusal or a timeout of its reference, also for another voucher", () => {
    const elsewhere = { ...redeem, voucher: { ...voucher, id: "vch_2" } };
    const first: Parameters<typeof historyOf>[0] = [redeem, 900, 910, "503 redeem_unknown"];
    const told = (ask: Ask, sentAtMs: number, result: Result, redeemedAtMs = 1_000) =>
      brokenRules([{ ...redemption, redeemedAtMs }], first, [ask, sentAtMs, sentAtMs + 20, result]);
    expect(told(redeem, 920, "409 voucher_expired")).toEqual(["a refusal ends what came before"]);
    expect(told(elsewhere, 920, "503 redeem_timeout")).toEqual(["a refusal ends what came before"]);
    expect(told(redeem, 920, "503 voucher_busy")).toEqual([]);
    // The first call may have been read after the second one was refused.
    expect(told(redeem, 911, "409 voucher_expired")).toEqual([]);
    const given: typeof first = [redeem, 900, 950, "hung up"];
    const redeemedLate = { ...redemption, redeemedAtMs: 21_000 };
    expect(brokenRules([redeemedLate], given, [redeem, 20_903, 20_990, "409 voucher_expired"])).toEqual([
      "a refusal ends what came before",
    ]);
  });

  it("the rules for redeems accept a redemption by a call that was sent after a refusal of its reference", () => {
    expect(
      brokenRules(
        [redemption],
        [redeem, 800, 810, "503 redeem_unknown"],
        [redeem, 820, 840, "409 voucher_expired"],
        [redeem, 850, 1_100, "200 first", confirmed],
      ),
    ).toEqual([]);
  });

  it("the rules for redeems report a timeout after a confirmation", () => {
    const elsewhere = { ...redeem, voucher: { ...voucher, id: "vch_2" } };
    expect(
      brokenRules(
        [redemption],
        [redeem, 900, 1_100, "200 first", confirmed],
        [elsewhere, 1_200, 4_300, "503 redeem_timeout"],
      ),
    ).toEqual(["a confirmed reference is confirmed"]);
  });

  it("the rules for redeems report a 200 without a redemption, with another redemption, and before its redemption", () => {
    expect(brokenRules([], [redeem, 900, 1_100, "200 first", confirmed])).toEqual(["a 200 stays true"]);
    expect(brokenRules([{ ...redemption, redeemCode: "R-2" }], [redeem, 900, 1_100, "200 first", confirmed])).toEqual([
      "a 200 stays true",
    ]);
    expect(brokenRules([redemption], [redeem, 900, 990, "200 first", confirmed])).toEqual([
      "a redemption is confirmed after it is decided",
    ]);
  });
});

describe("the rules for claims and purchases", () => {
  const offer = { productId: "prd_1", batchId: "bat_1", listingId: "lst_1", supply: 2 };
  const claimOf = (userId: string): AskFor<"acquire"> => ({
    operation: "acquire",
    user: { id: userId, token: "" },
    offer,
    by: { claim: true },
  });
  const acquired = (userId: string, voucherId: string, acquiredAtMs = 1_000): RecordedAcquisition => ({
    acquisition: `claim ${userId} prd_1`,
    voucherId,
    batchId: offer.batchId,
    acquiredAtMs,
  });
  const brokenRules = (acquisitions: RecordedAcquisition[], ...calls: Parameters<typeof historyOf>) =>
    checkAcquisitions(historyOf(...calls), recordsOf([], acquisitions)).map(({ rule }) => rule);
  const [ann, bob] = [claimOf("ann"), claimOf("bob")];
  const answered = (voucherId: string) => ({ voucherId });

  it("the rules for claims and purchases accept acquisitions, repeats and a refusal when nothing is left", () => {
    expect(
      brokenRules(
        [acquired("ann", "vch_1"), acquired("bob", "vch_2", 1_100)],
        [ann, 900, 1_050, "200 first", answered("vch_1")],
        [ann, 1_060, 1_070, "200 again", answered("vch_1")],
        [bob, 900, 1_200, "503 voucher_busy"],
        [claimOf("eve"), 1_000, 1_150, "409 sold_out"],
      ),
    ).toEqual([]);
  });

  it("the rules for claims and purchases report a 200 whose voucher is not the user's, changes, or belongs to another offer", () => {
    const rule = "an acquired voucher stays the user's";
    expect(brokenRules([], [ann, 900, 1_050, "200 first", answered("vch_1")])).toEqual([rule]);
    expect(
      brokenRules(
        [acquired("ann", "vch_1")],
        [ann, 900, 1_050, "200 first", answered("vch_1")],
        [ann, 1_100, 1_150, "200 again", answered("vch_2")],
      ),
    ).toEqual([rule]);
    expect(
      brokenRules(
        [{ ...acquired("ann", "vch_1"), batchId: "bat_2" }],
        [ann, 900, 1_050, "200 first", answered("vch_1")],
      ),
    ).toEqual([rule]);
  });

  it("the rules for claims and purchases report an acquisition that is new twice, and one that every call denied", () => {
    const twice: Parameters<typeof historyOf>[0] = [ann, 900, 1_050, "200 first", answered("vch_1")];
    expect(brokenRules([acquired("ann", "vch_1")], twice, twice)).toEqual(["an acquisition is new once"]);
    expect(brokenRules([acquired("ann", "vch_1")], [ann, 900, 1_050, "200 again", answered("vch_1")])).toEqual([
      "an acquisition has a call",
    ]);
  });

  it("the rules for claims and purchases report a refused repeat, and sold_out while vouchers are left", () => {
    const eve = claimOf("eve");
    expect(
      brokenRules(
        [acquired("ann", "vch_1"), acquired("bob", "vch_2")],
        [ann, 900, 1_050, "200 first", answered("vch_1")],
        [bob, 900, 1_050, "hung up"],
        [ann, 1_100, 1_150, "409 sold_out"],
      ),
    ).toEqual(["a repeated acquisition is recognised"]);
    expect(
      brokenRules(
        [acquired("ann", "vch_1"), acquired("bob", "vch_2", 1_200)],
        [ann, 900, 1_050, "200 first", answered("vch_1")],
        [bob, 900, 1_250, "200 first", answered("vch_2")],
        [eve, 1_100, 1_150, "409 sold_out"],
      ),
    ).toEqual(["sold out means that nothing is left"]);
  });

  it("the rules for claims and purchases report a voucher of two users, and acquisitions beyond supply", () => {
    const rule = "no voucher is acquired twice or beyond supply";
    const users = ["ann", "bob", "eve"];
    const calls = users.map((user): Parameters<typeof historyOf>[0] => [claimOf(user), 900, 2_000, "hung up"]);
    expect(brokenRules([acquired("ann", "vch_1"), acquired("bob", "vch_1")], ...calls)).toEqual([rule]);
    const each = users.map((user) => acquired(user, `vch_of_${user}`));
    expect(brokenRules(each, ...calls)).toEqual([rule]);
  });
});

/** Runs `work` with a clock that was set to these distances at these times. */
async function withSteppedClock(steps: [atMs: number, offsetMs: number][], work: (clock: SteppedClock) => void) {
  const directory = mkdtempSync(join(tmpdir(), "stepped-clock-"));
  try {
    const clock = new SteppedClock(join(directory, "offset"));
    for (const [atMs, offsetMs] of steps) {
      vi.useFakeTimers({ toFake: ["Date"], now: atMs });
      await clock.set(offsetMs);
    }
    work(clock);
  } finally {
    vi.useRealTimers();
    rmSync(directory, { recursive: true });
  }
}

it("the host's times of a stepped clock enclose every moment at which it may have shown a time", async () => {
  const steps: [number, number][] = [
    [2_000, 5_000],
    [3_000, -5_000],
    [4_000, 0],
  ];
  await withSteppedClock(steps, (clock) => {
    // It showed 7 to 8 s after 2 s of the host, and -2 to -1 s after 3 s.
    expect([clock.first(1_500), clock.last(1_500)]).toEqual([1_500, 4_000]);
    expect([clock.first(7_500), clock.last(7_500)]).toEqual([2_500, 7_500]);
    expect([clock.first(9_000), clock.last(9_000)]).toEqual([9_000, 9_000]);
    expect(clock.latestShown(2_500, 3_500)).toBe(8_000);
  });
});

it("the rules accept a redemption that got the closed time after a step back, although its deadline was earlier", async () => {
  const steps: [number, number][] = [
    [2_000, 8_000],
    [3_000, -8_000],
  ];
  await withSteppedClock(steps, (clock) => {
    const records = { ...recordsOf([{ ...redemption, redeemedAtMs: 9_000 }]), clock };
    expect(checkRedeems(historyOf([redeem, 3_100, 3_200, "hung up"]), records, WAIT_MS)).toEqual([]);
    expect(checkRedeems(historyOf([redeem, 17_100, 17_200, "hung up"]), records, WAIT_MS)).toHaveLength(1);
  });
});
