import type { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import type { QueueDefinition } from "./catalog.ts";
import { openPatient } from "./connections.ts";
import { openQueue } from "./open-queue.ts";

/**
 * Keeps a queue's one schedule: a job every `everyMs`, however many processes keep it. It is written again and again, so that a
 * Redis that lost it gets it back; writing it again does not move the next run.
 */
export class Schedule {
  readonly #redis: Redis;
  readonly #timer: NodeJS.Timeout;
  #queue: Queue | undefined;
  #writing = false;

  constructor(definition: QueueDefinition<Record<string, never>>, redisUrl: string, everyMs: number, log: Logger) {
    const { name } = definition;
    this.#redis = openPatient(redisUrl, `${name}-schedule`, log);
    const keep = () => {
      if (this.#redis.status !== "ready" || this.#writing) return;
      this.#writing = true;
      this.#queue ??= openQueue(definition, this.#redis, log);
      this.#queue
        .upsertJobScheduler(name, { every: everyMs }, { name, data: {} })
        .catch((error) => log.warn({ err: error, queue: name }, "the schedule could not be written"))
        .finally(() => {
          this.#writing = false;
        });
    };
    this.#redis.on("ready", keep);
    this.#timer = setInterval(keep, everyMs);
  }

  /** Stops keeping the schedule; what is scheduled stays for others. */
  close(): void {
    clearInterval(this.#timer);
    this.#redis.disconnect();
  }
}
