import { findLimit } from "../watch/find-limit.ts";
import type { LoadResult } from "./scale-load.ts";
import type { Measured } from "./scale-meters.ts";

/** The results of a load, and how busy each part was during it. */
interface Scale extends LoadResult, Measured {
  organization: string;
  callers: number;
}

/** At this share or more, a machine has no free cores. */
const MACHINE_FULL = 0.95;

const ADVICE = {
  API: "The API is the limit now. Add an API, and send it a share of the calls.",
  worker: "The workers are the limit now. Add a worker.",
  Redis: "Redis is the limit now. Use a Redis Cluster: docs/scaling.md.",
  Postgres:
    "Postgres is the limit now. Add a worker, which commits one more batch at a time; if the rate stays the same, " +
    "Postgres needs a faster disk or more cores.",
};

/** The report for a person, or with `json` for a program. */
export function showScale(scale: Scale, json: boolean): string {
  const { redemptions, isCut: _, seconds, refusals, latencyMs, parts, machine } = scale;
  const limit = refusals.rate_limited ? "rate limit" : findLimit(parts);
  const perSecond = Math.round(redemptions / seconds);
  if (json) {
    const shown = parts.map(({ name, busy, processes }) => ({ part: name, busy, processes }));
    const { organization, callers } = scale;
    const load = { organization, callers, seconds, redemptionsPerSecond: perSecond, latencyMs, refusals };
    return JSON.stringify({ ...load, parts: shown, machine, limit });
  }
  const times = `half of the answers within ${latencyMs?.p50.toFixed(0)} ms, 99 of 100 \
within ${latencyMs?.p99.toFixed(0)} ms`;
  const refused = Object.entries(refusals).map(([code, count]) => `${count} ${code}`);
  return [
    `${perSecond} redemptions a second; ${times}.`,
    `Refused: ${refused.join(", ") || "none"}.\n`,
    showRow("Part", "Works", "Processes"),
    ...parts.map(({ name, busy, processes }) => showRow(name, showShare(busy), String(processes))),
    `\n${describeLimit(limit, machine !== null && machine >= MACHINE_FULL)}`,
  ].join("\n");
}

const showRow = (part: string, works: string, processes: string) =>
  `${part.padEnd(10)}${works.padStart(9)}${processes.padStart(12)}`;

const showShare = (share: number | null) => (share === null ? "unknown" : `${Math.round(share * 100)} %`);

function describeLimit(limit: ReturnType<typeof findLimit> | "rate limit", isFull: boolean): string {
  if (limit === "rate limit") return "RATE_LIMIT_RPS is the limit now: keys were refused for calling too often.";
  const full =
    "All cores of this machine are in use, by this load as well: more processes help only on other machines.";
  if (limit === null) return isFull ? full : "No part is at its limit. Give more callers: --callers.";
  return isFull ? `${ADVICE[limit]}\n${full}` : ADVICE[limit];
}
