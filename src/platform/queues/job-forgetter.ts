import { readFileSync } from "node:fs";
import type { Job } from "bullmq";
import pTimeout from "p-timeout";
import type { Logger } from "pino";
import { portionsOf } from "../batching/shares.ts";
import type { Closable } from "../lifetime.ts";
import type { RedisClient } from "../redis/connections.ts";
import { jobEnvelope } from "./job-envelope.ts";

const FORGET = readFileSync(new URL("./forget-data.lua", import.meta.url), "utf8");

/** Time between two runs. Many jobs share the cost of one call. Milliseconds. */
const FORGET_MS = 1_000;
/** Maximum time that `close` waits for Redis. Otherwise no worker could close while Redis is down. Milliseconds. */
const CLOSE_MAX_MS = 2_000;
/** Maximum number of jobs in one call, which blocks Redis for some milliseconds. */
const CALL_MAX = 1_000;
/** Maximum number of a shard's jobs that wait for a call, some 15 MB. With more, the oldest jobs keep their data. */
const WAITING_MAX = 50_000;

/** The envelope's fields, which jobs of every queue have. None of them identifies a person. */
const ENVELOPE = Object.keys(jobEnvelope.shape);

/**
 * Removes data that may identify a person from ended jobs, within about a second or as soon as Redis accepts it. If
 * such a job is delivered again, the job fails, and its caller reads the first result from the database.
 */
export class JobForgetter implements Closable {
  readonly #kept: ReadonlySet<string>;
  readonly #redis: RedisClient;
  readonly #log: Logger;
  readonly #timer: NodeJS.Timeout;
  /** For each ended job, the data that the job keeps. By the queue of the job's shard, then by the job's key. */
  readonly #ended = new Map<string, Map<string, string>>();
  /** The running removals, by the queue of their shard. */
  readonly #runs = new Map<string, Promise<void>>();
  #dropped = 0;

  /**
   * @param shown the fields of a job's data that operators see. An ended job keeps them, even if the worker refused the
   * data as invalid.
   * @param redis a connection that waits for Redis. The caller closes it afterwards.
   */
  constructor(shown: readonly string[], redis: RedisClient, log: Logger) {
    this.#kept = new Set([...ENVELOPE, ...shown]);
    this.#redis = redis;
    this.#log = log;
    this.#timer = setInterval(() => this.#run(), FORGET_MS);
  }

  add({ id, data, queueQualifiedName: queue }: Pick<Job, "id" | "data" | "queueQualifiedName">): void {
    const kept = Object.entries(Object(data)).filter(([field]) => this.#kept.has(field));
    const waiting = this.#ended.get(queue) ?? new Map<string, string>();
    this.#ended.set(queue, waiting.set(`${queue}:${id}`, JSON.stringify(Object.fromEntries(kept))));
    for (const key of waiting.keys()) {
      if (waiting.size <= WAITING_MAX) break;
      waiting.delete(key);
      this.#dropped += 1;
    }
  }

  /** Resolves after an attempt for all waiting jobs, or when Redis has not answered for a while. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    const forgotten = (async () => {
      await Promise.all(this.#runs.values());
      this.#run();
      await Promise.all(this.#runs.values());
    })();
    await pTimeout(forgotten, { milliseconds: CLOSE_MAX_MS, fallback: () => undefined });
    const jobs = [...this.#ended.values()].reduce((sum, { size }) => sum + size, 0);
    if (jobs > 0) this.#log.warn({ jobs }, "jobs keep their data, because the process ends");
  }

  /** Begins to remove the data of each shard's waiting jobs, unless a removal already runs for the shard. */
  #run(): void {
    if (this.#dropped > 0) this.#log.warn({ jobs: this.#dropped }, "too many jobs wait: the oldest keep their data");
    this.#dropped = 0;
    for (const [queue, waiting] of this.#ended) {
      if (this.#runs.has(queue) || waiting.size === 0) continue;
      this.#runs.set(
        queue,
        this.#forget(queue, waiting).finally(() => this.#runs.delete(queue)),
      );
    }
  }

  /** Removes the data of a shard's waiting jobs. Never rejects. Jobs of a failed call wait for the next attempt. */
  async #forget(queue: string, waiting: Map<string, string>): Promise<void> {
    for (const jobs of portionsOf([...waiting], CALL_MAX)) {
      const [keys, kept] = [jobs.map(([key]) => key), jobs.map(([, data]) => data)];
      try {
        await this.#redis.eval(FORGET, keys.length, ...keys, ...kept);
      } catch (err) {
        this.#log.warn({ err, queue, jobs: waiting.size }, "jobs keep their data; it will be tried again");
        return;
      }
      for (const key of keys) waiting.delete(key);
    }
  }
}
