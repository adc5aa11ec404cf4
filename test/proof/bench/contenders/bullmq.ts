import { Queue, QueueEvents, Worker } from "bullmq";
import { openBaseline } from "../baselines/open-baseline.ts";
import { type RedeemEnd, type RedeemJob, redeemId, runRedeem, serveRedeems } from "./redeem-job.ts";

// Contender (e): BullMQ as in its guide. The job's id is the reference, `waitUntilFinished` returns the answer, and a
// worker runs a transaction for each job. The process that has the variable PORT is the API, the other one the worker.

const QUEUE = "redeem-by-the-book";
const CONCURRENCY = 64;
/** Maximum wait for a job, the same as the service's. Milliseconds. */
const WAIT_MS = 10_000;
/** The guide's example of retries and of ages of kept jobs. `age` is in seconds. */
const JOB_OPTIONS = {
  attempts: 3,
  backoff: { type: "exponential", delay: 1_000 },
  removeOnComplete: { age: 3_600 },
  removeOnFail: { age: 86_400 },
};

const baseline = openBaseline();
const { work, serveNothing } = baseline;
const { log, config } = work;
const connection = { url: config.redisUrl, maxRetriesPerRequest: null };
const onError = (err: Error) => log.warn({ err }, "bullmq");

if (process.env.PORT === undefined) {
  const worker = new Worker<RedeemJob, RedeemEnd>(QUEUE, ({ data }) => runRedeem(work, data), {
    connection,
    concurrency: CONCURRENCY,
  });
  work.use(worker.on("error", onError));
  serveNothing();
} else {
  // The guide's advice for an API: fail at once if Redis is unreachable.
  const failFast = { url: config.redisUrl, enableOfflineQueue: false };
  const queue = new Queue<RedeemJob, RedeemEnd>(QUEUE, { connection: failFast, defaultJobOptions: JOB_OPTIONS });
  const events = new QueueEvents(QUEUE, { connection });
  work.use(queue.on("error", onError));
  work.use(events.on("error", onError));
  await Promise.all([queue.waitUntilReady(), events.waitUntilReady()]);
  // Each waiting job adds a listener, so their number has no limit.
  events.setMaxListeners(0);
  await serveRedeems(baseline, async (job) => {
    const added = await queue.add("redeem", job, { jobId: redeemId(job) });
    return added.waitUntilFinished(events, WAIT_MS);
  });
}
