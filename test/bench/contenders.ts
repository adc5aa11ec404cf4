import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findSteadyPort } from "../support/steady-port.ts";
import type { BenchRedis, Stage } from "./stage.ts";

const READY_MS = 60_000;
/** Time for a process to drain before it is killed. Milliseconds. */
const END_MS = 20_000;

/** An implementation of the partner API. Each script runs in its own process; the load is spread over the APIs. */
export interface Contender {
  title: string;
  apis: readonly string[];
  workers: readonly string[];
  /** On a Redis Cluster of its own, with this many shards. */
  shards?: number;
}

const SERVICE = { apis: ["src/main.ts"], workers: ["workers/main.ts"] };
const BASELINES = "test/bench/baselines";
const HAND_WRITTEN = `${BASELINES}/hand-written-api.ts`;

/** The service and its alternatives, each with its best number of processes on two cores. */
export const CONTENDERS = {
  service: { title: "this service, 1 API + 1 worker", ...SERVICE },
  against: { title: "the service in --against, 1 API + 1 worker", ...SERVICE },
  cluster: { title: "this service on 3 Redis masters, 6 shards", ...SERVICE, shards: 6 },
  a: { title: "(a) one transaction per request, 2 processes", apis: [HAND_WRITTEN, HAND_WRITTEN], workers: [] },
  c: { title: "(c) Express, a constant, nothing else", apis: [`${BASELINES}/constant-api.ts`], workers: [] },
  d: { title: "(d) group commit in the API, 1 process", apis: [`${BASELINES}/group-commit-api.ts`], workers: [] },
} as const satisfies Record<string, Contender>;

export type ContenderId = keyof typeof CONTENDERS;

/** The environment of a contender's processes. */
type Setup = Pick<Stage, "root" | "databaseUrl" | "env" | "directory"> & BenchRedis;

/** A running contender. */
export interface RunningContender {
  id: ContenderId;
  redisUrl: string;
  redisPids: readonly number[];
  ports: number[];
  apiPids: number[];
  workerPids: number[];
  /** @throws Error when one of its processes has exited. */
  check(): void;
  end(): Promise<void>;
}

/** Starts a contender's processes. Resolves once every API is ready. */
export async function startContender(id: ContenderId, setup: Setup): Promise<RunningContender> {
  const { apis, workers, shards = 1 }: Contender = CONTENDERS[id];
  const { redisUrl, redisPids, directory } = setup;
  const children: ChildProcess[] = [];
  const start = (script: string, env: Record<string, string>): number => {
    const own = { QUEUE_SHARDS: String(shards), ...env };
    const child = startProcess(script, join(directory, `${id}-${children.length + 1}.log`), setup, own);
    children.push(child);
    return child.pid as number;
  };
  const running: RunningContender = {
    id,
    redisUrl,
    redisPids,
    ports: [],
    apiPids: [],
    workerPids: [],
    check() {
      const ended = children.find(hasEnded);
      if (ended) throw new Error(`process ${children.indexOf(ended) + 1} of ${id} exited`);
    },
    async end() {
      await Promise.all(children.map(endProcess));
    },
  };
  try {
    for (const script of workers) {
      running.workerPids.push(start(script, { METRICS_PORT: String(await findSteadyPort()) }));
    }
    for (const script of apis) {
      const port = await findSteadyPort();
      running.apiPids.push(start(script, { PORT: String(port), METRICS_PORT: String(await findSteadyPort()) }));
      running.ports.push(port);
    }
    for (const port of running.ports) await untilReady(port, running);
    return running;
  } catch (error) {
    await running.end();
    throw error;
  }
}

function startProcess(
  script: string,
  logFile: string,
  { root, databaseUrl, redisUrl, env }: Setup,
  own: Record<string, string>,
): ChildProcess {
  const log = openSync(logFile, "a");
  const addresses = { DATABASE_URL: databaseUrl, REDIS_URL: redisUrl };
  const child = spawn(process.execPath, [script], {
    cwd: root,
    env: { PATH: process.env.PATH ?? "", NODE_ENV: "production", ...addresses, ...env, ...own },
    // The channel tells the process when this one is killed.
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
    await sleep(50);
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

async function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exit = once(child, "exit");
  const killer = setTimeout(() => child.kill("SIGKILL"), END_MS);
  child.kill("SIGTERM");
  await exit;
  clearTimeout(killer);
}
