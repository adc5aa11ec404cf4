import type { SweepReport } from "../../src/queues/catalog.ts";
import { sweep } from "../../src/services/sweep.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { until } from "../support/until.ts";

/** The service that all runs of the model test share: an API and workers on real servers. */
export interface System {
  servers: TestServers;
  api: TestApi;
  stopWorkers(): Promise<void>;
  /** Starts the workers unless they run. */
  startWorkers(): Promise<void>;
  /** One pass of the sweeper, which does not run by itself here. */
  sweep(): Promise<SweepReport>;
  /** Adds a seal job. */
  requestSeal(voucherId: string): Promise<void>;
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
  /** A worker that was just started may still be on its way to Redis. */
  const connected = async () => {
    const ctx = workers?.ctx;
    if (ctx === undefined) throw new Error("no worker runs");
    await until(() => ctx.redis.status === "ready");
    return ctx;
  };
  return {
    servers,
    api,
    stopWorkers: stop,
    async startWorkers() {
      workers ??= await startWorkers(servers);
    },
    sweep: async () => sweep(await connected()),
    requestSeal: async (voucherId) => (await connected()).sealRequests.add([voucherId]),
    async close() {
      await api.close();
      await stop();
      await servers.close();
    },
  };
}
