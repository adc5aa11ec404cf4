import { z } from "zod";
import { defineQueue } from "../../platform/queues/queue-settings.ts";
import { CORE_QUEUES } from "../queues.ts";

/** A job that asks for one pass of the sweeper. It is empty, because the sweeper reads its work from Postgres. */
const sweepJob = z.object({});

/** The results of one pass. */
const sweepReport = z.object({
  /** How many items each task has changed, by task name. 0 for a task that failed. */
  items: z.record(z.string(), z.number()),
  chainsChecked: z.number(),
  chainsBroken: z.number(),
  /** Error messages of failed tasks, by task name. The next pass retries these tasks. */
  failures: z.record(z.string(), z.string()),
  durationMs: z.number(),
});
export type SweepReport<Task extends string = string> = z.output<typeof sweepReport> & { items: Record<Task, number> };

export const sweepQueue = defineQueue(CORE_QUEUES.sweep, { data: sweepJob, reply: sweepReport });
