import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { signal } from "./processes.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
/** With the compile cache, a restart takes a third less time. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node");
const LOG_TAIL_LINES = 20;
/** Delay before the restart of a process that exited unexpectedly. Milliseconds. */
const RESTART_AFTER_MS = 500;

interface ServiceProgram {
  name: string;
  /** The folder of the program's release, by default this repository. `script` is relative to it. */
  root?: string | undefined;
  script: string;
  env: Record<string, string>;
  logFile: string;
}

/**
 * An API or worker process that can be started, killed and frozen repeatedly. It restarts after an unexpected exit,
 * like under a supervisor.
 */
export class ServiceProcess {
  readonly name: string;
  readonly #program: ServiceProgram;
  readonly #onAccident: (what: string) => void;
  #child: ChildProcess | null = null;
  #exited: Promise<number | null> = Promise.resolve(null);
  #endExpected = false;
  #restart: NodeJS.Timeout | undefined;
  /** The length of the log file at the last start. */
  #logStart = 0;
  /** When the process was frozen. `untilMs` is infinite during a freeze. Milliseconds of the monotonic clock. */
  readonly freezes: { fromMs: number; untilMs: number }[] = [];

  constructor(program: ServiceProgram, onAccident: (what: string) => void) {
    this.name = program.name;
    this.#program = program;
    this.#onAccident = onAccident;
  }

  get isRunning(): boolean {
    return this.#child !== null;
  }

  readLog(): string {
    return readFileSync(this.#program.logFile, "utf8");
  }

  /** Whether the process has logged this message since its last start. */
  hasLogged(message: string): boolean {
    return this.readLog().slice(this.#logStart).includes(`"msg":"${message}"`);
  }

  /** The last warnings and errors that the process has logged, to explain an answer. */
  lastComplaints(): string {
    return this.readLog()
      .split("\n")
      .filter((line) => /"level":"(warn|error|fatal)"/.test(line))
      .slice(-20)
      .join("\n");
  }

  /** Starts the process unless it is running. It has a process group of its own, so that Ctrl-C does not reach it. */
  start(): void {
    if (this.#child !== null) return;
    const { name, root = ROOT, script, env, logFile } = this.#program;
    const log = openSync(logFile, "a");
    this.#logStart = this.readLog().length;
    const child = spawn(process.execPath, [script], {
      cwd: root,
      env: { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      // This channel closes if the test's process is killed, so that the program notices.
      stdio: ["ignore", log, log, "ipc"],
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    this.#endExpected = false;
    this.#exited = new Promise((resolve) => {
      child.once("exit", (exitCode, signalName) => {
        if (this.#child === child) this.#child = null;
        if (!this.#endExpected) {
          const how = signalName ?? `exit code ${exitCode}`;
          // The last lines of the log that are no JSON usually give the reason of the exit.
          const plain = this.readLog()
            .split("\n")
            .filter((line) => line !== "" && !line.startsWith("{"));
          const lastWords = plain.slice(-LOG_TAIL_LINES).join("\n");
          this.#onAccident(`${name} exited unexpectedly (${how}):\n${lastWords}`);
          this.#restart = setTimeout(() => this.start(), RESTART_AFTER_MS);
        }
        resolve(exitCode);
      });
    });
  }

  kill(): Promise<number | null> {
    return this.#end("SIGKILL");
  }

  /** Sends SIGTERM, and resolves with the exit code once the process has drained. */
  terminate(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  freeze(): void {
    this.#signal("SIGSTOP");
    // Recorded after the signal, because the process reads no request that is sent from now on.
    this.freezes.push({ fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY });
  }

  /** Blocks the process's event loop, if the process has loaded `block-event-loop.ts`. */
  block(): void {
    this.#signal("SIGUSR2");
  }

  thaw(): void {
    this.#endFreeze();
    this.#signal("SIGCONT");
  }

  #endFreeze(): void {
    const last = this.freezes.at(-1);
    if (last !== undefined) last.untilMs = Math.min(last.untilMs, performance.now());
  }

  #end(name: "SIGKILL" | "SIGTERM"): Promise<number | null> {
    this.#endExpected = true;
    clearTimeout(this.#restart);
    this.#endFreeze();
    this.#signal(name);
    return this.#exited;
  }

  #signal(name: NodeJS.Signals): void {
    if (this.#child?.pid !== undefined) signal(this.#child.pid, name);
  }
}
