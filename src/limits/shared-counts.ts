import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { RateLimiterMemory, RateLimiterRedis, type RateLimiterRes } from "rate-limiter-flexible";

/** Longest that a count waits for Redis, which answers within a millisecond when all is well. Milliseconds. */
const ANSWER_MS = 250;
/** For this long after a failure everything is counted here, and then one count tries Redis again. Milliseconds. */
const PAUSE_MS = 1_000;

/** What stands counted in the current window. */
export interface Count {
  total: number;
  /** Time to the window's end, in milliseconds. */
  leftMs: number;
}

/** Adds to what is counted under a name and tells the new total. Never rejects. A window begins with its first count. */
export type Counter = (id: string, points: number) => Promise<Count>;

/**
 * Counts that all processes share, in Redis. While Redis is away or slow, each process counts for itself and from zero, so that limits stay
 * in force; nobody waits longer than {@link ANSWER_MS} for it, and in {@link PAUSE_MS} only one.
 */
export class SharedCounts {
  readonly #redis: Redis;
  readonly #log: Logger;
  #trouble = false;
  /** On the monotonic clock, milliseconds. */
  #tryAgainAt = 0;

  constructor(redis: Redis, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /** Opens counting under `limit:<name>:<id>` in windows of some seconds. */
  open(name: string, windowSeconds: number): Counter {
    // Who may have how much is decided by whoever counts: the library's own refusal does not tell the total.
    const options = { keyPrefix: `limit:${name}`, points: Number.MAX_SAFE_INTEGER, duration: windowSeconds };
    const shared = new RateLimiterRedis({ ...options, storeClient: this.#redis, rejectIfRedisNotReady: true });
    const insurance = new RateLimiterMemory(options);
    return async (id, points) => {
      if (this.#mayAsk()) {
        try {
          const count = await inTime(shared.penalty(id, points));
          this.#recover();
          return toCount(count);
        } catch (error) {
          this.#fail(error);
        }
      }
      return toCount(await insurance.penalty(id, points));
    };
  }

  /** Whether Redis is to be asked. In trouble, whoever asks keeps the others from it for the length of a pause. */
  #mayAsk(): boolean {
    if (!this.#trouble) return true;
    const now = performance.now();
    if (now < this.#tryAgainAt) return false;
    this.#tryAgainAt = now + PAUSE_MS;
    return true;
  }

  #fail(error: unknown): void {
    this.#tryAgainAt = performance.now() + PAUSE_MS;
    if (this.#trouble) return;
    this.#trouble = true;
    this.#log.warn({ err: error }, "limits are counted in this process alone while Redis does not answer");
  }

  #recover(): void {
    if (!this.#trouble) return;
    this.#trouble = false;
    this.#log.info("limits are counted in Redis again");
  }
}

/** @throws Error when the answer has not come within {@link ANSWER_MS}. */
async function inTime<Answer>(answer: Promise<Answer>): Promise<Answer> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const fail = () => reject(new Error(`Redis did not answer within ${ANSWER_MS} ms`));
    // A process that was itself held up reads first what has arrived meanwhile.
    timer = setTimeout(() => setImmediate(fail), ANSWER_MS);
  });
  return await Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

function toCount({ consumedPoints, msBeforeNext }: RateLimiterRes): Count {
  return { total: consumedPoints, leftMs: msBeforeNext };
}
