import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findSteadyPort } from "../../support/steady-port.ts";
import { untilStarted } from "../../support/until.ts";
import { readCpuMicros, withChildren } from "./process-usage.ts";
import type { BenchRedis, Stage } from "./stage.ts";

/** Time for a process to drain before it is killed. Milliseconds. */
const END_MS = 20_000;
/** A contender is idle if its processes together use less than this share of a core for this long. Milliseconds. */
const IDLE_SHARE = 0.2;
const IDLE_MS = 500;
/** Number of checks after which processes are paused even if they are not idle. */
const IDLE_LOOKS_MAX = 20;
/**
 * Time without load after a pause, so that delayed timers can run. In its first second the service redeems nothing,
 * because a request may be old. Milliseconds.
 */
const SETTLE_MS = 2_000;

/** An implementation of the partner API. Each script runs in its own process; the load is spread over the APIs. */
export interface Contender {
  title: string;
  apis: readonly string[];
  workers: readonly string[];
}

const SERVICE = { apis: ["src/main.ts"], workers: ["workers/main.ts"] };
const scaled = (apis: number, workers: number) => ({
  title: `this service, ${apis} API${apis > 1 ? "s" : ""} + ${workers} worker${workers > 1 ? "s" : ""}`,
  apis: Array<string>(apis).fill("src/main.ts"),
  workers: Array<string>(workers).fill("workers/main.ts"),
});
const baseline = (name: string) => `test/proof/bench/baselines/${name}-api.ts`;
const HAND_WRITTEN = baseline("hand-written");
const library = (name: string) => `test/proof/bench/contenders/${name}.ts`;
const GRAPHILE_WORKER = library("graphile-worker");

/**
 * The service and its alternatives. `2x4` is the service with two APIs and four workers. It takes part only if
 * `--contenders` names it, as does each contender that needs more than `npm ci` installs.
 */
export const CONTENDERS = {
  service: { title: "this service, 1 API + 1 worker", ...SERVICE },
  against: { title: "the service in --against, 1 API + 1 worker", ...SERVICE },
  large: { title: "this service, a database of --vouchers", ...SERVICE },
  small: { title: "this service, a database of 100 000", ...SERVICE },
  a: { title: "(a) one transaction per request, 2 processes", apis: [HAND_WRITTEN, HAND_WRITTEN], workers: [] },
  c: { title: "(c) Express, a constant, nothing else", apis: [baseline("constant")], workers: [] },
  "1x2": scaled(1, 2),
  "1x4": scaled(1, 4),
  "2x1": scaled(2, 1),
  "2x2": scaled(2, 2),
  "2x4": scaled(2, 4),
  d: { title: "(d) group commit in the API, 1 process", apis: [baseline("group-commit")], workers: [] },
  e: { title: "(e) BullMQ by the book, 1 API + 1 worker", apis: [library("bullmq")], workers: [library("bullmq")] },
  f: { title: "(f) DBOS Transact, 2 processes", apis: [library("dbos"), library("dbos")], workers: [] },
  i: { title: "(i) pgbench, one stored function, no HTTP", apis: [], workers: [] },
  g: { title: "(g) graphile-worker, 1 API + 1 worker", apis: [GRAPHILE_WORKER], workers: [GRAPHILE_WORKER] },
  h: { title: "(h) Restate, 1 API + 1 worker", apis: [library("restate")], workers: [library("restate")] },
} as const satisfies Record<string, Contender>;

export type ContenderId = keyof typeof CONTENDERS;

/** The contenders whose packages `installLibraries` installs. */
export const LIBRARIES = ["e", "f", "g", "h"] as const satisfies ContenderId[];
/** The service on filled databases, which are compared only with each other. */
export const FILLED = ["large", "small"] as const satisfies ContenderId[];
/** Whether a contender takes part only if `--contenders` names it. */
export const isOptional = (id: ContenderId) =>
  /^\dx\d$/.test(id) || id === "i" || [...LIBRARIES, ...FILLED].some((other) => other === id);

const WORKSPACE = fileURLToPath(new URL("contenders", import.meta.url));

/**
 * Installs the packages of `test/proof/bench/contenders` in the versions of its package.json.
 * @throws Error if npm fails.
 */
export async function installLibraries(): Promise<void> {
  await promisify(execFile)("npm", ["install", "--no-package-lock", "--workspaces=false"], { cwd: WORKSPACE });
}

type Setup = Pick<Stage, "root" | "databaseUrl" | "env" | "directory"> & BenchRedis;

/** A running contender. */
export interface RunningContender extends BenchRedis {
  id: ContenderId;
  ports: number[];
  apiPids: number[];
  workerPids: number[];
  /** The ports of the processes' metrics, in the order of their start, workers first. */
  metricsPorts: number[];
  /** @throws Error if a process of the contender has exited. */
  check(): void;
  /** Pauses the contender's processes once they are idle, so that they use no CPU and no Redis during other turns. */
  pause(): Promise<void>;
  /** Continues the processes. Resolves once every API is ready again. */
  resume(): Promise<void>;
  end(): Promise<void>;
}

/** Starts a contender's processes. Resolves once every API is ready. */
export async function startContender(id: ContenderId, setup: Setup): Promise<RunningContender> {
  const { apis, workers }: Contender = CONTENDERS[id];
  const { redisUrl, redisPids, directory } = setup;
  const children: ChildProcess[] = [];
  const start = async (script: string, own: Record<string, string>): Promise<number> => {
    const metricsPort = await findSteadyPort();
    running.metricsPorts.push(metricsPort);
    const logFile = join(directory, `${id}-${children.length + 1}.log`);
    const child = startProcess(script, logFile, setup, { METRICS_PORT: String(metricsPort), ...own });
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
    metricsPorts: [],
    check() {
      const ended = children.findIndex(hasEnded);
      if (ended >= 0) throw new Error(`process ${ended + 1} of ${id} exited`);
    },
    async pause() {
      await untilIdle([...running.apiPids, ...running.workerPids]);
      for (const child of children) signalGroup(child, "SIGSTOP");
    },
    async resume() {
      for (const child of children) signalGroup(child, "SIGCONT");
      if (children.length > 0) await sleep(SETTLE_MS);
      for (const port of running.ports) await untilReady(port);
    },
    async end() {
      await Promise.all(children.map(endProcess));
    },
  };
  const untilReady = (port: number) =>
    untilStarted(async () => {
      running.check();
      return (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null))?.ok;
    });
  try {
    for (const script of workers) running.workerPids.push(await start(script, {}));
    for (const script of apis) {
      const port = await findSteadyPort();
      running.apiPids.push(await start(script, { PORT: String(port) }));
      running.ports.push(port);
      // One API after another, because the first one creates its library's tables.
      await untilReady(port);
    }
    return running;
  } catch (error) {
    await running.end();
    throw error;
  }
}

/** The environment variables of each process of a contender, without the ports. */
export function environmentOf(setup: Pick<Setup, "databaseUrl" | "redisUrl" | "env" | "directory">) {
  const { databaseUrl, redisUrl, env, directory } = setup;
  return { NODE_ENV: "production", DATABASE_URL: databaseUrl, REDIS_URL: redisUrl, TMPDIR: directory, ...env };
}

function startProcess(script: string, logFile: string, setup: Setup, own: Record<string, string>): ChildProcess {
  const log = openSync(logFile, "a");
  const child = spawn(process.execPath, [script], {
    cwd: setup.root,
    env: { PATH: process.env.PATH ?? "", ...environmentOf(setup), ...own },
    // This channel closes if the benchmark's process is killed, so that the contender's process notices.
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
  });
  closeSync(log);
  return child;
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null;

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (hasEnded(child)) return;
  try {
    process.kill(-(child.pid as number), signal);
  } catch {
    // The process has ended already. `check` reports that.
  }
}

/** Waits until processes have finished their current work. */
async function untilIdle(pids: readonly number[]): Promise<void> {
  for (let looks = 0; looks < IDLE_LOOKS_MAX; looks++) {
    const read = () => readCpuMicros(pids.flatMap(withChildren));
    const before = read();
    await sleep(IDLE_MS);
    // Also true if CPU time cannot be read, because a comparison with NaN is false.
    if (!(read() - before > IDLE_SHARE * IDLE_MS * 1_000)) return;
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (hasEnded(child)) return;
  const exit = once(child, "exit");
  const killer = setTimeout(() => child.kill("SIGKILL"), END_MS);
  // A stopped process reacts to no other signal.
  signalGroup(child, "SIGCONT");
  child.kill("SIGTERM");
  await exit;
  clearTimeout(killer);
}
