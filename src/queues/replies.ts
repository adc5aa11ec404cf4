import pTimeout from "p-timeout";
import type { Logger } from "pino";
import { z } from "zod";
import { openSubscriber, type RedisClient } from "../redis/connections.ts";

const jobEnd = z.object({
  jobId: z.string(),
  /** What the job returned, or why it failed. */
  outcome: z.union([z.object({ reply: z.unknown() }), z.object({ failure: z.string() })]),
  /** From adding the job to its start, by the clocks of both hosts. Milliseconds. */
  queuedMs: z.number(),
  /** From its start to its reply. Milliseconds. */
  workedMs: z.number(),
});
/** A job's result, as its worker sends it to the waiting caller. */
export type JobEnd = z.output<typeof jobEnd>;
const jobEnds = z.array(jobEnd);

/** Pause before a failed subscription is tried again. Milliseconds. */
const SUBSCRIBE_AGAIN_MS = 1_000;

/**
 * Receives a process's replies on a connection of its own. Replies that are published while the connection is down are lost. The channel is a
 * sharded one: in a Redis Cluster, only the node of the channel's slot carries its messages.
 */
export class ReplyInbox {
  /** The channel for replies to this process. Every job that it waits for names the channel. */
  readonly channel = `vouchers:replies:${crypto.randomUUID()}`;
  readonly #redis: RedisClient;
  readonly #waiting = new Map<string, (end: JobEnd) => void>();
  #subscribed = false;
  #closed = false;

  constructor(redisUrl: string, log: Logger) {
    this.#redis = openSubscriber(redisUrl, "replies", log);
    this.#redis.on("smessage", (_channel: string, message: string) => this.#deliver(message, log));
    this.#redis.on("ready", () => void this.#subscribe(log));
  }

  /** Whether the process has subscribed at least once. */
  get isOpen(): boolean {
    return this.#subscribed;
  }

  /** Calls `settle` with the job's result until {@link forget} is called. Register before adding the job. */
  expect(jobId: string, settle: (end: JobEnd) => void): void {
    this.#waiting.set(jobId, settle);
  }

  forget(jobId: string): void {
    this.#waiting.delete(jobId);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#redis.disconnect();
  }

  /** Subscribes. Tries again after a failure, for instance while the channel's slot has no node. */
  async #subscribe(log: Logger): Promise<void> {
    try {
      await this.#redis.ssubscribe(this.channel);
      this.#subscribed = true;
    } catch (error) {
      if (this.#closed) return;
      log.warn({ err: error }, "the process cannot subscribe to replies");
      setTimeout(() => void this.#subscribe(log), SUBSCRIBE_AGAIN_MS).unref();
    }
  }

  #deliver(message: string, log: Logger): void {
    const ends = parseOrNull(jobEnds, () => JSON.parse(message));
    if (ends === null) log.warn("a reply could not be read");
    else for (const end of ends) this.#waiting.get(end.jobId)?.(end);
  }
}

/** Parses a job's result, or returns null when it is unreadable. */
export function parseEnd(read: () => unknown): JobEnd | null {
  return parseOrNull(jobEnd, read);
}

/** Reads a value and parses it. Null if either fails. */
function parseOrNull<T>(schema: z.ZodType<T>, read: () => unknown): T | null {
  try {
    return schema.parse(read());
  } catch {
    return null;
  }
}

/** Longest wait for the Redis node that carries a channel. Without a limit, the loss of one node would stop jobs of all nodes. Milliseconds. */
const SEND_MAX_MS = 250;

interface Message {
  ends: JobEnd[];
  sent: Promise<void>;
}

/** Sends results to the waiting processes. Results of one turn of the event loop, such as those of a batch, share one message per process. */
export class ReplyOutbox {
  readonly #redis: RedisClient;
  readonly #log: Logger;
  /** Messages that are not published yet, by channel. Results of this turn of the event loop are added to them. */
  readonly #unsent = new Map<string, Message>();

  /** @param redis a connection that waits for Redis. The caller closes it. */
  constructor(redis: RedisClient, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /**
   * Resolves once the message is published or its failure is logged, after {@link SEND_MAX_MS} at most. Await it before the next command on the
   * connection: Redis runs all commands that have arrived before it delivers a message.
   */
  send(channel: string, end: JobEnd): Promise<void> {
    const message = this.#unsent.get(channel);
    if (message !== undefined) {
      message.ends.push(end);
      return message.sent;
    }
    const ends = [end];
    const sent = this.#publish(channel, ends);
    this.#unsent.set(channel, { ends, sent });
    return sent;
  }

  async #publish(channel: string, ends: JobEnd[]): Promise<void> {
    // Continues after all pending promise callbacks, such as those of the batch, and before the event loop reads new input.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    this.#unsent.delete(channel);
    try {
      await pTimeout(this.#redis.spublish(channel, JSON.stringify(ends)), { milliseconds: SEND_MAX_MS });
    } catch (error) {
      this.#log.warn({ err: error }, "replies could not be sent");
    }
  }
}
