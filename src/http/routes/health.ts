import pTimeout from "p-timeout";
import type pg from "pg";
import { AppError } from "../../contract/errors.ts";
import { healthResponse, readinessError, readinessResponse } from "../../contract/health.ts";
import { assertMigrated, UnusableDatabase } from "../../db/schema.ts";
import type { ApiContext } from "../../open-api.ts";
import { probeShards } from "../../queues/measure-queues.ts";
import { probe } from "../access.ts";
import { endpoint } from "../endpoint.ts";

/** Longest wait for a server. Milliseconds. */
const PROBE_MS = 1_500;

export const health = endpoint({
  path: "/healthz",
  operationId: "health",
  summary: "Is the process up?",
  description: "For liveness probes. Contacts no other server.",
  access: probe,
  response: healthResponse,
  responseDescription: "The process is up.",
  handler: async () => ({ status: "ok" as const }),
});

export const readiness = endpoint({
  path: "/readyz",
  operationId: "readiness",
  summary: "Can the process serve requests?",
  description: "For readiness probes. Checks Postgres, its schema and Redis within 1.5 seconds.",
  access: probe,
  response: readinessResponse,
  responseDescription: "The process can serve requests.",
  errorDetails: {
    schema: readinessError,
    example: { error: "No answer from Redis.", postgres: "ok", redis: "unavailable" },
  },
  async handler(ctx) {
    // The queue opens once, and may do so while Redis is probed.
    const isStarting = !ctx.redeemQueue.isOpen;
    const [unusable, { answers, silentShards }] = await Promise.all([
      withFallback(findDatabaseProblem(ctx.probes), new UnusableDatabase("unavailable", "No answer from Postgres.")),
      withFallback(readRedisState(ctx), { answers: false, silentShards: [] }),
    ]);
    // The queue opens only once Postgres was reached, so without Postgres it tells nothing about Redis.
    const redis = answers && (ctx.redeemQueue.isOpen || unusable !== null);
    if (unusable === null && redis) {
      const clockAheadSeconds = Math.round(ctx.deployment.clock.aheadMs / 1_000);
      return {
        status: "ok",
        postgres: "ok",
        redis: "ok",
        ...(silentShards.length > 0 && { silentShards }),
        ...(clockAheadSeconds > 0 && { clockAheadSeconds }),
      } as const;
    }
    const reasons = [unusable?.message, redis ? undefined : "No answer from Redis."];
    throw new AppError("unavailable", reasons.filter(Boolean).join(" "), {
      cause: unusable?.cause,
      retryAfterSeconds: 1,
      isExpected: isStarting && unusable === null,
      details: { postgres: unusable?.state ?? "ok", redis: redis ? "ok" : "unavailable" },
    });
  },
});

/** Whether Redis answers, and which shards do not. One answering shard is enough, because a silent shard stops only its own vouchers. */
async function readRedisState(ctx: ApiContext): Promise<{ answers: boolean; silentShards: string[] }> {
  const [count] = ctx.config.queueShards;
  // The names of the shards contain the deployment's id, which is unknown until Postgres is reached.
  if (count === 1 || !ctx.redeemQueue.isOpen) {
    await ctx.redis.ping();
    return { answers: true, silentShards: [] };
  }
  const probes = await probeShards(ctx.redis, ctx.deployment.id, count);
  const silentShards = probes.filter(({ answers }) => !answers).map(({ shard }) => shard.name);
  return { answers: silentShards.length < count, silentShards };
}

/** Why this release cannot use the database, or null. */
async function findDatabaseProblem(pool: pg.Pool): Promise<UnusableDatabase | null> {
  try {
    await assertMigrated(pool);
    return null;
  } catch (error) {
    if (error instanceof UnusableDatabase) return error;
    throw error;
  }
}

/** Returns the result, or `fallback` if it fails or takes longer than {@link PROBE_MS}. */
async function withFallback<T>(result: Promise<T>, fallback: T): Promise<T> {
  return pTimeout(
    result.catch(() => fallback),
    { milliseconds: PROBE_MS, fallback: () => fallback },
  );
}
