import { readFileSync } from "node:fs";
import type { Queue } from "bullmq";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import { openPatient, type RedisClient } from "../redis/connections.ts";
import { openQueue } from "./open-queue.ts";
import { findShard } from "./shards.ts";

/**
 * Adds one job every `everyMs`, however many processes run. At each tick of its own timer, a process adds a job, unless
 * another process has added one since the last tick or a job still waits. So one process usually adds all jobs. If it
 * stops, another takes over within two intervals.
 */
export class Schedule {
  readonly #redis: RedisClient;
  readonly #timer: NodeJS.Timeout;
  #queue: Queue | undefined;
  #ticking = false;
  #isClosed = false;
  /** The counter of ticks that the processes share, as last read. */
  #seen = "";

  constructor(
    definition: Parameters<typeof openQueue>[0],
    deployment: DeploymentIdentity,
    { redisUrl, shards }: { redisUrl: string; shards: number },
    everyMs: number,
    log: Logger,
  ) {
    this.#redis = openPatient(redisUrl, `${definition.name}-schedule`, log);
    const tick = () => {
      if (this.#redis.status !== "ready" || this.#ticking) return;
      this.#ticking = true;
      this.#queue ??= openQueue(definition, findShard(deployment.id, 0, shards), this.#redis, log);
      this.#tick(this.#queue, deployment.serverId)
        .catch((error) => {
          // Logs no error after the close, which breaks off a running tick.
          if (!this.#isClosed) log.warn({ err: error, queue: definition.name }, "a scheduled job could not be added");
        })
        .finally(() => {
          this.#ticking = false;
        });
    };
    this.#redis.once("ready", tick);
    this.#timer = setInterval(tick, everyMs);
  }

  /** Stops adding jobs. Other processes continue. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#redis.disconnect();
  }

  async #tick(queue: Queue, origin: string): Promise<void> {
    const keys = [queue.toKey("ticks"), queue.toKey("wait")];
    const [seen, due] = (await this.#redis.eval(TICK, keys.length, ...keys, this.#seen)) as [string, number];
    this.#seen = seen;
    if (due === 1) await queue.add(queue.name, { origin });
  }
}

const TICK = readFileSync(new URL("./tick.lua", import.meta.url), "utf8");
