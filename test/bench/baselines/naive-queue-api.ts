import { Queue, QueueEvents } from "bullmq";
import { createApp } from "../../../src/app.ts";
import { readApiConfig } from "../../../src/config.ts";
import { AppError } from "../../../src/contract/errors.ts";
import { readiness } from "../../../src/http/routes/health.ts";
import { redeem } from "../../../src/http/routes/redeem.ts";
import { listen } from "../../../src/http/server.ts";
import { openApi } from "../../../src/open-api.ts";
import { configureProcess, drainOnSignal } from "../../../src/process.ts";
import { NAIVE_PREFIX, NAIVE_QUEUE, type NaiveJob, type NaiveReply } from "./naive-queue.ts";
import { type RedeemBody, toRedeemInput } from "./one-transaction.ts";
import { replaceWork } from "./replace-work.ts";

// Baseline (b), the API: after the service's own checks it adds a job and calls `waitUntilFinished`, as in BullMQ's documentation.

/** Longest wait for a job. Milliseconds. */
const WAIT_MS = 10_000;

const config = configureProcess(readApiConfig);
const ctx = openApi(config);
const options = { prefix: NAIVE_PREFIX, connection: { url: config.redisUrl } };
const queue = new Queue<NaiveJob, NaiveReply>(NAIVE_QUEUE, {
  ...options,
  defaultJobOptions: { removeOnComplete: { count: 1_000 }, removeOnFail: { count: 1_000 } },
});
// Each waiting request adds a listener.
queue.setMaxListeners(0);
const events = new QueueEvents(NAIVE_QUEUE, options);
events.setMaxListeners(0);
await events.waitUntilReady();

const app = createApp(ctx, [
  replaceWork(redeem, "voucher.redeem", async (_ctx, caller, body: RedeemBody) => {
    const job = await queue.add("redeem", { ...caller, ...toRedeemInput(body) });
    const reply = await job.waitUntilFinished(events, WAIT_MS);
    if ("refused" in reply) {
      const { refused, message, retryAfterSeconds } = reply;
      throw new AppError(refused, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
    }
    return reply.result;
  }),
  readiness,
]);
const server = await listen(app, config.port, ctx.log);
drainOnSignal(ctx.log, async () => {
  await server.close();
  await events.close();
  await queue.close();
  await ctx.close();
});
