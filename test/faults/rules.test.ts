import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { type Ask, type AskFor, type Exchange, History } from "./history.ts";
import { type RecordedAcquisition, type RecordedRedemption, toRecords } from "./records.ts";
import { checkAcquisitions, checkRedeems } from "./rules.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks the rules of the campaign with hand-made histories.

const WAIT_MS = 3_000;
const key = { id: "key_till", secret: "", organizationId: "org_1" };
const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
const order = { externalRef: "order-1", by: { code: "CODE" }, token: null };
const redeem: AskFor<"redeem"> = { operation: "redeem", key, voucher, ...order };
const [another, byTicket, elsewhere] = [
  { ...redeem, key: { ...key, id: "key_web" } },
  { ...redeem, by: { ticket: "rsv_1" } },
  { ...redeem, voucher: { ...voucher, id: "vch_2" } },
];

/** The outcome of a call: "200 first" and "200 again" are successes; "hung up" is a caller that gave up. */
type Result = "200 first" | "200 again" | "hung up" | "refused" | `${409 | 503} ${string}`;
type Calls = [ask: Ask, sentAtMs: number, endedAtMs: number, result: Result, body?: object][];

function historyOf(calls: Calls): History {
  const history = new History();
  for (const [ask, sentAtMs, endedAtMs, result, body] of calls) {
    const [word = "", code = ""] = result.split(" ");
    const status = /^\d/.test(word) ? Number(word) : null;
    const failure = ({ hung: "timeout", refused: "refused" }[word] ?? null) as Exchange["failure"];
    const answer = status === 200 ? { ...body, alreadyConfirmed: code === "again" } : { code };
    history.add({
      ...{ ask, api: "api-1", attempt: 1, sentAtMs, endedAtMs, status, failure, retryAfter: "1" },
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

const confirmedAt = (atMs: number) => ({
  ...{ redeemed: true, voucherInstanceId: voucher.id, redeemCode: "R-1", redeemedAt: new Date(atMs).toISOString() },
});
const confirmed = confirmedAt(1_000);

const DENIED = "a denied redemption does not exist";
const NO_ATTEMPT = "a redemption has an attempt";
const ENDED = "a refusal ends what came before";
const UNTRUE = "a 200 stays true";
const hungUp: Calls[0] = [redeem, 0, 1_200, "hung up"];
const unknown: Calls[0] = [redeem, 900, 910, "503 redeem_unknown"];
const first: Calls[0] = [redeem, 900, 1_100, "200 first", confirmed];

it.each<[what: string, redemptions: RecordedRedemption[], calls: Calls, broken: string[]]>([
  [
    "accept an attempt and its repeat",
    [redeemedAt(1_000)],
    [first, [redeem, 1_200, 1_210, "200 again", confirmed]],
    [],
  ],
  [
    "accept a timeout before a later attempt redeems",
    [redeemedAt(3_600)],
    [
      [redeem, 500, 3_590, "503 redeem_timeout"],
      [redeem, 3_595, 3_700, "200 first", confirmedAt(3_600)],
    ],
    [],
  ],
  [
    "accept a redemption by a call that was sent after a refusal of its reference",
    [redeemedAt(1_000)],
    [
      [redeem, 800, 810, "503 redeem_unknown"],
      [redeem, 820, 840, "409 voucher_expired"],
      [redeem, 850, 1_100, "200 first", confirmed],
    ],
    [],
  ],
  // A denied retry after an earlier attempt redeemed, and one that may have been decided before.
  ...(
    [
      [1_298, [DENIED]],
      [1_299, []],
    ] as const
  ).map(([atMs, broken]): [string, RecordedRedemption[], Calls, string[]] => [
    `report a timeout of a retry after a redemption at ${atMs}: ${broken.length}`,
    [redeemedAt(atMs)],
    [hungUp, [redeem, 1_300, 4_400, "503 redeem_timeout"]],
    [...broken],
  ]),
  [
    "report a refusal of a redeemed reference",
    [redeemedAt(1_000)],
    [hungUp, [redeem, 1_002, 1_300, "409 voucher_expired"]],
    [DENIED],
  ],
  [
    "accept a refusal that may be older",
    [redeemedAt(1_000)],
    [hungUp, [redeem, 990, 1_300, "409 voucher_expired"]],
    [],
  ],
  [
    "report a redemption after its timeout",
    [redeemedAt(3_200)],
    [[redeem, 100, 3_150, "503 redeem_timeout"]],
    [NO_ATTEMPT],
  ],
  [
    "report a redemption after its refusal",
    [redeemedAt(1_000)],
    [[redeem, 900, 950, "409 voucher_expired"]],
    [NO_ATTEMPT],
  ],
  ["report a redemption of a call never accepted", [redeemedAt(1_000)], [[redeem, 800, 850, "refused"]], [NO_ATTEMPT]],
  [
    "report a redemption that is only repeated",
    [redeemedAt(1_000)],
    [[redeem, 800, 1_100, "200 again", confirmed]],
    [NO_ATTEMPT],
  ],
  ["report a redemption with another key", [redeemedAt(1_000)], [[another, 800, 2_000, "hung up"]], [NO_ATTEMPT]],
  ["report a redemption with another ticket", [redeemedAt(1_000)], [[byTicket, 800, 2_000, "hung up"]], [NO_ATTEMPT]],
  ["accept a redemption of a call that hung up", [redeemedAt(1_000)], [[redeem, 800, 2_000, "hung up"]], []],
  ["accept a redemption at the deadline", [redeemedAt(4_102)], [[redeem, 1_000, 1_100, "503 redeem_unknown"]], []],
  [
    "report a redemption after the deadline",
    [redeemedAt(4_103)],
    [[redeem, 1_000, 1_100, "503 redeem_unknown"]],
    [NO_ATTEMPT],
  ],
  // A frozen process may read a request after its caller hung up.
  ["accept a late redemption after a hang-up", [redeemedAt(4_103)], [[redeem, 1_000, 2_200, "hung up"]], []],
  ["report a far too late one", [redeemedAt(30_000)], [[redeem, 1_000, 2_200, "hung up"]], [NO_ATTEMPT]],
  [
    "report an attempt that a refusal ended",
    [redeemedAt(1_000)],
    [unknown, [redeem, 920, 940, "409 voucher_expired"]],
    [ENDED],
  ],
  [
    "report one that another voucher's timeout ended",
    [redeemedAt(1_000)],
    [unknown, [elsewhere, 920, 940, "503 redeem_timeout"]],
    [ENDED],
  ],
  ["accept one beside a busy voucher", [redeemedAt(1_000)], [unknown, [redeem, 920, 940, "503 voucher_busy"]], []],
  // The first call may have been read after the second one was refused.
  [
    "accept one that may have been read later",
    [redeemedAt(1_000)],
    [unknown, [redeem, 911, 931, "409 voucher_expired"]],
    [],
  ],
  [
    "report one that was given up and ended 20 s later",
    [redeemedAt(21_000)],
    [
      [redeem, 900, 950, "hung up"],
      [redeem, 20_903, 20_990, "409 voucher_expired"],
    ],
    [ENDED],
  ],
  [
    "report a timeout after a confirmation",
    [redeemedAt(1_000)],
    [first, [elsewhere, 1_200, 4_300, "503 redeem_timeout"]],
    ["a confirmed reference is confirmed"],
  ],
  ["report a 200 without a redemption", [], [first], [UNTRUE]],
  ["report a 200 with another redemption", [redeemedAt(1_000, "R-2")], [first], [UNTRUE]],
  [
    "report a 200 before its redemption",
    [redeemedAt(1_000)],
    [[redeem, 900, 990, "200 first", confirmed]],
    ["a redemption is confirmed after it is decided"],
  ],
])("the rules for redeems %s", (_what, redemptions, calls, broken) => {
  const records = toRecords(new SteppedClock(), redemptions, [], []);
  expect(checkRedeems(historyOf(calls), records, WAIT_MS).map(({ rule }) => rule)).toEqual(broken);
});

const offer = { productId: "prd_1", batchId: "bat_1", listingId: "lst_1", supply: 2 };
const [ann, bob, eve] = ["ann", "bob", "eve"].map(
  (id): Ask => ({ operation: "acquire", user: { id, token: "" }, offer, by: { claim: true } }),
) as [Ask, Ask, Ask];

function acquired(userId: string, voucherId: string, acquiredAtMs = 1_000, batchId = offer.batchId) {
  return { acquisition: `claim ${userId} prd_1`, voucherId, batchId, acquiredAtMs };
}

const [one, two] = [{ voucherId: "vch_1" }, { voucherId: "vch_2" }];
const annFirst: Calls[0] = [ann, 900, 1_050, "200 first", one];
const allHungUp: Calls = [ann, bob, eve].map((ask) => [ask, 900, 2_000, "hung up"]);
const NOT_OWN = "an acquired voucher stays the user's";
const BEYOND = "no voucher is acquired twice or beyond supply";

it.each<[what: string, acquisitions: RecordedAcquisition[], calls: Calls, broken: string[]]>([
  [
    "accept acquisitions, repeats and a refusal when nothing is left",
    [acquired("ann", "vch_1"), acquired("bob", "vch_2", 1_100)],
    [
      annFirst,
      [ann, 1_060, 1_070, "200 again", one],
      [bob, 900, 1_200, "503 voucher_busy"],
      [eve, 1_000, 1_150, "409 sold_out"],
    ],
    [],
  ],
  ["report a 200 whose voucher is not the user's", [], [annFirst], [NOT_OWN]],
  ["report one that changes", [acquired("ann", "vch_1")], [annFirst, [ann, 1_100, 1_150, "200 again", two]], [NOT_OWN]],
  ["report one of another offer", [acquired("ann", "vch_1", 1_000, "bat_2")], [annFirst], [NOT_OWN]],
  [
    "report an acquisition that is new twice",
    [acquired("ann", "vch_1")],
    [annFirst, annFirst],
    ["an acquisition is new once"],
  ],
  [
    "report one that every call denied",
    [acquired("ann", "vch_1")],
    [[ann, 900, 1_050, "200 again", one]],
    ["an acquisition has a call"],
  ],
  [
    "report a refused repeat",
    [acquired("ann", "vch_1"), acquired("bob", "vch_2")],
    [annFirst, [bob, 900, 1_050, "hung up"], [ann, 1_100, 1_150, "409 sold_out"]],
    ["a repeated acquisition is recognised"],
  ],
  [
    "report sold_out while vouchers are left",
    [acquired("ann", "vch_1"), acquired("bob", "vch_2", 1_200)],
    [annFirst, [bob, 900, 1_250, "200 first", two], [eve, 1_100, 1_150, "409 sold_out"]],
    ["sold out means that nothing is left"],
  ],
  ["report a voucher of two users", [acquired("ann", "vch_1"), acquired("bob", "vch_1")], allHungUp, [BEYOND]],
  [
    "report acquisitions beyond supply",
    ["ann", "bob", "eve"].map((user) => acquired(user, `vch_of_${user}`)),
    allHungUp,
    [BEYOND],
  ],
])("the rules for claims and purchases %s", (_what, acquisitions, calls, broken) => {
  const records = toRecords(new SteppedClock(), [], [], acquisitions);
  expect(checkAcquisitions(historyOf(calls), records).map(({ rule }) => rule)).toEqual(broken);
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

it("the host's times of a stepped clock enclose every moment at which it may have shown a time", () =>
  withSteppedClock(
    [
      [2_000, 5_000],
      [3_000, -5_000],
      [4_000, 0],
    ],
    (clock) => {
      // It showed 7 to 8 s after 2 s of the host, and -2 to -1 s after 3 s.
      expect([clock.first(1_500), clock.last(1_500)]).toEqual([1_500, 4_000]);
      expect([clock.first(7_500), clock.last(7_500)]).toEqual([2_500, 7_500]);
      expect([clock.first(9_000), clock.last(9_000)]).toEqual([9_000, 9_000]);
      expect(clock.latestShown(2_500, 3_500)).toBe(8_000);
    },
  ));

it("the rules accept a redemption that got the closed time after a step back, although its deadline was earlier", () =>
  withSteppedClock(
    [
      [2_000, 8_000],
      [3_000, -8_000],
    ],
    (clock) => {
      const records = toRecords(clock, [redeemedAt(9_000)], [], []);
      expect(checkRedeems(historyOf([[redeem, 3_100, 3_200, "hung up"]]), records, WAIT_MS)).toEqual([]);
      expect(checkRedeems(historyOf([[redeem, 17_100, 17_200, "hung up"]]), records, WAIT_MS)).toHaveLength(1);
    },
  ));
