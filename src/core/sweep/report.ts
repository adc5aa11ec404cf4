import { z } from "zod";
import { defineQueue } from "../../platform/queues/queue-settings.ts";
import { CORE_QUEUES } from "../queues.ts";

/** One pass of the sweeper. The sweeper reads its work from Postgres. */
const sweepJob = z.object({});

/** The results of one pass. */
const sweepReport = z.object({
  /** How many items each task has changed, by task; 0 for a task that failed. */
  items: z.record(z.string(), z.number()),
  chainsChecked: z.number(),
  chainsBroken: z.number(),
  /** Error messages of failed tasks, by task. The next pass retries them. */
  failures: z.record(z.string(), z.string()),
  durationMs: z.number(),
});
export type SweepReport<Task extends string = string> = z.output<typeof sweepReport> & { items: Record<Task, number> };

export const sweepQueue = defineQueue(CORE_QUEUES.sweep, { data: sweepJob, reply: sweepReport });
