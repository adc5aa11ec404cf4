import pLimit from "p-limit";
import type pg from "pg";
import type { Logger } from "pino";
import type { OfWings } from "../core/metrics/metrics.ts";
import type { RandomBytes } from "../platform/base32.ts";
import { Batcher } from "../platform/batching/batcher.ts";
import { isLockTimeout, readThenWrite, waitForLocks } from "../platform/db/transaction.ts";
import type { Closable } from "../platform/lifetime.ts";
import type { DeliveryFailure } from "./api/webhook-deliveries.ts";
import { type DueDelivery, lockFreeTargets, lockTargets, recordAttempts } from "./db/webhook-deliveries.ts";
import { WEBHOOK_METRICS } from "./declared.ts";
import { type AttemptResult, type DecidedAttempt, decideAttempt, decideHealth, ERASED } from "./webhook-delivery.ts";

/** Maximum number of attempts in one transaction. */
const BATCH_MAX = 256;
/** Maximum number of waiting attempts. Larger than the number of deliveries that one process keeps in memory. */
const WAITING_MAX = 10_000;
/**
 * Maximum wait for the lock of a target. The fan-out, another process or a partner's change may hold it. Milliseconds.
 */
const LOCK_WAIT_MS = 5_000;
/** Maximum wait for one locked target. It is short because other locked targets wait for their turn. Milliseconds. */
const TURN_MS = 250;

/** A delivery with the result of its request, or with `ERASED` if nothing was sent because the event was erased. */
export interface Attempt {
  endpointId: string;
  delivery: DueDelivery;
  result: AttemptResult<DeliveryFailure> | typeof ERASED;
}

interface Deps {
  pool: pg.Pool;
  randomBytes: RandomBytes;
  metrics: OfWings<"worker"> | null;
  log: Logger;
}

type State = DecidedAttempt["state"];

/** An attempt that waits because its target is locked. */
interface HeldAttempt extends PromiseWithResolvers<State> {
  attempt: Attempt;
  heldAt: number;
}

/**
 * Records attempts in batches. A target that another transaction has locked delays only its own attempts, which leave
 * their batch and are recorded in order once the target is free.
 */
export class AttemptRecorder implements Closable {
  readonly #ctx: Deps;
  readonly #batcher: Batcher<Attempt, State>;
  /** The waiting attempts of each locked target, in order. */
  readonly #held = new Map<string, HeldAttempt[]>();
  readonly #waits = new Set<Promise<void>>();
  /** Limits the number of connections that wait for locked targets. */
  readonly #turns = pLimit(1);

  constructor(ctx: Deps) {
    this.#ctx = ctx;
    this.#batcher = new Batcher((attempts: Attempt[]) => this.#record(attempts), {
      batchMax: BATCH_MAX,
      waitingMax: WAITING_MAX,
    });
  }

  /** Resolves with the delivery's new state after the commit. Rejects if the target stays locked for too long. */
  submit(attempt: Attempt): Promise<State> {
    return this.#batcher.submit(attempt);
  }

  async close(): Promise<void> {
    await this.#batcher.close();
    await Promise.all(this.#waits);
  }

  async #record(attempts: readonly Attempt[]): Promise<(State | Promise<State>)[]> {
    const open = attempts.filter(({ endpointId }) => !this.#held.has(endpointId));
    const states = open.length === 0 ? [] : await record(this.#ctx, open, lockFreeTargets);
    const recorded = new Map(open.map((attempt, index) => [attempt, states[index] ?? null]));
    return attempts.map((attempt) => recorded.get(attempt) ?? this.#hold(attempt));
  }

  #hold(attempt: Attempt): Promise<State> {
    const { endpointId } = attempt;
    const held = { ...Promise.withResolvers<State>(), attempt, heldAt: performance.now() };
    const others = this.#held.get(endpointId);
    if (others === undefined) {
      const waiting = [held];
      this.#held.set(endpointId, waiting);
      const wait = this.#recordHeld(endpointId, waiting).finally(() => this.#waits.delete(wait));
      this.#waits.add(wait);
    } else others.push(held);
    return held.promise;
  }

  /** Records the attempts of a locked target, including attempts that are added meanwhile. Never rejects. */
  async #recordHeld(endpointId: string, waiting: HeldAttempt[]): Promise<void> {
    for (let some = waiting.slice(0, BATCH_MAX); some.length > 0; some = waiting.slice(0, BATCH_MAX)) {
      const attempts = some.map(({ attempt }) => attempt);
      const ended = await this.#turns(() => record(this.#ctx, attempts, waitForTargets)).then(
        (states) =>
          some.map(
            ({ resolve }, index) =>
              () =>
                resolve(states[index] as State),
          ),
        (error) => this.#rejected(some, error),
      );
      waiting.splice(0, ended.length);
      if (waiting.length === 0) this.#held.delete(endpointId);
      for (const end of ended) end();
    }
  }

  /** Returns the rejections of attempts that `error` ends. A lock timeout ends only those that waited too long. */
  #rejected(some: readonly HeldAttempt[], error: unknown): (() => void)[] {
    const isLate = ({ heldAt }: HeldAttempt) => performance.now() - heldAt > LOCK_WAIT_MS;
    return some
      .filter((held) => !isLockTimeout(error) || isLate(held))
      .map(
        ({ reject }) =>
          () =>
            reject(error),
      );
  }
}

/** Locks targets. Skips targets that another transaction has locked. */
type LockTargets = typeof lockFreeTargets;

/** Locks all targets. Waits at most TURN_MS for each. */
const waitForTargets: LockTargets = async (tx, endpointIds) => {
  const [, targets] = await Promise.all([waitForLocks(tx, TURN_MS), lockTargets(tx, endpointIds)]);
  return { targets, locked: new Set() };
};

/** Records attempts in one transaction. An attempt whose target is locked has the state null. */
async function record(ctx: Deps, attempts: readonly Attempt[], lock: LockTargets): Promise<(State | null)[]> {
  const endpointIds = [...new Set(attempts.map(({ endpointId }) => endpointId))];
  return readThenWrite(
    ctx.pool,
    (tx) => Promise.all([waitForLocks(tx, LOCK_WAIT_MS), lock(tx, endpointIds)]),
    async ([, { targets, locked }]) => {
      const now = targets[0]?.now ?? new Date(0);
      const decided = attempts.map((attempt) => (locked.has(attempt.endpointId) ? null : decide(ctx, attempt)));
      const byTarget = Map.groupBy(attempts, ({ endpointId }) => endpointId);
      const changes = targets.flatMap((target) => {
        const results = (byTarget.get(target.id) ?? []).flatMap(({ result }) => (result === ERASED ? [] : [result]));
        const health = decideHealth(target, results, now);
        return health === null ? [] : [{ ...health, endpointId: target.id, organizationId: target.organizationId }];
      });
      const recorded = decided.filter((one) => one !== null);
      return {
        result: decided.map((one) => one?.state ?? null),
        writes: recorded.length === 0 ? [] : recordAttempts(recorded, changes, now),
        afterCommit() {
          for (const { endpointId, organizationId, disabledReason } of changes) {
            if (disabledReason === null) continue;
            ctx.log.warn({ endpointId, organizationId, reason: disabledReason }, "a webhook endpoint was disabled");
            if (ctx.metrics !== null)
              WEBHOOK_METRICS.of(ctx.metrics).webhookEndpointsDisabled.with(disabledReason).inc();
          }
        },
      };
    },
  );
}

function decide(ctx: Deps, { endpointId, delivery, result }: Attempt) {
  const { eventId, voucherId, attempts } = delivery;
  const { status, failure } = result === ERASED ? { status: null, failure: null } : result;
  const decided = decideAttempt(attempts, result, randomFraction(ctx.randomBytes));
  return { endpointId, eventId, voucherId, attempts, status, failure, ...decided };
}

/** Returns a random number from 0 to 1. */
function randomFraction(randomBytes: RandomBytes): number {
  return Buffer.from(randomBytes(4)).readUInt32LE() / 0xffff_ffff;
}
