import type { COUNTED } from "../core/processes/fault-counts.ts";
import type { Facts } from "./facts.ts";
import type { Found } from "./found.ts";
import { nameProcess } from "./judge-redeeming.ts";

const EVERYONE = "All organizations";
const MINUTE_MS = 60_000;
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** A kind that is a fault when a count is greater than the limit. */
const ofCount =
  (kind: keyof typeof COUNTED, describe: (count: number) => string, confirmMs = 0) =>
  ({ counts }: Facts, limit: number): Found[] | null => {
    if (counts === null) return null;
    const count = counts[kind] ?? 0;
    return count > limit ? [{ what: describe(count), subject: EVERYONE, confirmMs }] : [];
  };

const several = (count: number, one: string, many: string) => (count === 1 ? `1 ${one}` : `${count} ${many}`);

export const findOverloaded = ofCount(
  "overloaded",
  (count) => `${several(count, "call was", "calls were")} refused because too many wait`,
  2 * MINUTE_MS,
);
export const findForeignMessages = ofCount(
  "foreignMessages",
  (count) => `${several(count, "message was", "messages were")} of another deployment or database`,
);
export const findInternalErrors = ofCount("internalErrors", (count) =>
  several(count, "unexpected error occurred", "unexpected errors occurred"),
);
export const findReferencesReused = ofCount(
  "referencesReused",
  (count) => `${several(count, "reference was", "references were")} used for another voucher`,
);
export const findCodesGuessed = ofCount(
  "codesGuessed",
  (count) => `${several(count, "call was", "calls were")} refused because a key tried too many unknown codes`,
);
export const findDroppedLines = ofCount(
  "logLinesDropped",
  (count) => `${several(count, "log line was", "log lines were")} dropped`,
);

/** More failures than mistyped passwords explain: the maximum of one address in 15 minutes. */
const SIGN_INS_MANY = 10;

/** @param failuresMax maximum number of failed sign-ins to the operator pages that is no fault. */
export function findFailedSignIns({ counts }: Facts, failuresMax: number): Found[] | null {
  if (counts === null) return null;
  const count = counts.signInsFailed ?? 0;
  if (count <= failuresMax) return [];
  const what = several(count, "sign-in to these pages has failed", "sign-ins to these pages have failed");
  return [{ what, subject: "Operator pages", ...(count < SIGN_INS_MANY && { severity: "grey" }) }];
}

/** @param shareMax maximum share of a minute's responses that is no fault. */
export function findErrors({ counts }: Facts, shareMax: number): Found[] | null {
  if (counts === null) return null;
  const share = (counts.errors ?? 0) / Math.max(1, counts.responses ?? 0);
  const what = `${PERCENT.format(share)} of all responses are errors (5xx)`;
  return share > shareMax ? [{ what, subject: EVERYONE, confirmMs: 5 * MINUTE_MS }] : [];
}

/** Finds tasks of the sweeper that failed repeatedly, and still fail. */
export function findSweepFailures({ counts }: Facts, failuresMax: number): Found[] | null {
  if (counts === null) return null;
  return Object.entries(counts).flatMap(([name, count]) => {
    const [kind, task = ""] = name.split(" ");
    const fails = kind === "sweepFailures" && count > failuresMax && (counts[`sweepFailuresNow ${task}`] ?? 0) > 0;
    return fails ? [{ what: "A task of the sweeper fails", subject: task }] : [];
  });
}

/** @param callsMax maximum number of calls of a process that wait for a connection and are no fault. */
export function findExhaustedPools({ processes }: Facts, callsMax: number): Found[] | null {
  if (processes === null) return null;
  const what = "Calls of a process wait for a connection to Postgres";
  return processes
    .filter(({ state, waitingCalls = 0 }) => state === "up" && waitingCalls > callsMax)
    .map((one) => ({ what, subject: nameProcess(one), confirmMs: 2 * MINUTE_MS }));
}

/** @param secondsMax the time within which 99 % of the redeems of five minutes must end. */
export function findSlowRedeems({ latencyMs }: Facts, secondsMax: number): Found[] | null {
  if (latencyMs === null) return null;
  if ((latencyMs.p99 ?? 0) <= secondsMax * 1_000) return [];
  const what = "One redeem in a hundred takes longer than a second";
  return [{ what, subject: EVERYONE, confirmMs: 10 * MINUTE_MS }];
}
