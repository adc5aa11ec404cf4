import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { signal } from "./process-list.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Spares the many restarts of a run a third of their time. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node");
const LOG_TAIL_LINES = 20;
/** How soon a supervisor starts a process again that ended by itself. Milliseconds. */
const REVIVED_AFTER_MS = 500;

/** Which program, with which environment, and where its output goes. */
export interface ServiceProgram {
  name: string;
  script: "src/main.ts" | "workers/main.ts";
  env: Record<string, string>;
  logFile: string;
}

/**
 * An API or worker process that is started, killed, frozen and started again under one name. When it ends by itself it is
 * started again, as by any supervisor.
 */
export class ServiceProcess {
  readonly name: string;
  readonly #program: ServiceProgram;
  readonly #onAccident: (what: string) => void;
  #child: ChildProcess | null = null;
  #exited: Promise<number | null> = Promise.resolve(null);
  #endIsWanted = false;
  #revival: NodeJS.Timeout | undefined;

  /** @param onAccident is told when the process ends although nobody asked it to. */
  constructor(program: ServiceProgram, onAccident: (what: string) => void) {
    this.name = program.name;
    this.#program = program;
    this.#onAccident = onAccident;
  }

  /** Everything that it has written since its first start. */
  readLog(): string {
    return readFileSync(this.#program.logFile, "utf8");
  }

  /** Starts it, or does nothing when it runs. It has a group of its own, so that Ctrl-C reaches it through us. */
  start(): void {
    if (this.#child !== null) return;
    const { name, script, env, logFile } = this.#program;
    const log = openSync(logFile, "a");
    const child = spawn(process.execPath, [script], {
      cwd: ROOT,
      env: { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
      // The channel tells the process when this one was killed.
      stdio: ["ignore", log, log, "ipc"],
      detached: true,
    });
    closeSync(log);
    this.#child = child;
    this.#endIsWanted = false;
    this.#exited = new Promise((resolve) => {
      child.once("exit", (exitCode, signalName) => {
        if (this.#child === child) this.#child = null;
        if (!this.#endIsWanted) {
          const how = signalName ?? `exit code ${exitCode}`;
          this.#onAccident(`${name} ended by itself (${how}):\n${this.#readLastWords()}`);
          this.#revival = setTimeout(() => this.start(), REVIVED_AFTER_MS);
        }
        resolve(exitCode);
      });
    });
  }

  async kill(): Promise<void> {
    this.#signal("SIGKILL");
    await this.#exited;
  }

  /** Asks it to drain; resolves with its exit code once it has ended. */
  async terminate(): Promise<number | null> {
    this.#signal("SIGTERM");
    return this.#exited;
  }

  freeze(): void {
    this.#signal("SIGSTOP");
  }

  thaw(): void {
    this.#signal("SIGCONT");
  }

  /** What it wrote last besides log lines, which are JSON: why it ended. */
  #readLastWords(): string {
    return this.readLog()
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("{"))
      .slice(-LOG_TAIL_LINES)
      .join("\n");
  }

  #signal(name: NodeJS.Signals): void {
    if (name === "SIGKILL" || name === "SIGTERM") {
      this.#endIsWanted = true;
      clearTimeout(this.#revival);
    }
    if (this.#child?.pid !== undefined) signal(this.#child.pid, name);
  }
}
