import { Queue } from "bullmq";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { PREFIX, type QueueDefinition } from "./catalog.ts";
import { logErrors } from "./log-errors.ts";

/** Entries of a queue's event stream, which BullMQ keeps and dashboards alone read. */
const EVENTS_MAX = 1_000;
/** Room for what goes with a job besides its data. */
const ENVELOPE_MAX_BYTES = 256;

/**
 * Opens the adding end of a queue on a connection that is ready: opening writes the queue's limits into Redis, and a write that
 * fails then is lost silently. The connection stays the caller's to close.
 */
export function openQueue<Data>(definition: QueueDefinition<Data>, redis: Redis, log: Logger): Queue {
  const { name, keep, keepFailed, dataMaxBytes } = definition;
  const queue = new Queue(name, {
    prefix: PREFIX,
    connection: redis,
    streams: { events: { maxLen: EVENTS_MAX } },
    defaultJobOptions: {
      // Whoever waits for a redeem retries it, and the sweeper asks again for a seal; the database makes both safe.
      attempts: 1,
      removeOnComplete: keep,
      removeOnFail: keepFailed,
      stackTraceLimit: 1,
      sizeLimit: dataMaxBytes + ENVELOPE_MAX_BYTES,
    },
  });
  logErrors(queue, log.child({ queue: name }), "queue");
  return queue;
}
