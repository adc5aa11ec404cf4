import { setTimeout as sleep } from "node:timers/promises";
import { makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { normaliseCode } from "../../../../src/core/voucher/codes.ts";
import { type RunTransaction, transact } from "../baselines/one-transaction.ts";
import { openBaseline } from "../baselines/open-baseline.ts";
import { type RedeemEnd, type RedeemJob, redeemId, runRedeem, serveRedeems } from "./redeem-job.ts";

// Contender (g): graphile-worker, which fetches and completes jobs in batches. Each voucher has a queue, whose jobs run
// one after another. NOTIFY carries the answer. The process with the variable PORT is the API, the other the worker.

const CHANNEL = "redeem_ends";
/** Maximum jobs that a worker runs at once, like contender (e). */
const CONCURRENCY = 64;
/** Size of the library's own pool, which fetches and completes jobs: the same as the transactions' pool. */
const POOL_MAX = 16;
const FETCHED_MAX = CONCURRENCY;
/**
 * The worker completes together the jobs that end in one iteration of the event loop. After a longer wait, a crash
 * would repeat more jobs.
 */
const COMPLETE_AFTER_MS = 0;
/** Maximum wait for an answer, the same as the service's. Milliseconds. */
const WAIT_MS = 10_000;
/** Pause before the next attempt to listen for answers. Milliseconds. */
const LISTEN_AGAIN_MS = 500;
/** The answer on the channel. */
type Told = { id: string; end: RedeemEnd };

const baseline = openBaseline();
const { work, serveNothing } = baseline;
const { config, pool, log } = work;

if (process.env.PORT === undefined) {
  const runner = await run({
    preset: {
      worker: {
        connectionString: config.databaseUrl,
        concurrentJobs: CONCURRENCY,
        maxPoolSize: POOL_MAX,
        localQueue: { size: FETCHED_MAX },
        completeJobBatchDelay: COMPLETE_AFTER_MS,
        failJobBatchDelay: COMPLETE_AFTER_MS,
      },
    },
    noHandleSignals: true,
    taskList: {
      async redeem(payload, { query }) {
        const job = payload as RedeemJob;
        const notice = (end: RedeemEnd): [string, string[]] => {
          const told: Told = { id: redeemId(job), end };
          return ["SELECT pg_notify($1, $2)", [CHANNEL, JSON.stringify(told)]];
        };
        let isTold = false;
        const redeemAndTell: RunTransaction = (ctx, read, redeem) =>
          transact(ctx, read, async (tx, state) => {
            const response = await redeem(tx, state);
            if (response !== null) await tx.query(...notice({ response }));
            isTold = response !== null;
            return response;
          });
        const end = await runRedeem(work, job, redeemAndTell);
        if (!isTold) await query(...notice(end));
      },
    },
  });
  work.use({ close: () => runner.stop() });
  serveNothing();
} else {
  const utils = await makeWorkerUtils({ pgPool: pool });
  await utils.migrate();
  const waiting = new Map<string, Set<(end: RedeemEnd) => void>>();
  let isOpen = true;
  work.use({
    async close() {
      isOpen = false;
    },
  });
  /** Listens on its own connection until the connection is lost. */
  const listen = async (onListening: () => void) => {
    const client = new pg.Client({ connectionString: config.databaseUrl });
    const lost = new Promise<void>((resolve) => client.on("error", () => resolve()).on("end", () => resolve()));
    client.on("notification", ({ payload = "" }) => {
      const { id, end }: Told = JSON.parse(payload);
      for (const settle of waiting.get(id) ?? []) settle(end);
    });
    await client.connect();
    await client.query(`LISTEN ${CHANNEL}`);
    work.use({ close: () => client.end() });
    onListening();
    await lost;
  };
  const first = Promise.withResolvers<void>();
  void (async () => {
    while (isOpen) {
      await listen(first.resolve).catch((err) => log.warn({ err }, "the connection that listens is lost"));
      await sleep(LISTEN_AGAIN_MS);
    }
  })();
  await first.promise;

  const wait = (id: string, settle: (end: RedeemEnd) => void) => {
    const own = waiting.get(id) ?? new Set();
    waiting.set(id, own.add(settle));
    return () => {
      own.delete(settle);
      if (own.size === 0) waiting.delete(id);
    };
  };
  await serveRedeems(baseline, async (job) => {
    const id = redeemId(job);
    const { promise, resolve, reject } = Promise.withResolvers<RedeemEnd>();
    const forget = wait(id, resolve);
    const timer = setTimeout(() => reject(new Error(`no answer within ${WAIT_MS} ms`)), WAIT_MS);
    try {
      const { code, ticket } = job.body;
      const queueName = code == null ? String(ticket) : normaliseCode(code);
      await utils.addJob("redeem", job, { jobKey: id, ...(queueName !== null && { queueName }) });
      return await promise;
    } finally {
      clearTimeout(timer);
      forget();
    }
  });
}
