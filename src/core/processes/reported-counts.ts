import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { reportPrefix } from "../../platform/redis/findings.ts";
import { type BucketCount, type Percentiles, percentilesOf } from "./latency-buckets.ts";

/** The length of a minute and an hour, and how long their counts are kept. Milliseconds. */
export const SPANS = {
  minute: { lengthMs: 60_000, keptMs: 2 * 3_600_000 },
  hour: { lengthMs: 3_600_000, keptMs: 50 * 3_600_000 },
};

/** Refusals and redeems of an organization, or of all, in a minute or an hour. */
export interface ReportedCounts {
  refusals: number;
  /** Buckets of latency, and the redeems in each; only of all organizations. */
  latencies: BucketCount[];
}

export const countsKey = (prefix: string, span: string, atMs: number) => `${prefix}:${span}:${atMs}`;

/**
 * Reads what processes have reported for minutes and hours that began at these times.
 * @throws Error when Redis does not answer.
 */
export async function readReported(
  redis: RedisClient,
  deployment: DeploymentIdentity,
  span: keyof typeof SPANS,
  times: readonly Date[],
  organizationId: string | null,
): Promise<ReportedCounts[]> {
  const field = organizationId === null ? "refusals" : `refusals ${organizationId}`;
  const asked = redis.pipeline();
  for (const at of times) asked.hgetall(countsKey(reportPrefix(deployment), span, at.getTime()));
  return ((await asked.exec()) ?? []).map(([, found]) => {
    const counts = (found ?? {}) as Record<string, string>;
    const latencies = Object.entries(counts).flatMap(([name, count]) =>
      name.startsWith("latency ") ? [[Number(name.slice(8)), Number(count)] as const] : [],
    );
    return { refusals: Number(counts[field] ?? 0), latencies };
  });
}

/** The latencies of redeems in the last minutes, the present one included. @throws Error when Redis does not answer. */
export async function readLatencies(
  redis: RedisClient,
  deployment: DeploymentIdentity,
  now: Date,
  minutes: number,
): Promise<Percentiles> {
  const { lengthMs } = SPANS.minute;
  const last = now.getTime() - (now.getTime() % lengthMs);
  const times = Array.from({ length: minutes }, (_, back) => new Date(last - back * lengthMs));
  const reported = await readReported(redis, deployment, "minute", times, null);
  return percentilesOf(reported.flatMap(({ latencies }) => latencies));
}
