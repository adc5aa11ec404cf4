import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestServers } from "../../support/servers.ts";
import { testEnvironment } from "../../support/service.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { untilStarted } from "../../support/until.ts";
import { untilReady } from "../faults/checker.ts";
import type { ApiProcess } from "../faults/cluster.ts";
import { ServiceProcess } from "../faults/service-process.ts";

/** Processes of the service on a test file's servers. They end with the servers. */
export interface Processes {
  apis: ApiProcess[];
  /** The processes that exited unexpectedly. */
  accidents: string[];
}

/** Starts API processes and a worker that redeems and seals. Resolves once all of them work. */
export async function startProcesses(
  servers: TestServers,
  apiCount: number,
  env: Record<string, string>,
): Promise<Processes> {
  const folder = mkdtempSync(join(tmpdir(), "voucher-processes-"));
  const accidents: string[] = [];
  const started: ServiceProcess[] = [];
  servers.onClose(async () => {
    await Promise.all(started.map((process) => process.terminate()));
    rmSync(folder, { recursive: true, force: true });
  });
  const start = (name: string, script: string, own: Record<string, string>) => {
    const program = { name, script, env: testEnvironment(servers, { ...env, ...own }) };
    const logFile = join(folder, `${name}.log`);
    const process = new ServiceProcess({ ...program, logFile }, (what) => void accidents.push(what));
    started.push(process);
    process.start();
    return process;
  };
  const worker = start("worker", "workers/main.ts", { WORKER_QUEUES: "redeem,seal", LOG_LEVEL: "info" });
  const apis: ApiProcess[] = [];
  while (apis.length < apiCount) {
    const port = await findSteadyPort();
    const process = start(`api-${apis.length + 1}`, "src/main.ts", { PORT: String(port) });
    apis.push({ process, url: `http://127.0.0.1:${port}` });
  }
  await untilReady({ apis });
  await untilStarted(() => worker.hasLogged("working"));
  return { apis, accidents };
}
