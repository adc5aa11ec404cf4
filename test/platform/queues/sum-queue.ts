import { z } from "zod";
import type { QueueDefinition } from "../../../src/platform/queues/queue-settings.ts";
import { findShard } from "../../../src/platform/queues/shards.ts";

export interface Sum {
  a: number;
  b: number;
}

const sumReply = z.object({ sum: z.number() });
export type SumReply = z.infer<typeof sumReply>;

/** A queue whose jobs add two numbers. */
export const sumQueue: QueueDefinition<Sum, SumReply> = {
  name: "sum",
  shardBy: "a",
  ownedBy: "b",
  data: z.object({ a: z.number(), b: z.number() }),
  reply: sumReply,
  dataMaxBytes: 64,
  waitingMax: 5_000,
  withdrawOnTimeout: true,
  keep: { age: 60, count: 5_000 },
  keepFailed: { age: 60, count: 5_000 },
  whilePaused: "",
  shown: { data: [], reply: [] },
};

export const deployment = { id: "test", serverId: "test/1", ready: async () => undefined, reconnect: async () => {} };

/** The queue's only shard. */
export const SHARD = findShard(deployment.id, 0, 1);
