import { type Ended, type Started, startNode } from "../../support/child-process.ts";
import { send } from "../../support/client.ts";
import type { TestServers } from "../../support/servers.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { untilStarted } from "../../support/until.ts";

/** An API and a worker as processes, so that tests can check output, memory and exit codes. */
export interface HostileService {
  url: string;
  metricsUrls: { api: string; worker: string };
  /** Sends SIGTERM to both processes. Returns their exit codes and output. */
  stop(): Promise<{ api: Ended; worker: Ended }>;
}

/** Reports at exit which prototypes of built-in objects were changed. */
const WATCH_PROTOTYPES = `data:text/javascript,${encodeURIComponent(`
const count = ({ prototype }) => Reflect.ownKeys(prototype).length;
const watched = [Object, Array, Function, String].map((built) => [built, count(built)]);
process.once("exit", () => {
  for (const [built, before] of watched)
    if (count(built) !== before) process.stderr.write("the prototype of " + built.name + " was changed\\n");
});`)}`;

/** Starts both processes, with `env`, and waits until they are ready. */
export async function startHostileService(
  servers: Pick<TestServers, "databaseUrl" | "redisUrl">,
  env: Record<string, string> = {},
): Promise<HostileService> {
  const [port, apiMetrics, workerMetrics] = [await findSteadyPort(), await findSteadyPort(), await findSteadyPort()];
  const start = (script: string, metricsPort: number): Started =>
    startNode(["--import", WATCH_PROTOTYPES, script], {
      DATABASE_URL: servers.databaseUrl,
      REDIS_URL: servers.redisUrl,
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      RATE_LIMIT_RPS: "0",
      MISS_LIMIT_PER_MINUTE: "0",
      ...env,
    });
  const api = start("src/main.ts", apiMetrics);
  const worker = start("workers/main.ts", workerMetrics);
  const url = `http://127.0.0.1:${port}`;
  const metricsUrl = (own: number) => `http://127.0.0.1:${own}/metrics`;
  await untilStarted(() => api.output().includes('"listening"') && worker.output().includes('"working"'));
  await untilStarted(async () => (await send("GET", `${url}/readyz`)).status === 200);
  return {
    url,
    metricsUrls: { api: metricsUrl(apiMetrics), worker: metricsUrl(workerMetrics) },
    async stop() {
      for (const { child } of [api, worker]) child.kill("SIGTERM");
      return { api: await api.ended, worker: await worker.ended };
    },
  };
}
