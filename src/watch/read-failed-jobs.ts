import type { Logger } from "pino";
import type { QueueView, QueueViews } from "../platform/queues/queue-views.ts";

/** A failed job, without the fields that the dashboard may not show. */
export interface FailedJob {
  id: string;
  reason: string;
  failedAt: Date;
  /** The operator page of what the job is about, as segments after `/ops`; null without one. */
  page: readonly [collection: string, id: string] | null;
}

/** The newest failed jobs of a queue, at most `max`; null when a Redis server does not answer. */
export async function readFailedJobs(
  { queueViews, log }: { queueViews: Pick<QueueViews, "open">; log: Logger },
  name: string,
  max: number,
): Promise<FailedJob[] | null> {
  try {
    const views = (await queueViews.open()).filter(({ queue }) => queue.name === name);
    const found = await Promise.all(views.map((view) => readShard(view, max)));
    return found
      .flat()
      .toSorted((a, b) => b.failedAt.getTime() - a.failedAt.getTime())
      .slice(0, max);
  } catch (error) {
    log.debug({ err: error }, "cannot read failed jobs");
    return null;
  }
}

async function readShard({ queue, settings: { about } }: QueueView, max: number): Promise<FailedJob[]> {
  const jobs = await queue.getJobs("failed", 0, max - 1);
  return jobs.flatMap((job): FailedJob[] => {
    // A job that was removed since the list was read is undefined.
    if (job === undefined || job.id === undefined) return [];
    const id: unknown = Object(job.data)[about?.field ?? ""];
    return [
      {
        id: job.id,
        reason: job.failedReason ?? "",
        failedAt: new Date(job.finishedOn ?? job.timestamp),
        page: about !== undefined && typeof id === "string" ? [about.collection, id] : null,
      },
    ];
  });
}
