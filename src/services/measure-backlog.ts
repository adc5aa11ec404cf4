import type { ServiceContext } from "../context.ts";
import { findOldestPendingAge } from "../db/events.ts";
import { countLiveHolds } from "../db/reservations.ts";
import type { Backlog, DatabaseBacklog } from "../metrics/backlog-metrics.ts";
import { measureQueues } from "../queues/measure-queues.ts";

/** Live holds that are counted: so many take Postgres some 25 ms. */
const HOLDS_MAX = 100_000;
/** Longest wait for a server: what asks has little patience itself, and wants to know above all that one is away. Milliseconds. */
const WAIT_MAX_MS = 2_000;

type Deps = Pick<ServiceContext, "pool" | "redis" | "log">;

/** Measures what waits in Redis and in Postgres. Never fails: a server that does not answer within two seconds is null. */
export async function measureBacklog(ctx: Deps): Promise<Backlog> {
  const [queues, database] = await Promise.all([
    inTime(ctx, measureQueues(ctx.redis)),
    inTime(ctx, measureDatabase(ctx)),
  ]);
  return { queues, database };
}

async function measureDatabase({ pool }: Deps): Promise<DatabaseBacklog> {
  return { liveHolds: await countLiveHolds(pool, HOLDS_MAX), sealLagMs: await findOldestPendingAge(pool) };
}

async function inTime<T>({ log }: Deps, measured: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${WAIT_MAX_MS} ms`)), WAIT_MAX_MS);
  });
  try {
    return await Promise.race([measured, late]);
  } catch (error) {
    log.debug({ err: error }, "the backlog could not be measured");
    return null;
  } finally {
    clearTimeout(timer);
  }
}
