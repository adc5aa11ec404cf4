import { readFileSync } from "node:fs";
import type { Job } from "bullmq";
import pTimeout from "p-timeout";
import type { Logger } from "pino";
import type { Closable } from "../lifetime.ts";
import type { RedisClient } from "../redis/connections.ts";

const FORGET = readFileSync(new URL("./forget-data.lua", import.meta.url), "utf8");

/** Time between two runs. Many jobs share the cost of one call. Milliseconds. */
const FORGET_MS = 1_000;
/** Longest wait for Redis. Without a limit, a worker could not close without it. Milliseconds. */
const WAIT_MAX_MS = 1_000;
/** Jobs in one call, which blocks Redis for some milliseconds. */
const JOBS_MAX = 1_000;

/**
 * Removes what may identify a person from jobs that have ended, within about a second. A job that is delivered again
 * after that fails: its caller asks the database, and so learns what the first delivery has done.
 */
export class JobForgetter implements Closable {
  readonly #personal: readonly string[];
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  /** What each ended job keeps, by its key, by the queue of its shard. */
  #ended = new Map<string, Map<string, string>>();

  /**
   * @param personal the fields of jobs that may identify a person.
   * @param redis a connection that waits for Redis. The caller closes it afterwards.
   */
  constructor(personal: readonly string[], redis: RedisClient, log: Logger) {
    this.#personal = personal;
    this.#redis = redis;
    this.#log = log;
    this.#timer = setInterval(() => void this.#forget(), FORGET_MS);
  }

  add({ id, data, queueQualifiedName: queue }: Pick<Job, "id" | "data" | "queueQualifiedName">): void {
    const kept = Object.entries(Object(data)).filter(([field]) => !this.#personal.includes(field));
    const ofQueue = this.#ended.get(queue) ?? new Map();
    this.#ended.set(queue, ofQueue.set(`${queue}:${id}`, JSON.stringify(Object.fromEntries(kept))));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#forget();
  }

  /** Never rejects. Jobs of a Redis that does not answer keep their data until they are removed. */
  async #forget(): Promise<void> {
    const ended = this.#ended;
    this.#ended = new Map();
    for (const jobs of ended.values()) {
      const all = [...jobs];
      for (let from = 0; from < all.length; from += JOBS_MAX) {
        const some = all.slice(from, from + JOBS_MAX);
        const [keys, kept] = [some.map(([key]) => key), some.map(([, data]) => data)];
        const forgotten = this.#redis.eval(FORGET, keys.length, ...keys, ...kept);
        await pTimeout(forgotten, { milliseconds: WAIT_MAX_MS }).catch((err) =>
          this.#log.warn({ err, jobs: keys.length }, "jobs keep their data"),
        );
      }
    }
  }
}
