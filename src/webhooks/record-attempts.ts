import type pg from "pg";
import type { Logger } from "pino";
import type { WorkerMetrics } from "../core/metrics/metrics.ts";
import type { RandomBytes } from "../platform/base32.ts";
import { Batcher } from "../platform/batching/batcher.ts";
import { readThenWrite, waitForLocks } from "../platform/db/transaction.ts";
import type { DeliveryFailure } from "./api/webhook-deliveries.ts";
import { type DueDelivery, lockTargets, recordAttempts } from "./db/webhook-deliveries.ts";
import { type AttemptResult, type DecidedAttempt, decideAttempt, decideHealth, ERASED } from "./webhook-delivery.ts";

/** Attempts in one transaction. */
const BATCH_MAX = 256;
/** Attempts that may wait: more than the deliveries that one process has in memory. */
const WAITING_MAX = 10_000;
/**
 * Longest wait for the lock of a target, which the fan-out, another process or a partner's change may hold.
 * Milliseconds.
 */
const LOCK_WAIT_MS = 5_000;

/** A delivery and the result of its attempt, or that its event was erased. */
export interface Attempt {
  endpointId: string;
  delivery: DueDelivery;
  result: AttemptResult<DeliveryFailure> | typeof ERASED;
}

export type AttemptRecorder = Batcher<Attempt, DecidedAttempt["state"]>;

interface Deps {
  pool: pg.Pool;
  randomBytes: RandomBytes;
  metrics: Pick<WorkerMetrics, "webhookEndpointsDisabled"> | null;
  log: Logger;
}

/** Opens the batcher that records attempts. Its `submit` resolves to the delivery's new state after the commit. */
export function openAttemptRecorder(ctx: Deps): AttemptRecorder {
  return new Batcher((attempts: Attempt[]) => record(ctx, attempts), { batchMax: BATCH_MAX, waitingMax: WAITING_MAX });
}

async function record(ctx: Deps, attempts: readonly Attempt[]): Promise<DecidedAttempt["state"][]> {
  const endpointIds = [...new Set(attempts.map(({ endpointId }) => endpointId))];
  return readThenWrite(
    ctx.pool,
    (tx) => Promise.all([waitForLocks(tx, LOCK_WAIT_MS), lockTargets(tx, endpointIds)]),
    async ([, targets]) => {
      const now = targets[0]?.now ?? new Date(0);
      const recorded = attempts.map(({ endpointId, delivery: { eventId, voucherId, attempts }, result }) => {
        const { status, failure } = result === ERASED ? { status: null, failure: null } : result;
        const decided = decideAttempt(attempts, result, randomFraction(ctx.randomBytes));
        return { endpointId, eventId, voucherId, attempts, status, failure, ...decided };
      });
      const byTarget = Map.groupBy(attempts, ({ endpointId }) => endpointId);
      const changes = targets.flatMap((target) => {
        const results = (byTarget.get(target.id) ?? []).flatMap(({ result }) => (result === ERASED ? [] : [result]));
        const health = decideHealth(target, results, now);
        return health === null ? [] : [{ ...health, endpointId: target.id, organizationId: target.organizationId }];
      });
      return {
        result: recorded.map(({ state }) => state),
        writes: recordAttempts(recorded, changes, now),
        afterCommit() {
          for (const { endpointId, organizationId, disabledReason } of changes) {
            if (disabledReason === null) continue;
            ctx.log.warn({ endpointId, organizationId, reason: disabledReason }, "a webhook endpoint was disabled");
            ctx.metrics?.webhookEndpointsDisabled.with(disabledReason).inc();
          }
        },
      };
    },
  );
}

/** Returns a random number from 0 to 1. */
function randomFraction(randomBytes: RandomBytes): number {
  return Buffer.from(randomBytes(4)).readUInt32LE() / 0xffff_ffff;
}
