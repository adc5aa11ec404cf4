import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../src/local/servers.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const READY_MS = 30_000;
/** How long a process may take to drain before it is killed. Milliseconds. */
const END_MS = 20_000;

/** Something that serves the partner API, or a part of it, in processes of its own. */
export interface Contender {
  id: string;
  title: string;
  /** Scripts and how many processes of each; APIs listen on ports of their own and the load is spread over them. */
  api: { script: string; processes: number };
  worker: { script: string; processes: number } | null;
  /** Cases that it has no answer to. */
  lacks?: readonly string[];
  env?: Record<string, string>;
}

const SERVICE_API = "src/main.ts";
const SERVICE_WORKER = "workers/main.ts";
const BASELINES = "test/bench/baselines";

/** The service, and what one could have instead. */
export const CONTENDERS = {
  service: {
    title: "this service, 1 API + 1 worker",
    api: { script: SERVICE_API, processes: 1 },
    worker: { script: SERVICE_WORKER, processes: 1 },
  },
  "service-1-2": {
    title: "this service, 1 API + 2 workers",
    api: { script: SERVICE_API, processes: 1 },
    worker: { script: SERVICE_WORKER, processes: 2 },
  },
  "service-2-1": {
    title: "this service, 2 API + 1 worker",
    api: { script: SERVICE_API, processes: 2 },
    worker: { script: SERVICE_WORKER, processes: 1 },
  },
  "service-2-2": {
    title: "this service, 2 API + 2 workers",
    api: { script: SERVICE_API, processes: 2 },
    worker: { script: SERVICE_WORKER, processes: 2 },
  },
  "service-unlimited": {
    title: "this service without its limits",
    api: { script: SERVICE_API, processes: 1 },
    worker: { script: SERVICE_WORKER, processes: 1 },
    env: { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0" },
  },
  a: {
    title: "(a) one transaction per request, 1 process",
    api: { script: `${BASELINES}/hand-written-api.ts`, processes: 1 },
    worker: null,
    lacks: ["claim"],
  },
  "a-2": {
    title: "(a) one transaction per request, 2 processes",
    api: { script: `${BASELINES}/hand-written-api.ts`, processes: 2 },
    worker: null,
    lacks: ["claim"],
  },
  "a-steps": {
    title: "(a) with a trip for each statement, 1 process",
    api: { script: `${BASELINES}/hand-written-api.ts`, processes: 1 },
    worker: null,
    lacks: ["claim"],
    env: { BENCH_STEPS: "on" },
  },
  b: {
    title: "(b) naive BullMQ, 1 API + 1 worker",
    api: { script: `${BASELINES}/naive-queue-api.ts`, processes: 1 },
    worker: { script: `${BASELINES}/naive-queue-worker.ts`, processes: 1 },
    lacks: ["lookup", "reserve", "checkout", "claim"],
  },
  c: {
    title: "(c) Express, a constant, nothing else",
    api: { script: `${BASELINES}/constant-api.ts`, processes: 1 },
    worker: null,
    lacks: ["checkout", "claim"],
  },
  "c-edge": {
    title: "(c) a constant behind log, key and body checks",
    api: { script: `${BASELINES}/constant-api.ts`, processes: 1 },
    worker: null,
    lacks: ["checkout", "claim"],
    env: { BENCH_EDGE: "on" },
  },
  d: {
    title: "(d) group commit in the API, 1 process",
    api: { script: `${BASELINES}/group-commit-api.ts`, processes: 1 },
    worker: null,
  },
} as const satisfies Record<string, Omit<Contender, "id">>;

export type ContenderId = keyof typeof CONTENDERS;

/** Whether a contender has an answer to a case. */
export function canPlay(id: ContenderId, caseId: string): boolean {
  const { lacks = [] }: Omit<Contender, "id"> = CONTENDERS[id];
  return !lacks.includes(caseId);
}

/** Where a contender's processes find everything. */
export interface Surroundings {
  databaseUrl: string;
  /** Gives a Redis database to a contender that starts: workers of two must not take each other's jobs. */
  redisUrl: () => string;
  /** What all processes get besides. */
  env: Record<string, string>;
  logDirectory: string;
  /** Where the processes leave CPU profiles when they end; null: none are taken. */
  profileDirectory: string | null;
}

/** A contender that runs. */
export interface RunningContender {
  id: ContenderId;
  title: string;
  ports: number[];
  apiPids: number[];
  workerPids: number[];
  /** @throws Error when one of its processes has ended by itself. */
  check(): void;
  end(): Promise<void>;
}

/** Starts a contender's processes and resolves once every API is ready. */
export async function startContender(id: ContenderId, surroundings: Surroundings): Promise<RunningContender> {
  const contender: Omit<Contender, "id"> = CONTENDERS[id];
  const children: ChildProcess[] = [];
  const ports: number[] = [];
  const redisUrl = surroundings.redisUrl();
  const start = (role: string, script: string, env: Record<string, string>): number => {
    const child = startProcess(
      `${id}-${role}`,
      script,
      { REDIS_URL: redisUrl, ...contender.env, ...env },
      surroundings,
    );
    children.push(child);
    return child.pid as number;
  };
  const running: RunningContender = {
    id,
    title: contender.title,
    ports,
    apiPids: [],
    workerPids: [],
    check() {
      const gone = children.find((child) => child.exitCode !== null || child.signalCode !== null);
      if (gone) throw new Error(`a process of ${id} ended by itself; see its log in ${surroundings.logDirectory}`);
    },
    async end() {
      await Promise.all(children.map(endProcess));
    },
  };
  try {
    for (let i = 1; i <= (contender.worker?.processes ?? 0); i++) {
      const env = { METRICS_PORT: String(await freePort()) };
      running.workerPids.push(start(`worker-${i}`, contender.worker?.script ?? "", env));
    }
    for (let i = 1; i <= contender.api.processes; i++) {
      const port = await freePort();
      const env = { PORT: String(port), METRICS_PORT: String(await freePort()) };
      running.apiPids.push(start(`api-${i}`, contender.api.script, env));
      ports.push(port);
    }
    for (const port of ports) await untilReady(port, running);
    return running;
  } catch (error) {
    await running.end();
    throw error;
  }
}

let profiles = 0;

function startProcess(
  name: string,
  script: string,
  env: Record<string, string>,
  surroundings: Surroundings,
): ChildProcess {
  const { databaseUrl, logDirectory, profileDirectory } = surroundings;
  const log = openSync(join(logDirectory, `${name}.log`), "a");
  const profile =
    profileDirectory === null
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${profileDirectory}`, `--cpu-prof-name=${name}-${++profiles}.cpuprofile`];
  const child = spawn(process.execPath, [...profile, script], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH ?? "",
      NODE_ENV: "production",
      DATABASE_URL: databaseUrl,
      ...surroundings.env,
      ...env,
    },
    // The channel tells the process when this one was killed.
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
  });
  closeSync(log);
  return child;
}

async function untilReady(port: number, running: RunningContender): Promise<void> {
  const giveUpAt = Date.now() + READY_MS;
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
    if (response?.ok) return;
    running.check();
    if (Date.now() > giveUpAt) throw new Error(`${running.id} did not become ready`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const killer = setTimeout(() => child.kill("SIGKILL"), END_MS);
    child.once("exit", () => {
      clearTimeout(killer);
      resolve();
    });
    child.kill("SIGTERM");
  });
}
