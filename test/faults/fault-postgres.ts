import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type LocalPostgres, postgresUrl, startPostgres } from "../../src/local/postgres.ts";
import { until } from "../support/until.ts";
import { listProcesses, signal } from "./process-list.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Time for Postgres processes to end after SIGKILL: milliseconds, unless the disk is slow. */
const END_MS = 20_000;

/** A Postgres server that can be killed and frozen. It syncs every commit to disk, as in production. */
export class FaultPostgres {
  readonly #server: LocalPostgres;
  #frozen: number[] = [];

  constructor(directory: string, port: number) {
    this.#server = { directory, port, password: "faults", settings: ["max_wal_size=256MB"] };
  }

  get url(): string {
    return this.urlOf("postgres");
  }

  urlOf(database: string): string {
    return postgresUrl(this.#server, database);
  }

  /** Starts the server on its data, recovering from a crash. Does nothing when it runs. */
  async start(): Promise<void> {
    const pid = this.#postmaster();
    if (pid !== null && !isListed(pid)) this.#forgetPostmaster();
    await startPostgres(this.#server);
  }

  /** Kills all processes of the server at once, as when its machine dies, and waits until they have ended. */
  async kill(): Promise<void> {
    const pids = this.#freezeAll();
    this.#frozen = [];
    for (const pid of pids) signal(pid, "SIGKILL");
    // Postgres refuses to start while a process still uses the shared memory.
    await until(() => {
      const running = new Set(listProcesses().map((listed) => listed.pid));
      return pids.every((pid) => !running.has(pid));
    }, END_MS);
    this.#forgetPostmaster();
  }

  /** Kills one process of the server. Postgres then ends all connections and recovers. */
  killOne(random: SeededRandom): void {
    const postmaster = this.#postmaster();
    const children = postmaster === null ? [] : childrenOf(postmaster);
    if (children.length > 0) signal(random.pick(children), "SIGKILL");
  }

  freeze(): void {
    this.#frozen = this.#freezeAll();
  }

  thaw(): void {
    for (const pid of this.#frozen.reverse()) signal(pid, "SIGCONT");
    this.#frozen = [];
  }

  /** Stops the postmaster first, so that it starts no new processes, and then its children. */
  #freezeAll(): number[] {
    const postmaster = this.#postmaster();
    if (postmaster === null || !isListed(postmaster)) return [];
    signal(postmaster, "SIGSTOP");
    const children = childrenOf(postmaster);
    for (const pid of children) signal(pid, "SIGSTOP");
    return [postmaster, ...children];
  }

  #postmaster(): number | null {
    try {
      return Number(readFileSync(this.#pidFile, "utf8").split("\n")[0]);
    } catch {
      return null;
    }
  }

  /** After the end, the pid may belong to another process or a zombie, which pg_ctl would take for the server. */
  #forgetPostmaster(): void {
    rmSync(this.#pidFile, { force: true });
  }

  get #pidFile(): string {
    return join(this.#server.directory, "postmaster.pid");
  }
}

function childrenOf(parent: number): number[] {
  return listProcesses()
    .filter((listed) => listed.parent === parent)
    .map((listed) => listed.pid);
}

function isListed(pid: number): boolean {
  return listProcesses().some((listed) => listed.pid === pid);
}
