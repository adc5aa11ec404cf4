import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CLOSE_MAX_MS } from "../platform/process.ts";
import { START_MAX_MS } from "./redis.ts";
import type { StartLog } from "./start-log.ts";

/** The script of each kind of process. */
const SCRIPTS = { API: "../main.ts", worker: "../../workers/main.ts" };

type Kind = keyof typeof SCRIPTS;

/** Maximum wait for a process to end. A process that still runs then counts as frozen, and is killed. Milliseconds. */
const END_MAX_MS = CLOSE_MAX_MS + 5_000;

/** Pause before the restart of a process that has ended. It doubles with each end after a short run. Milliseconds. */
const PAUSE_MS = { first: 1_000, longest: 30_000 };
/** After a process has run for this long, the pause before its next restart is `first` again. Milliseconds. */
const STEADY_MS = 60_000;

/** The pause before the restart of a process that has ended this many times in a row. Milliseconds. */
export const pauseAfter = (ends: number): number => Math.min(PAUSE_MS.longest, PAUSE_MS.first * 2 ** (ends - 1));

/** A phrase for some processes, such as `the API` or `2 workers`. */
export function nameProcesses(kind: Kind, count: number): string {
  if (count > 1) return `${count} ${kind}s`;
  return kind === "API" ? "the API" : "one worker";
}

/** The API and worker processes of `npm start`. */
export class ServiceProcesses {
  readonly #startLog: StartLog;
  readonly #onFailure: (sentence: string) => void;
  readonly #running: { kind: Kind; child: ChildProcess }[] = [];
  readonly #openReadable: (() => NodeJS.WritableStream) | null;
  #stopping = false;
  #keepsRunning = false;

  /** @param onFailure called if a process fails before {@link keepRunning} was called. */
  constructor(
    startLog: StartLog,
    openReadable: (() => NodeJS.WritableStream) | null,
    onFailure: (sentence: string) => void,
  ) {
    this.#startLog = startLog;
    this.#openReadable = openReadable;
    this.#onFailure = onFailure;
  }

  /** Starts a process in its own process group. So Ctrl-C signals only `npm start`, which stops all in order. */
  start(kind: Kind, env: NodeJS.ProcessEnv, ends = 0): void {
    const startedAt = performance.now();
    const child = spawn(process.execPath, [fileURLToPath(new URL(SCRIPTS[kind], import.meta.url))], {
      env,
      // If this process is killed, the IPC channel closes, and the child ends.
      stdio: ["ignore", "pipe", "inherit", "ipc"],
      detached: true,
    });
    child.stdout
      ?.setEncoding("utf8")
      .pipe(this.#startLog.open())
      .pipe(this.#openReadable?.() ?? process.stdout, { end: false });
    const own = { kind, child };
    this.#running.push(own);
    child.once("exit", (code, signal) => {
      this.#running.splice(this.#running.indexOf(own), 1);
      if (this.#stopping) return;
      const inRow = performance.now() - startedAt < STEADY_MS ? ends + 1 : 1;
      const how = signal ?? `exit code ${code}`;
      const again = this.#report(own, how, pauseAfter(inRow));
      if (again) setTimeout(() => this.#stopping || this.start(kind, env, inRow), pauseAfter(inRow));
    });
  }

  /** From now on, restarts each process that ends, unless its exit code is 0 and others of its kind run. */
  keepRunning(): void {
    this.#keepsRunning = true;
  }

  /** Returns whether to start the process again. */
  #report({ kind, child }: { kind: Kind; child: ChildProcess }, how: string, pauseMs: number): boolean {
    const left = this.#running.filter((other) => other.kind === kind).length;
    const subject = kind === "worker" ? "A worker" : left === 0 ? "The API" : "An API";
    if (child.exitCode === 0 && left > 0) {
      console.log(`One ${kind} has ended as it was told to; ${left === 1 ? "one is" : `${left} are`} left.`);
      return false;
    }
    if (this.#keepsRunning) console.error(`${subject} ended (${how}). It starts again in ${pauseMs / 1_000} s.`);
    else this.#onFailure(`${subject} ended (${how}), so everything stops.`);
    return this.#keepsRunning;
  }

  /** Ends the processes of a kind, and waits for their end. Kills those that do not end in time. */
  async end(kind: Kind): Promise<void> {
    this.#stopping = true;
    const ending = this.#running.filter((own) => own.kind === kind);
    await Promise.all(ending.map(endProcess));
  }

  /** Waits until an address answers with success, or until {@link end}. @throws Error with the last response. */
  async untilReady(url: string): Promise<void> {
    const giveUpAt = Date.now() + START_MAX_MS;
    for (;;) {
      const signal = AbortSignal.timeout(Math.max(1, giveUpAt - Date.now()));
      const response = await fetch(url, { signal }).catch(() => null);
      if (response?.ok || this.#stopping) return;
      const text = await response?.text().catch(() => undefined);
      if (Date.now() >= giveUpAt) throw new Error(`${url} is not ready: ${text ?? "no answer"}`);
      await sleep(100);
    }
  }
}

function endProcess({ kind, child }: { kind: Kind; child: ChildProcess }): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    const killing = setTimeout(() => {
      console.error(`One ${kind} did not end within ${END_MAX_MS / 1_000} seconds, and was killed.`);
      child.kill("SIGKILL");
    }, END_MAX_MS);
    child.once("exit", () => {
      clearTimeout(killing);
      resolve();
    });
    child.kill("SIGTERM");
  });
}

/** Loads the formatter of log lines for terminals. Null in an install without development dependencies. */
export async function loadReadableLog(): Promise<(() => NodeJS.WritableStream) | null> {
  const pretty = await import("pino-pretty").catch(() => null);
  if (pretty === null) return null;
  const options = {
    translateTime: "SYS:HH:MM:ss",
    ignore: "pid,role",
    messageFormat: "{role}: {msg}",
    singleLine: true,
    sync: true,
  };
  return () => pretty.default(options);
}
