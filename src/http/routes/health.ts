import pTimeout from "p-timeout";
import type pg from "pg";
import type { ApiContext } from "../../context.ts";
import { AppError, ERRORS_OF } from "../../contract/errors.ts";
import { healthResponse, readinessError, readinessResponse } from "../../contract/health.ts";
import { findMissingMigrations, outdated, UnusableDatabase } from "../../db/schema.ts";
import { probeShards } from "../../queues/measure-queues.ts";
import { probe } from "../access.ts";
import { endpoint } from "../endpoint.ts";

/** Longest wait for a server. Milliseconds. */
const PROBE_MS = 1_500;

export const health = endpoint({
  method: "get",
  path: "/healthz",
  operationId: "health",
  tag: "Health",
  summary: "Is the process up?",
  description: "For liveness probes. Contacts no other server.",
  access: probe,
  parameters: {},
  response: healthResponse,
  responseDescription: "The process is up.",
  responseExamples: { ok: { summary: "Up", value: { status: "ok" } } },
  errors: ERRORS_OF.health,
  handler: async () => ({ status: "ok" as const }),
});

export const readiness = endpoint({
  method: "get",
  path: "/readyz",
  operationId: "readiness",
  tag: "Health",
  summary: "Can the process serve requests?",
  description: "For readiness probes. Checks Postgres, its schema and Redis within 1.5 seconds.",
  access: probe,
  parameters: {},
  response: readinessResponse,
  responseDescription: "The process can serve requests.",
  responseExamples: { ok: { summary: "Ready", value: { status: "ok", postgres: "ok", redis: "ok" } } },
  errorDetails: {
    schema: readinessError,
    example: { error: "No answer from Redis.", postgres: "ok", redis: "unavailable" },
  },
  errors: ERRORS_OF.readiness,
  async handler(ctx) {
    const [postgres, { answers, silentShards }] = await Promise.all([
      orOnFailure(readDatabaseState(ctx.probes), { state: "unavailable", reason: "No answer from Postgres." }),
      orOnFailure(readRedisState(ctx), { answers: false, silentShards: [] }),
    ]);
    const redis = answers && (ctx.redeemQueue.isOpen || postgres.state !== "ok");
    if (postgres.state === "ok" && redis) {
      return { status: "ok", postgres: "ok", redis: "ok", ...(silentShards.length > 0 && { silentShards }) } as const;
    }
    const reasons = [postgres.reason, redis ? null : "No answer from Redis."].filter((reason) => reason !== null);
    throw new AppError("unavailable", reasons.join(" "), {
      retryAfterSeconds: 1,
      details: { postgres: postgres.state, redis: redis ? "ok" : "unavailable" },
    });
  },
});

interface DatabaseState {
  state: "ok" | UnusableDatabase["state"];
  /** Null when the state is ok. */
  reason: string | null;
}

/** Whether Redis answers. One shard suffices, because a missing one stops only its own vouchers. */
async function readRedisState(ctx: ApiContext): Promise<{ answers: boolean; silentShards: string[] }> {
  const [count] = ctx.config.queueShards;
  // Until Postgres was reached, the deployment's shards are not known.
  if (count === 1 || !ctx.redeemQueue.isOpen) {
    await ctx.redis.ping();
    return { answers: true, silentShards: [] };
  }
  const probes = await probeShards(ctx.redis, ctx.deployment.id, count);
  const silentShards = probes.filter(({ answers }) => !answers).map(({ shard }) => shard.name);
  return { answers: silentShards.length < count, silentShards };
}

/** Whether this release can use the database. */
async function readDatabaseState(pool: pg.Pool): Promise<DatabaseState> {
  try {
    const missing = await findMissingMigrations(pool);
    if (missing.length > 0) throw outdated(missing);
    return { state: "ok", reason: null };
  } catch (error) {
    if (!(error instanceof UnusableDatabase)) throw error;
    return { state: error.state, reason: error.message };
  }
}

/** The result, or `fallback` when it fails or takes too long. */
async function orOnFailure<T>(result: Promise<T>, fallback: T): Promise<T> {
  return pTimeout(
    result.catch(() => fallback),
    { milliseconds: PROBE_MS, fallback: () => fallback },
  );
}
