import { type LocalPostgres, postgresUrl, startPostgres } from "../../src/local/postgres.ts";
import { childrenOf, findPostmaster, forgetPostmaster, freezePostgres, killPostgres } from "./postgres-processes.ts";
import { signal } from "./process-list.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** The Postgres of a campaign. */
export interface FaultyDatabase {
  /** The service's database. */
  readonly url: string;
  urlOf(database: string): string;
  /** Starts what does not run, recovering from a crash. */
  start(): Promise<void>;
  /** Kills all processes of the primary at once, as when its machine dies, and waits until they have ended. */
  kill(): Promise<void>;
  /** Kills one process of the primary. Postgres then ends all connections and recovers. */
  killOne(random: SeededRandom): Promise<void>;
  /** Freezes the primary. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Stops everything for good. */
  close(): Promise<void>;
}

/** A Postgres server that can be killed and frozen. It syncs every commit to disk, as in production. */
export class FaultPostgres implements FaultyDatabase {
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

  async start(): Promise<void> {
    if (findPostmaster(this.#server.directory) === null) forgetPostmaster(this.#server.directory);
    await startPostgres(this.#server);
  }

  async kill(): Promise<void> {
    this.#frozen = [];
    await killPostgres(this.#server.directory);
  }

  async killOne(random: SeededRandom): Promise<void> {
    const postmaster = findPostmaster(this.#server.directory);
    const children = postmaster === null ? [] : childrenOf(postmaster);
    if (children.length > 0) signal(random.pick(children), "SIGKILL");
  }

  async freeze(): Promise<void> {
    this.#frozen = freezePostgres(this.#server.directory);
  }

  thaw(): void {
    for (const pid of this.#frozen.reverse()) signal(pid, "SIGCONT");
    this.#frozen = [];
  }

  close(): Promise<void> {
    return this.kill();
  }
}
