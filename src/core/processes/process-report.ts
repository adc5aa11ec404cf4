import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import pTimeout from "p-timeout";
import type { Logger } from "pino";
import packageJson from "../../../package.json" with { type: "json" };
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { ReportedAs } from "../../platform/http/endpoint.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { reportPrefix } from "../../platform/redis/findings.ts";
import { FaultCounter, type FaultCounts } from "./fault-counts.ts";
import { openJobCounts } from "./job-counts.ts";
import { bucketOf } from "./latency-buckets.ts";
import { type RecentOutcomes, RedeemOutcomes } from "./redeem-outcomes.ts";
import { countsKey, SPANS } from "./reported-counts.ts";

/** Interval between two reports of a process. Milliseconds. */
const REPORT_EVERY_MS = 5_000;
/** A process that has missed two reports in a row is gone. Milliseconds. */
export const UP_MS = 2 * REPORT_EVERY_MS + 2_000;
/** Shorter spans show little of what a process uses. Milliseconds. */
const USAGE_SPAN_MIN_MS = 1_000;
/** Longest wait of a process that ends for its last report. Milliseconds. */
const END_MAX_MS = 500;
/** A caller that leaves a redeem after this time counts as one that got no answer. Milliseconds. */
const PATIENT_MS = 2_500;
/** The error codes that are faults. */
const COUNTED_CODES = new Map<string | undefined, "overloaded" | "internalErrors" | "codesGuessed">([
  ["overloaded", "overloaded"],
  ["internal_error", "internalErrors"],
  ["too_many_misses", "codesGuessed"],
]);

/** What a process reports about itself. */
export interface Report {
  role: string;
  host: string;
  pid: number;
  version: string;
  /** The queues whose jobs it takes. */
  queues: readonly string[];
  /** Jobs of each queue that it ended in its last minute. Absent in reports of earlier releases. */
  jobs?: Record<string, number>;
  /** The shard counts and the indexes of the shards that a worker serves; null for all indexes. */
  queueShards: readonly number[];
  workerShards: readonly number[] | null;
  since: string;
  /** When it reported, by the database's clock. */
  at: string;
  /** When it ended properly; null while it runs. */
  endedAt: string | null;
  /** Share of one core since an earlier report. */
  cpu: number;
  /** The share of that time in which its event loop was busy. Absent in reports of older releases. */
  busy?: number;
  memoryBytes: number;
  /** How long the present series of long stalls has lasted. Milliseconds. */
  stallingMs: number;
  /** Why it cannot serve requests, as its readiness says; null if it can, or is a worker. */
  problem: string | null;
  redeems: RecentOutcomes;
  /** What it has counted to find faults, and its calls that wait for Postgres. Absent in earlier releases. */
  counts?: FaultCounts;
  waitingCalls?: number;
}

/** The Redis key of the last report of each process, by the process's id. */
export const reportsKey = (deployment: Pick<DeploymentIdentity, "id">) => `${reportPrefix(deployment)}:processes`;
/** The Redis key that exists while a process reports. */
export const heartbeatKey = (deployment: Pick<DeploymentIdentity, "id">, id: string) =>
  `${reportPrefix(deployment)}:process:${id}`;

/** What is known of a request when its response has ended. */
interface Observed {
  reportedAs?: ReportedAs;
  errorCode?: string;
  organizationId?: string;
}

interface Deps {
  redis: RedisClient;
  deployment: DatabaseFence;
  stalls: { readonly stallingMs: number };
  pool: { readonly waitingCount: number };
  /** Log lines of the process so far that were dropped. */
  droppedLines: () => number;
  log: Logger;
}

/**
 * Reports a process to Redis every five seconds: that it runs, and what it has refused and redeemed since. Loses a
 * report if Redis is unreachable.
 */
export class ProcessReport {
  readonly #ctx: Deps;
  readonly #self: Pick<Report, "role" | "queueShards" | "workerShards" | "host" | "pid" | "version">;
  readonly #queues: string[] = [];
  readonly #timer: NodeJS.Timeout;
  #since = "";
  #hasEnded = false;
  #counts = new Map<string, number>();
  readonly #readUsage = openUsageMeter();
  readonly #jobs = openJobCounts();
  /** Since when each report has arrived in time, on the monotonic clock; null if the last one has not. */
  #reportingSinceMs: number | null = null;
  readonly redeems = new RedeemOutcomes();
  /** What this process counts to find faults. */
  readonly faults = new FaultCounter();
  #problem: string | null = null;
  #droppedLines = 0;

  constructor(ctx: Deps, self: Pick<Report, "role" | "queueShards" | "workerShards">) {
    this.#ctx = ctx;
    this.#self = { ...self, host: hostname(), pid: process.pid, version: packageJson.version };
    this.#timer = setInterval(() => {
      this.redeems.advance();
      void this.send();
    }, REPORT_EVERY_MS).unref();
    const send = () => this.send();
    ctx.deployment.ready().then(send, send);
  }

  get id(): string {
    const { host, pid, role } = this.#self;
    return `${host} ${pid} ${role} ${this.#since}`;
  }

  /** What identifies this process in reports. */
  get self(): Pick<Report, "role" | "host" | "pid"> & { id: string } {
    const { role, host, pid } = this.#self;
    return { id: this.id, role, host, pid };
  }

  /** How long Redis has accepted this process's reports without a gap. Milliseconds. */
  get reportingMs(): number {
    return this.#reportingSinceMs === null ? 0 : performance.now() - this.#reportingSinceMs;
  }

  /** What this process has counted to find faults. */
  readCounts(): FaultCounts {
    const dropped = this.#ctx.droppedLines();
    this.faults.count("logLinesDropped", undefined, dropped - this.#droppedLines);
    this.#droppedLines = dropped;
    return this.faults.read();
  }

  /** Sends the report. Never rejects. */
  async send(): Promise<void> {
    // A report after the last one would show the process as running again.
    if (this.#hasEnded) return;
    try {
      const before = await this.#write(this.#ctx.deployment.clock.steadyNow());
      // If the earlier heartbeat is missing, this process or Redis was unreachable for a time, so reports of other
      // processes may be missing, too.
      if (before !== "up") this.#reportingSinceMs = null;
      this.#reportingSinceMs ??= performance.now();
    } catch (error) {
      this.#reportingSinceMs = null;
      this.#ctx.log.debug({ err: error }, "cannot report this process");
    }
  }

  /** Writes the report, the heartbeat or the end, and what was counted. Returns the earlier heartbeat. */
  async #write(now: Date, endedAt: Date | null = null): Promise<unknown> {
    const { redis, deployment } = this.#ctx;
    const counted = this.#counts;
    this.#counts = new Map();
    const report = JSON.stringify(this.#describe(now, endedAt));
    const sent = redis.pipeline();
    if (endedAt === null) sent.set(heartbeatKey(deployment, this.id), "up", "PX", UP_MS, "GET");
    else sent.del(heartbeatKey(deployment, this.id));
    sent.hset(reportsKey(deployment), this.id, report);
    for (const [span, { lengthMs, keptMs }] of Object.entries(SPANS)) {
      const key = countsKey(reportPrefix(deployment), span, now.getTime() - (now.getTime() % lengthMs));
      for (const [field, count] of counted) sent.hincrby(key, field, count);
      if (counted.size > 0) sent.pexpire(key, keptMs);
    }
    this.#jobs.send(sent, reportPrefix(deployment), now.getTime());
    const answers = (await sent.exec()) ?? [];
    const failed = answers.find(([error]) => error !== null);
    if (failed !== undefined) throw failed[0];
    return answers[0]?.[1];
  }

  /** Reports from now on that the process takes jobs of a queue. */
  serve(queue: string): void {
    if (this.#queues.includes(queue)) return;
    // All workers of a process start in one turn of the event loop.
    if (this.#queues.length === 0) setImmediate(() => void this.send());
    this.#queues.push(queue);
  }

  /** Sets the reason why this process cannot serve requests, or null. Reports a change at once. */
  tell(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    void this.send();
  }

  /** Counts a job that has ended, in memory. */
  get observeJob() {
    return this.#jobs.observe;
  }

  /** Counts a response in memory. */
  observe({ reportedAs, errorCode, organizationId }: Observed, status: number, durationMs: number): void {
    if (reportedAs === "probe") return;
    this.#countForFaults(errorCode, status);
    if (reportedAs === undefined) return;
    if (reportedAs === "redemption") {
      if (status !== 499) this.#add(`latency ${bucketOf(durationMs)}`);
      // A redeem without an organization failed before `redeemVoucher` could count it. 499: the caller has left.
      const hadNone = status === 499 ? durationMs > PATIENT_MS : status >= 500;
      if (hadNone && organizationId === undefined) this.redeems.unanswered(null);
    }
    if (status < 400 || status > 498) return;
    this.#add("refusals");
    if (organizationId !== undefined) this.#add(`refusals ${organizationId}`);
  }

  /** Reports the end of this process and its last counts. Gives up if Redis does not accept them in time. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#hasEnded = true;
    if (this.#since === "") return;
    const now = this.#ctx.deployment.clock.steadyNow();
    await pTimeout(this.#write(now, now), { milliseconds: END_MAX_MS }).catch((error) =>
      this.#ctx.log.debug({ err: error }, "cannot report the end of this process"),
    );
  }

  #countForFaults(errorCode: string | undefined, status: number): void {
    this.faults.count("responses");
    if (status >= 500) this.faults.count("errors");
    const counted = COUNTED_CODES.get(errorCode);
    if (counted !== undefined) this.faults.count(counted);
  }

  #add(field: string): void {
    this.#counts.set(field, (this.#counts.get(field) ?? 0) + 1);
  }

  #describe(now: Date, endedAt: Date | null): Report {
    this.#since ||= now.toISOString();
    return {
      ...this.#self,
      queues: this.#queues,
      since: this.#since,
      at: now.toISOString(),
      endedAt: endedAt?.toISOString() ?? null,
      ...this.#readUsage(),
      memoryBytes: process.memoryUsage.rss(),
      stallingMs: this.#ctx.stalls.stallingMs,
      jobs: this.#jobs.ofLastMinute(),
      problem: this.#problem,
      redeems: this.redeems.read(),
      counts: this.readCounts(),
      waitingCalls: this.#ctx.pool.waitingCount,
    };
  }
}

/** Returns a function for what the process has used since the previous call. Within a second, it repeats its result. */
function openUsageMeter(): () => Pick<Required<Report>, "cpu" | "busy"> {
  let [last, loop, at, usage] = [
    process.cpuUsage(),
    performance.eventLoopUtilization(),
    performance.now(),
    { cpu: 0, busy: 0 },
  ];
  return () => {
    const now = performance.now();
    if (now - at < USAGE_SPAN_MIN_MS) return usage;
    const { user, system } = process.cpuUsage(last);
    usage = { cpu: (user + system) / 1_000 / (now - at), busy: performance.eventLoopUtilization(loop).utilization };
    [last, loop, at] = [process.cpuUsage(), performance.eventLoopUtilization(), now];
    return usage;
  };
}
