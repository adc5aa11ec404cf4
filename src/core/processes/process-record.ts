import { hostname } from "node:os";
import { performance } from "node:perf_hooks";
import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import packageJson from "../../../package.json" with { type: "json" };
import type { Closable } from "../../platform/lifetime.ts";
import { endProcess, recordProcess } from "./db/processes.ts";

/** Interval between two records of a process. Milliseconds. */
const RECORD_EVERY_MS = 10_000;
/** Maximum time that an ending process waits for the record of its end. Milliseconds. */
const END_MAX_MS = 500;

interface Deps {
  pool: pg.Pool;
  deployment: { ready(): Promise<void> };
  log: Logger;
}

/** Records every ten seconds in Postgres, if it is available, that this process runs. */
export class ProcessRecord implements Closable {
  readonly id = crypto.randomUUID();
  readonly host = hostname();
  readonly #ctx: Deps;
  readonly #role: string;
  readonly #queues: string[] = [];
  readonly #timer: NodeJS.Timeout;
  #loop = performance.eventLoopUtilization();
  #problem: string | null = null;
  #recording: Promise<void> | null = null;
  #hasEnded = false;

  constructor(ctx: Deps, role: string) {
    this.#ctx = ctx;
    this.#role = role;
    this.#timer = setInterval(() => void this.record(), RECORD_EVERY_MS).unref();
    ctx.deployment.ready().then(
      () => this.record(),
      () => undefined,
    );
  }

  /** The process's name in sentences for operators. */
  get name(): string {
    return nameProcess({ role: this.#role, host: this.host, pid: process.pid });
  }

  /** Adds a queue whose jobs the process takes. */
  serve(queue: string): void {
    if (this.#queues.includes(queue)) return;
    // Records the process in the next turn of the event loop, because all its workers start in the present turn.
    if (this.#queues.length === 0) setImmediate(() => void this.record());
    this.#queues.push(queue);
  }

  /** Sets the reason why this process cannot serve requests, or null. A new reason is recorded at once. */
  tell(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    void this.record();
  }

  /** Records the process. If the record is being written, waits for the end of that write first. Never rejects. */
  async record(): Promise<void> {
    await this.#recording;
    if (this.#hasEnded) return;
    this.#recording ??= this.#record().finally(() => {
      this.#recording = null;
    });
    await this.#recording;
  }

  /** Records the end of the process. Gives up after a short wait for Postgres. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#hasEnded = true;
    const recordEnd = async () => {
      await this.#recording;
      await endProcess(this.#ctx.pool, this.id);
    };
    await pTimeout(recordEnd(), { milliseconds: END_MAX_MS }).catch((error) =>
      this.#ctx.log.debug({ err: error }, "cannot record the end of this process"),
    );
  }

  async #record(): Promise<void> {
    const { pool, log } = this.#ctx;
    const loop = performance.eventLoopUtilization();
    const busy = performance.eventLoopUtilization(loop, this.#loop).utilization;
    this.#loop = loop;
    try {
      await recordProcess(pool, {
        id: this.id,
        role: this.#role,
        host: this.host,
        pid: process.pid,
        version: packageJson.version,
        queues: this.#queues,
        busy,
        problem: this.#problem,
      });
    } catch (error) {
      log.debug({ err: error }, "cannot record this process");
    }
  }
}

export const nameProcess = ({ role, host, pid }: { role: string; host: string; pid: number }) =>
  `${role} ${pid} on ${host}`;
