import { hostname } from "node:os";
import type { Logger } from "pino";
import packageJson from "../../../package.json" with { type: "json" };
import type { Deployment } from "../../db/deployment.ts";
import type { DeploymentIdentity } from "../../domain/deployment.ts";
import type { RedisClient } from "../../redis/connections.ts";

/** How often each process reports. Milliseconds. */
const REPORT_EVERY_MS = 5_000;
/** A process that has not reported for this long is gone. Milliseconds. */
const UP_MS = 15_000;
/** For how long a process that is gone is remembered. Milliseconds. */
const GONE_MS = 60_000;
/** The routes whose refusals operators see. */
const COUNTED_ROUTES = [
  "/partner/vouchers/redeem",
  "/partner/vouchers/reserve",
  "/r/:code/claim",
  "/products/:id/claim",
  "/products/:id/buy",
  "/marketplace/listings/:id/buy",
];
const [REDEEM_ROUTE] = COUNTED_ROUTES;
/** For how long the counts of a minute or an hour are kept, and its length. Milliseconds. */
const SPANS = {
  minute: { lengthMs: 60_000, keptMs: 2 * 3_600_000 },
  hour: { lengthMs: 3_600_000, keptMs: 50 * 3_600_000 },
};
/** Each bucket of latencies is this much larger than the one before: a percentile is at most 10 % wrong. */
const BUCKET_GROWTH = 1.2;
const BUCKETS_MAX = 64;

/** What a process says of itself. */
export interface ReportedProcess {
  role: string;
  host: string;
  pid: number;
  version: string;
  queues: string[];
  since: string;
  /** Share of one core since its last report. */
  cpu: number;
  memoryBytes: number;
  state: "up" | "gone";
}

/** Refusals and redeems of an organization, or of all, in a minute or an hour. */
export interface ReportedCounts {
  refusals: number;
  /** Buckets of latency, and the redeems in each; only of all organizations. */
  latencies: (readonly [bucket: number, count: number])[];
}

/** The prefix of everything that processes report. The braces keep it in one slot of a Redis Cluster. */
export const reportPrefix = ({ id }: Pick<DeploymentIdentity, "id">) => `{pva:${id}:overview}`;

export type ProcessReport = ReturnType<typeof openReport>;

/** Reports a process to Redis every five seconds: that it runs, and what it has refused and redeemed since. Loses a report if Redis is away. */
export function openReport(
  { redis, deployment, log }: { redis: RedisClient; deployment: Deployment; log: Logger },
  role: string,
  queues: readonly string[],
) {
  const self = { role, host: hostname(), pid: process.pid, version: packageJson.version, queues };
  let since = "";
  let counts = new Map<string, number>();
  let last = { cpu: process.cpuUsage(), at: performance.now() };
  const add = (field: string) => void counts.set(field, (counts.get(field) ?? 0) + 1);

  /** Sends the report. Never rejects. */
  async function send(): Promise<void> {
    const counted = counts;
    counts = new Map();
    try {
      const prefix = reportPrefix(deployment);
      const nowMs = deployment.clock.steadyNow().getTime();
      since ||= new Date(nowMs).toISOString();
      const id = `${self.host} ${self.pid} ${role} ${since}`;
      const { user, system } = process.cpuUsage(last.cpu);
      const cpu = (user + system) / 1_000 / Math.max(performance.now() - last.at, 1);
      last = { cpu: process.cpuUsage(), at: performance.now() };
      const sent = redis.pipeline();
      sent.set(`${prefix}:process:${id}`, "up", "PX", UP_MS + GONE_MS);
      const report = { ...self, since, cpu, memoryBytes: process.memoryUsage.rss() };
      sent.hset(`${prefix}:processes`, id, JSON.stringify(report));
      for (const [span, { lengthMs, keptMs }] of Object.entries(SPANS)) {
        const key = countsKey(prefix, span, nowMs - (nowMs % lengthMs));
        for (const [field, count] of counted) sent.hincrby(key, field, count);
        if (counted.size > 0) sent.pexpire(key, keptMs);
      }
      await sent.exec();
    } catch (error) {
      log.debug({ err: error }, "cannot report this process");
    }
  }

  const timer = setInterval(() => void send(), REPORT_EVERY_MS).unref();
  deployment.ready().then(send, send);
  return {
    send,
    /** Counts a response in memory. */
    observe(route: string | undefined, status: number, durationMs: number, organizationId: string | undefined): void {
      if (route === undefined || !COUNTED_ROUTES.includes(route)) return;
      if (route === REDEEM_ROUTE && status !== 499) {
        const bucket = Math.round(Math.log(Math.max(durationMs, 1)) / Math.log(BUCKET_GROWTH));
        add(`latency ${Math.min(bucket, BUCKETS_MAX)}`);
      }
      if (status < 400 || status > 498) return;
      add("refusals");
      if (organizationId !== undefined) add(`refusals ${organizationId}`);
    },
    close: async () => clearInterval(timer),
  };
}

const countsKey = (prefix: string, span: string, atMs: number) => `${prefix}:${span}:${atMs}`;

/** The processes that report, and those that stopped less than a minute ago, in order of role and host. @throws Error when Redis does not answer. */
export async function readProcesses(redis: RedisClient, deployment: DeploymentIdentity): Promise<ReportedProcess[]> {
  const prefix = reportPrefix(deployment);
  const reports = Object.entries(await redis.hgetall(`${prefix}:processes`)).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const asked = redis.pipeline();
  for (const [id] of reports) asked.pttl(`${prefix}:process:${id}`);
  const ttls = ((await asked.exec()) ?? []).map(([, ttl]) => Number(ttl));
  const forgotten = reports.filter((_, index) => (ttls[index] ?? 0) < 0).map(([id]) => id);
  if (forgotten.length > 0) await redis.hdel(`${prefix}:processes`, ...forgotten);
  return reports
    .flatMap(([, report], index): ReportedProcess[] => {
      const ttl = ttls[index] ?? -1;
      return ttl < 0 ? [] : [{ ...JSON.parse(report), state: ttl > GONE_MS ? "up" : "gone" }];
    })
    .toSorted((a, b) => (a.role < b.role ? -1 : a.role > b.role ? 1 : 0));
}

/** Reads what processes have reported for minutes and hours that began at these times. @throws Error when Redis does not answer. */
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

/** The latency, in milliseconds, below which a share of the redeems ended; null without redeems. */
export function findPercentile(counts: readonly ReportedCounts[], share: number): number | null {
  const sorted = counts.flatMap(({ latencies }) => latencies).toSorted(([a], [b]) => a - b);
  let left = Math.ceil(share * sorted.reduce((sum, [, count]) => sum + count, 0));
  for (const [bucket, count] of sorted) {
    left -= count;
    if (left <= 0) return Math.round(BUCKET_GROWTH ** bucket * 10) / 10;
  }
  return null;
}
