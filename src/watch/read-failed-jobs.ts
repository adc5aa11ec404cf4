import type { Logger } from "pino";
import type { QueueName } from "../platform/queues/queue-settings.ts";
import type { QueueView, QueueViews } from "../platform/queues/queue-views.ts";

/** A failed job, without the fields that the dashboard may not show. */
export interface FailedJob {
  id: string;
  reason: string;
  failedAt: Date;
  voucherId: string | null;
  endpointId: string | null;
}

/** The newest failed jobs of a queue, at most `max`; null when a Redis server does not answer. */
export async function readFailedJobs(
  { queueViews, log }: { queueViews: Pick<QueueViews, "open">; log: Logger },
  name: QueueName,
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

async function readShard({ queue, shown }: QueueView, max: number): Promise<FailedJob[]> {
  const jobs = await queue.getJobs("failed", 0, max - 1);
  return jobs.flatMap((job): FailedJob[] => {
    // A job that was removed since the list was read is undefined.
    if (job === undefined || job.id === undefined) return [];
    const textIn = (field: string) => {
      const value: unknown = Object(job.data)[field];
      return shown.data.includes(field) && typeof value === "string" ? value : null;
    };
    return [
      {
        id: job.id,
        reason: job.failedReason ?? "",
        failedAt: new Date(job.finishedOn ?? job.timestamp),
        voucherId: textIn("voucherId"),
        endpointId: textIn("endpointId"),
      },
    ];
  });
}
