import type { RedeemJob, RedeemReply } from "../../../src/core/redeem/job.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import type { SweepReport } from "../../../src/core/sweep/report.ts";
import { sweep } from "../../../src/open/open-sweep.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../../support/service.ts";
import { untilStarted } from "../../support/until.ts";

/** The API and workers that all runs of the model test share. */
export interface System {
  servers: TestServers;
  api: TestApi;
  stopWorkers(): Promise<void>;
  /** Starts the workers unless they are running. */
  startWorkers(): Promise<void>;
  /** Runs one sweep. Nothing else starts sweeps. */
  sweep(): Promise<SweepReport>;
  /** Runs a job as a worker that gets it now. */
  runJob(attemptId: string, job: RedeemJob): Promise<RedeemReply>;
  close(): Promise<void>;
}

export async function openSystem(): Promise<System> {
  const servers = await openTestServers();
  const api = await startApi(servers);
  let workers: TestWorker | null = await startWorkers(servers);
  const stop = async () => {
    await workers?.close();
    workers = null;
  };
  /** Waits until the workers are connected to Redis, and returns their context. */
  const untilConnected = async () => {
    const ctx = workers?.ctx;
    if (ctx === undefined) throw new Error("no worker runs");
    await untilStarted(() => ctx.redis.status === "ready");
    return ctx;
  };
  return {
    servers,
    api,
    stopWorkers: stop,
    async startWorkers() {
      workers ??= await startWorkers(servers);
    },
    sweep: async () => sweep(await untilConnected()),
    runJob: async (attemptId, job) => runRedeemJob(await untilConnected(), attemptId, job),
    async close() {
      await api.close();
      await stop();
      await servers.close();
    },
  };
}
