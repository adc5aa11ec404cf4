import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { reportPrefix } from "../../platform/redis/findings.ts";
import { heartbeatKey, type Report, reportsKey } from "./process-report.ts";
import { NO_OUTCOMES } from "./redeem-outcomes.ts";

/** How long a process that ended properly is shown. Milliseconds. */
const ENDED_SHOWN_MS = 600_000;
/** Maximum number of remembered processes that are gone. The oldest are forgotten first. */
const GONE_MAX = 100;

/** A process as operators see it. */
export interface ReportedProcess extends Report {
  id: string;
  /** `ended`: it has reported its end. `gone`: it vanished, and no other process has taken its place. */
  state: "up" | "ended" | "gone";
}

/** The Redis key that stores, by the id of each process that replaced another, the id of the replaced one. */
const placesKey = (deployment: Pick<DeploymentIdentity, "id">) => `${reportPrefix(deployment)}:places`;

/**
 * The processes that report, those that ended less than ten minutes before the newest report, and those that vanished
 * and have no successor, in order of role. Forgets the others. @throws Error when Redis does not answer.
 */
export async function readProcesses(
  redis: RedisClient,
  deployment: Pick<DeploymentIdentity, "id">,
): Promise<ReportedProcess[]> {
  const [reports, places] = await Promise.all([
    redis.hgetall(reportsKey(deployment)),
    redis.hgetall(placesKey(deployment)),
  ]);
  const asked = redis.pipeline();
  for (const id of Object.keys(reports)) asked.exists(heartbeatKey(deployment, id));
  const beats = ((await asked.exec()) ?? []).map(([, exists]) => exists === 1);
  const all = Object.entries(reports).map(([id, text], index) => parseReport(id, text, beats[index] ?? false));
  const successors = findSuccessors(all, places);
  const nowMs = Math.max(...all.map(({ at }) => Date.parse(at)));
  const isKept = (one: ReportedProcess) =>
    one.state === "ended" ? nowMs - Date.parse(one.endedAt ?? one.at) < ENDED_SHOWN_MS : !successors.has(one.id);
  const gone = all.filter((one) => one.state === "gone" && isKept(one)).toSorted(byAge);
  const kept = all.filter((one) => isKept(one) && !gone.slice(GONE_MAX).includes(one));
  const forgotten = all.filter((one) => !kept.includes(one)).map(({ id }) => id);
  const changes = redis.pipeline();
  for (const [leaver, successor] of successors) changes.hset(placesKey(deployment), successor, leaver);
  if (forgotten.length > 0) changes.hdel(reportsKey(deployment), ...forgotten);
  const left = Object.keys(places).filter((id) => !(id in reports));
  if (left.length > 0) changes.hdel(placesKey(deployment), ...left);
  if (changes.length > 0) await changes.exec();
  return kept.toSorted((a, b) => compare(a.role, b.role) || compare(a.id, b.id));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
/** The newest first. */
const byAge = (a: ReportedProcess, b: ReportedProcess) => compare(b.at, a.at);

/** Values of fields that a process of an earlier release does not report. */
const UNREPORTED = { queueShards: [], workerShards: null, stallingMs: 0, problem: null };

function parseReport(id: string, text: string, isUp: boolean): ReportedProcess {
  const report: Partial<Report> & Pick<Report, "since"> = JSON.parse(text);
  const endedAt = report.endedAt ?? null;
  return {
    ...UNREPORTED,
    ...(report as Report),
    at: report.at ?? report.since,
    redeems: report.redeems ?? NO_OUTCOMES,
    endedAt,
    id,
    state: isUp ? "up" : endedAt === null ? "gone" : "ended",
  };
}

/**
 * How long before or after the end of a process its successor may begin. A cold start and a drain last seconds.
 * Milliseconds.
 */
const TURNOVER_MS = 120_000;

/**
 * The order in which processes that have left get successors, and how long after the end of a process its successor has
 * begun. A process that ended properly before its successor began comes after those that vanished.
 */
const TURNOVERS = [
  { state: "ended", fromMs: -TURNOVER_MS, toMs: 0 },
  { state: "gone", fromMs: 0, toMs: Number.POSITIVE_INFINITY },
  { state: "ended", fromMs: 0, toMs: TURNOVER_MS },
  { state: "gone", fromMs: -TURNOVER_MS, toMs: 0 },
] as const;

/**
 * Finds a successor for each process that has left: a process of its kind that began after its end or shortly before
 * it, and that replaces no other process. So the number of running processes of a kind stays the same. Processes that
 * began together do not replace each other. A process with exactly the same work is preferred to one with more work,
 * which another place may need.
 * @param places the id of each replaced process, by the id of the process that replaced it.
 */
export function findSuccessors(
  all: readonly ReportedProcess[],
  places: Readonly<Record<string, string>>,
): Map<string, string> {
  const free = new Map(all.filter(({ state, id }) => state === "up" && !(id in places)).map((one) => [one.id, one]));
  const replaced = new Set(Object.values(places));
  const left = all.filter(({ id }) => !replaced.has(id)).toSorted((a, b) => compare(a.at, b.at));
  const successors = new Map<string, string>();
  const turns = TURNOVERS.flatMap((turnover) =>
    [isOfSameKind, isOfKind].map((mayReplace) => ({ ...turnover, mayReplace })),
  );
  for (const { state, fromMs, toMs, mayReplace } of turns) {
    for (const leaver of left.filter((one) => one.state === state && !successors.has(one.id))) {
      const successor = [...free.values()].find((one) => {
        const afterMs = Date.parse(one.since) - Date.parse(leaver.at);
        const isLater = fromMs === 0 || Date.parse(one.since) - Date.parse(leaver.since) >= TURNOVER_MS;
        return afterMs > fromMs && afterMs <= toMs && isLater && mayReplace(one, leaver);
      });
      if (successor === undefined) continue;
      successors.set(leaver.id, successor.id);
      free.delete(successor.id);
    }
  }
  return successors;
}

const isOfSameKind = (one: Report, other: Report) => isOfKind(one, other) && isOfKind(other, one);

/** Whether a process has the role, the queues and the shards of another one, and perhaps more. */
function isOfKind(one: Report, other: Report): boolean {
  const shards = one.workerShards;
  return (
    one.role === other.role &&
    other.queues.every((queue) => one.queues.includes(queue)) &&
    (shards === null || (other.workerShards?.every((shard) => shards.includes(shard)) ?? false))
  );
}

/** Forgets a process that is gone. @throws Error when Redis does not answer. */
export async function forgetProcess(
  redis: RedisClient,
  deployment: Pick<DeploymentIdentity, "id">,
  id: string,
): Promise<void> {
  if ((await redis.exists(heartbeatKey(deployment, id))) === 0) await redis.hdel(reportsKey(deployment), id);
}
