import { expect, it } from "vitest";
import { answer } from "./crafted-history.ts";
import { type Ask, History } from "./history.ts";
import { checkOrder } from "./order.ts";
import { TRUSTED_MS } from "./secret-ends.ts";
import { SteppedClock } from "./stepped-clock.ts";

// Checks `checkSecretEnds` on hand-made histories, in which an operator ends the secret between 1000 and 1100 ms.

const LATE = "an ended secret works no longer than it may be trusted";
const EARLY = "a secret works until it is ended";
const ENDED = { secret: "ended", invokedMs: 1_000, returnedMs: 1_100 };
const LAST_MS = ENDED.returnedMs + TRUSTED_MS;

const voucher = { id: "vch_1", code: "CODE", organizationId: "org_1" };
const FOUND = { id: "vch_1", status: "Active", redeemedAt: null, reservation: null };
const askWith = (secret: string, operation: "lookUp" | "publicEvents"): Ask => {
  return { operation, key: { id: "key_till", secret, organizationId: "org_1" }, voucher };
};

it.each<[what: string, graceMs: number, call: [secret: string, number, number, status: number | null], string[]]>([
  ["a success that was sent when a process may trust the secret", 0, ["ended", LAST_MS, 9_000, 200], []],
  ["a success that was sent later", 0, ["ended", LAST_MS + 1, 9_000, 200], [LATE]],
  ["a refusal of what the voucher does not allow", 0, ["ended", LAST_MS + 1, 9_000, 409], [LATE]],
  ["a refusal of what the key may not do", 0, ["ended", LAST_MS + 1, 9_000, 403], [LATE]],
  ["an unknown voucher", 0, ["ended", LAST_MS + 1, 9_000, 404], [LATE]],
  ["a refusal of the secret", 0, ["ended", LAST_MS + 1, 9_000, 401], []],
  ["an unavailable service", 0, ["ended", LAST_MS + 1, 9_000, 503], []],
  ["too many calls", 0, ["ended", LAST_MS + 1, 9_000, 429], []],
  ["no answer", 0, ["ended", LAST_MS + 1, 9_000, null], []],
  ["a success with another secret", 0, ["new", LAST_MS + 1, 9_000, 200], []],
  ["a success after a grace shorter than the trust", 300, ["ended", LAST_MS + 1, 9_000, 200], [LATE]],
  ["a success within the trust after such a grace", 300, ["ended", LAST_MS, 9_000, 200], []],
  ["a success within a long grace", 4_000, ["ended", 5_100, 9_000, 200], []],
  ["a success after a long grace", 4_000, ["ended", 5_101, 9_000, 200], [LATE]],
  ["a refusal of the secret before its end", 0, ["ended", 900, 999, 401], [EARLY]],
  ["a refusal of the secret during the act", 0, ["ended", 900, 1_000, 401], []],
  ["a refusal of the secret within the grace", 4_000, ["ended", 4_000, 4_999, 401], [EARLY]],
  ["a refusal of the secret at the end of the grace", 4_000, ["ended", 4_000, 5_000, 401], []],
  ["a refusal of another secret", 0, ["new", 4_000, 5_000, 401], [EARLY]],
])("checkOrder judges %s with a grace of %i ms", (_what, graceMs, [secret, invokedMs, returnedMs, status], broken) => {
  const history = new History();
  history.secretEnds.push({ ...ENDED, graceMs });
  history.add({ ...answer(invokedMs, returnedMs, askWith(secret, "lookUp"), FOUND), status });
  expect(brokenBy(history)).toEqual(broken);
});

it("checkOrder accepts answers to public reads of events with any secret", () => {
  const history = new History();
  history.secretEnds.push({ ...ENDED, graceMs: 0 });
  const chain = { hashes: ["a"], types: ["voucher.instance.issued"] };
  history.add(answer(9_000, 9_100, askWith("ended", "publicEvents"), chain));
  expect(brokenBy(history)).toEqual([]);
});

it("checkOrder judges answers to a secret by the secret's earliest end", () => {
  const history = new History();
  history.secretEnds.push({ ...ENDED, graceMs: 60_000 }, { ...ENDED, graceMs: 0 });
  const ask = askWith("ended", "lookUp");
  history.add(answer(LAST_MS + 1, 9_000, ask, FOUND));
  history.add({ ...answer(LAST_MS + 1, 9_000, ask, "unknown_key"), status: 401 });
  expect(brokenBy(history)).toEqual([LATE]);
});

const brokenBy = (history: History) => checkOrder(history, new SteppedClock()).map(({ rule }) => rule);
