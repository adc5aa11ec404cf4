import type { Logger } from "pino";
import { z } from "zod";
import { openSubscriber, type RedisClient } from "../redis/connections.ts";
import { type JobEnd, jobEnd } from "./job-envelope.ts";

/** Pause before a failed subscription is repeated. Milliseconds. */
const SUBSCRIBE_AGAIN_MS = 1_000;

const jobEnds = z.array(jobEnd);

/**
 * Receives a process's replies on its own connection. Replies that are published while the connection is down are lost.
 * The channel is sharded: in a Redis Cluster, its messages pass only through the node with its slot.
 */
export class ReplyInbox {
  /** The channel for replies to this process. Every job for which the process waits names this channel. */
  readonly channel = `vouchers:replies:${crypto.randomUUID()}`;
  readonly #redis: RedisClient;
  readonly #listeners: ((end: JobEnd) => void)[] = [];
  /** Whether the process has subscribed at least once. */
  hasOpened = false;
  #closed = false;

  constructor(redisUrl: string, log: Logger) {
    this.#redis = openSubscriber(redisUrl, "replies", log);
    this.#redis.on("smessage", (_channel: string, message: string) => {
      const ends = parseOrNull(jobEnds, () => JSON.parse(message));
      if (ends === null) log.warn("a reply could not be read");
      else for (const end of ends) for (const listener of this.#listeners) listener(end);
    });
    this.#redis.on("ready", () => void this.#subscribe(log));
  }

  listen(listener: (end: JobEnd) => void): void {
    this.#listeners.push(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#redis.disconnect();
  }

  /** Subscribes. Tries again after a failure, for example while no node has the channel's slot. */
  async #subscribe(log: Logger): Promise<void> {
    try {
      await this.#redis.ssubscribe(this.channel);
      this.hasOpened = true;
    } catch (error) {
      if (this.#closed) return;
      log.warn({ err: error }, "the process cannot subscribe to replies");
      setTimeout(() => void this.#subscribe(log), SUBSCRIBE_AGAIN_MS).unref();
    }
  }
}

/** Reads a value and parses it. Null if reading or parsing fails. */
export function parseOrNull<T>(schema: z.ZodType<T>, read: () => unknown): T | null {
  try {
    return schema.parse(read());
  } catch {
    return null;
  }
}
