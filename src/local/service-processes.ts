import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { START_MAX_MS } from "./redis.ts";
import type { StartLog } from "./start-log.ts";

/** The script of each kind of process. */
const SCRIPTS = { API: "../main.ts", worker: "../../workers/main.ts" };

type Kind = keyof typeof SCRIPTS;

/** Names some processes, such as `the API` or `2 workers`. */
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

  /** @param onFailure called when a process has failed, or when the last process of its kind has ended. */
  constructor(
    startLog: StartLog,
    openReadable: (() => NodeJS.WritableStream) | null,
    onFailure: (sentence: string) => void,
  ) {
    this.#startLog = startLog;
    this.#openReadable = openReadable;
    this.#onFailure = onFailure;
  }

  /**
   * Starts a process in its own process group, so that Ctrl-C reaches only the present process, which stops the others
   * in order.
   */
  start(kind: Kind, env: NodeJS.ProcessEnv): void {
    const child = spawn(process.execPath, [fileURLToPath(new URL(SCRIPTS[kind], import.meta.url))], {
      env,
      // The IPC channel tells the child when the present process was killed.
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
      if (!this.#stopping) this.#report(own, signal ?? `exit code ${code}`);
    });
  }

  #report({ kind, child }: { kind: Kind; child: ChildProcess }, how: string): void {
    const left = this.#running.filter((other) => other.kind === kind).length;
    if (child.exitCode === 0 && left > 0) {
      console.log(`One ${kind} has ended as it was told to; ${left === 1 ? "one is" : `${left} are`} left.`);
    } else {
      const subject = kind === "worker" ? "A worker" : left === 0 ? "The API" : "An API";
      this.#onFailure(`${subject} ended (${how}), so everything stops.`);
    }
  }

  /** Ends the processes of a kind, and waits for their end. */
  async end(kind: Kind): Promise<void> {
    this.#stopping = true;
    const ending = this.#running.filter((own) => own.kind === kind);
    await Promise.all(ending.map(({ child }) => endChild(child)));
  }

  /**
   * Waits until an address answers with success, or the processes are being stopped.
   * @throws Error with the last response.
   */
  async untilReady(url: string): Promise<void> {
    const giveUpAt = Date.now() + START_MAX_MS;
    for (;;) {
      const response = await fetch(url).catch(() => null);
      if (response?.ok || this.#stopping) return;
      if (Date.now() > giveUpAt) {
        throw new Error(`${url} is not ready: ${(await response?.text()) ?? "no answer"}`);
      }
      await sleep(100);
    }
  }
}

function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill("SIGTERM");
  });
}

/** Loads the printer of readable log lines for a terminal. Null in an install without development dependencies. */
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
