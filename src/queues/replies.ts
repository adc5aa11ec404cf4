import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { z } from "zod";
import { PREFIX } from "./catalog.ts";
import { openPatient } from "./connections.ts";

/** How a job ended, as its worker tells whoever waits for it. */
export interface JobEnd {
  jobId: string;
  /** What the job returned, or why it failed. */
  outcome: { reply: unknown } | { failure: string };
  /** From the moment the job was added until its worker began it, by the clocks of both hosts. Milliseconds. */
  queuedMs: number;
  /** From there until its reply was ready. Milliseconds. */
  workedMs: number;
}

const jobEnds = z.array(
  z.object({
    jobId: z.string(),
    outcome: z.union([z.object({ reply: z.unknown() }), z.object({ failure: z.string() })]),
    queuedMs: z.number(),
    workedMs: z.number(),
  }),
);

/**
 * Where the replies to one process arrive: a Redis channel of its own, on a connection of its own. A reply that is published while
 * the connection is away is lost; whoever waits must be able to learn it in another way.
 */
export class ReplyInbox {
  /** The channel; goes with every job whose reply shall come here. */
  readonly channel = `${PREFIX}:replies:${crypto.randomUUID()}`;
  readonly #redis: Redis;
  readonly #waiting = new Map<string, (end: JobEnd) => void>();
  #subscribed = false;

  constructor(redisUrl: string, log: Logger) {
    // Subscribes again by itself whenever the connection comes back.
    this.#redis = openPatient(redisUrl, "replies", log);
    this.#redis.on("message", (_channel: string, message: string) => this.#deliver(message, log));
    this.#redis.subscribe(this.channel).then(
      () => {
        this.#subscribed = true;
      },
      (error) => log.warn({ err: error }, "the process hears no replies"),
    );
  }

  /** Whether replies have begun to arrive here. */
  get isOpen(): boolean {
    return this.#subscribed;
  }

  /** Hands the end of a job to `settle`, if it is told here, until {@link forget} is called. Register before adding the job. */
  expect(jobId: string, settle: (end: JobEnd) => void): void {
    this.#waiting.set(jobId, settle);
  }

  forget(jobId: string): void {
    this.#waiting.delete(jobId);
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  #deliver(message: string, log: Logger): void {
    const ends = parseEnds(message);
    if (ends === null) log.warn("a reply could not be read");
    else for (const end of ends) this.#waiting.get(end.jobId)?.(end);
  }
}

function parseEnds(message: string): JobEnd[] | null {
  try {
    return jobEnds.parse(JSON.parse(message));
  } catch {
    return null;
  }
}

interface Message {
  ends: JobEnd[];
  sent: Promise<void>;
}

/** Tells processes how their jobs ended. What ends in one turn of the event loop, as a batch does, is one message to each. */
export class ReplyOutbox {
  readonly #redis: Redis;
  readonly #log: Logger;
  /** By channel. */
  readonly #ready = new Map<string, Message>();

  /** @param redis a connection that waits for Redis, which stays the caller's to close. */
  constructor(redis: Redis, log: Logger) {
    this.#redis = redis;
    this.#log = log;
  }

  /**
   * Resolves when Redis has passed the message on, or has refused it, which is logged. Redis sends nothing before it has done all
   * that arrived together: who has more to ask of it waits until then, or holds the reply up.
   */
  send(channel: string, end: JobEnd): Promise<void> {
    const waiting = this.#ready.get(channel);
    if (waiting !== undefined) {
      waiting.ends.push(end);
      return waiting.sent;
    }
    const ends = [end];
    const sent = this.#publish(channel, ends);
    this.#ready.set(channel, { ends, sent });
    return sent;
  }

  async #publish(channel: string, ends: JobEnd[]): Promise<void> {
    // After everything that the same batch has resolved, and before the loop looks for new input.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    this.#ready.delete(channel);
    try {
      await this.#redis.publish(channel, JSON.stringify(ends));
    } catch (error) {
      this.#log.warn({ err: error }, "replies could not be sent");
    }
  }
}
