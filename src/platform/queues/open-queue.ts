import { Queue } from "bullmq";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import type { RedisClient } from "../redis/connections.ts";
import { logErrors } from "../redis/log-errors.ts";
import type { QueueDefinition } from "./queue-settings.ts";
import type { Shard } from "./shards.ts";

/** Maximum number of entries in BullMQ's event stream, which only dashboards read. */
const EVENTS_MAX = 1_000;
/** Maximum number of bytes by which the fields of `jobEnvelope` make a job's data longer. */
const ENVELOPE_MAX_BYTES = 512;

/** The resources of a process that add jobs to a queue. The process closes them. */
export interface QueueResources {
  /** A fail-fast connection. */
  redis: RedisClient;
  /** The number of shards among which jobs are distributed. */
  shards: number;
  deployment: DeploymentIdentity;
  log: Logger;
}

/**
 * Opens a shard of a queue for adding jobs. The connection must be ready, because BullMQ writes a setting at once and
 * would ignore a failure.
 */
export function openQueue(
  definition: Pick<QueueDefinition, "name" | "keep" | "keepFailed" | "dataMaxBytes">,
  shard: Shard,
  redis: RedisClient,
  log: Logger,
): Queue {
  const { name, keep, keepFailed, dataMaxBytes } = definition;
  const queue = new Queue(name, {
    prefix: shard.prefix,
    connection: redis,
    streams: { events: { maxLen: EVENTS_MAX } },
    defaultJobOptions: {
      // BullMQ does not retry. Callers retry a redemption and the sweeper requests a seal again, which the database
      // makes safe.
      attempts: 1,
      removeOnComplete: keep,
      removeOnFail: keepFailed,
      stackTraceLimit: 1,
      sizeLimit: dataMaxBytes + ENVELOPE_MAX_BYTES,
    },
  });
  logErrors(queue, log.child({ queue: name }), "an error of a queue");
  return queue;
}
