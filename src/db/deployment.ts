import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../domain/deployment.ts";
import { bigint, boolean, orNull, text, timestamptz } from "./columns.ts";
import { DatabaseClock } from "./database-clock.ts";
import type { Queryable } from "./pool.ts";
import { assertMigrated, rejectAsOutdated, UnusableDatabase } from "./schema.ts";
import { Statements } from "./statements.ts";

export const sql = new Statements(new URL("./deployment.sql", import.meta.url));

/** The id of the deployment that this database belongs to. */
export const readDeploymentId = sql.requiredValue("read_deployment_id", { id: text })<[]>;
/** Makes the connected database a deployment of its own and returns the new id. Every process that uses it must be restarted. */
export const adoptDatabase = sql.requiredValue("adopt_database", { id: text })<[]>;
const identifyDatabase = sql.requiredRow("identify_database", {
  deploymentId: text,
  readOnly: boolean,
  isCopy: boolean,
  database: text,
  timeline: text,
  started: text,
  walEnd: bigint,
  trustedAt: orNull(timestamptz),
  now: timestamptz,
});
const observeServer = sql.requiredRow("observe_server", {
  walEnd: bigint,
  trustedAt: orNull(timestamptz),
  now: timestamptz,
});

/** Pause between attempts to reach the database for the first time. Milliseconds. */
const TRY_AGAIN_MS = 500;
/** Pause between two looks at the server's clock and write-ahead log. Milliseconds. */
const OBSERVE_EVERY_MS = 1_000;

/** Never changed, only replaced: a connection's answer is compared with what was known when it was asked. */
interface Identity {
  readonly id: string;
  /** Fingerprint of server and database. */
  readonly database: string;
  /** In hex with a fixed length, so that timelines can be compared as text. */
  readonly timeline: string;
  readonly origin: string;
  /** The highest known end of the server's write-ahead log on disk, in bytes. */
  readonly walEnd: number;
}

/** The deployment of a process. Each new connection must reach the deployment's primary server, not a standby or a copy of the database. */
export class Deployment implements DeploymentIdentity {
  readonly #log: Logger;
  readonly #ready = Promise.withResolvers<void>();
  #identity: Identity | null = null;
  /** The open connections, with the origin of each. A connection stays with its server. */
  readonly #connections = new Map<pg.ClientBase, string>();
  readonly clock = new DatabaseClock();
  #closed = false;

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The deployment's id. @throws UnusableDatabase before the first connection. */
  get id(): string {
    return this.#known.id;
  }

  /**
   * The mark of jobs and replies: the deployment's id, the fingerprint of server and database, the timeline, and the server's start.
   * @throws UnusableDatabase before the first connection.
   */
  get origin(): string {
    return this.#known.origin;
  }

  get #known(): Identity {
    if (this.#identity === null) throw new UnusableDatabase("unavailable", "The database has not been reached yet.");
    return this.#identity;
  }

  /** The highest known end of the server's write-ahead log on disk, in bytes. */
  get walEnd(): number {
    return this.#known.walEnd;
  }

  /** Resolves once the database is reachable and has the migrations of this release. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Tries until the database is ready, which resolves {@link ready}, or until {@link close} is called. Never rejects. */
  async connect(db: Queryable): Promise<void> {
    let reported = "";
    while (!this.#closed) {
      try {
        await assertMigrated(db);
        return this.#ready.resolve();
      } catch (error) {
        const { message } = error as Error;
        if (message !== reported) this.#log.error({ err: error }, "the database of DATABASE_URL cannot be used yet");
        reported = message;
        await sleep(TRY_AGAIN_MS);
      }
    }
  }

  /** The origin that a connection has reached. */
  originOf(client: pg.ClientBase): string | undefined {
    return this.#connections.get(client);
  }

  /** Looks at the server's clock and write-ahead log each second, until {@link close} is called. Never rejects. */
  async watch(db: Queryable): Promise<void> {
    while (!this.#closed) {
      await sleep(OBSERVE_EVERY_MS, undefined, { ref: false });
      const known = this.#identity;
      const askedAtMs = this.clock.monotonicMs();
      const seen = await observeServer(db).catch(() => null);
      if (seen === null || known === null || known.origin !== this.#identity?.origin) continue;
      this.#identity = { ...this.#identity, walEnd: Math.max(this.#identity.walEnd, seen.walEnd) };
      const { aheadMs } = this.clock;
      this.clock.observe(seen.now, seen.trustedAt, askedAtMs);
      if (aheadMs === 0 && this.clock.aheadMs > 0)
        this.#log.error({ aheadMs: this.clock.aheadMs }, "the database's clock has jumped ahead");
    }
  }

  /** Ends the attempts of {@link connect} and {@link watch}. */
  close(): void {
    this.#closed = true;
  }

  /** Checks the database of a new connection. @throws UnusableDatabase */
  async admit(client: pg.ClientBase): Promise<void> {
    // Connections are admitted at once, and their answers overtake each other: `walEnd` is compared with what was known before the question.
    const before = this.#identity;
    const askedAtMs = this.clock.monotonicMs();
    const found = await identifyDatabase(client).catch(rejectAsOutdated);
    if (found.readOnly) {
      throw new UnusableDatabase(
        "unavailable",
        "DATABASE_URL leads to a standby or another read-only server. It must always lead to the primary.",
      );
    }
    if (found.isCopy) {
      throw new UnusableDatabase(
        "copied",
        "This database is a copy. To let it take over, stop every process that uses the original and run: voucherctl db adopt",
      );
    }
    const { deploymentId: id, database, timeline, started, walEnd } = found;
    const known = this.#identity;
    if (known !== null && known.id !== id) {
      throw new UnusableDatabase(
        "copied",
        "This database was adopted after this process started. Restart the process.",
      );
    }
    if (known !== null && known.database === database && timeline < known.timeline) {
      throw new UnusableDatabase("unavailable", "This database server was the primary before a standby was promoted.");
    }
    const walEndIn = (of: Identity | null) => (of?.database === database && of.timeline === timeline ? of.walEnd : 0);
    if (walEnd < walEndIn(before)) {
      throw new UnusableDatabase(
        "copied",
        "The files of this database server were set back: its write-ahead log ends before a position that it had reached.",
      );
    }
    const origin = `${id}/${database}/${timeline}/${started}`;
    if (known !== null && known.origin !== origin) this.#closeConnections();
    this.#identity = { id, database, timeline, origin, walEnd: Math.max(walEnd, walEndIn(known)) };
    this.#connections.set(client, origin);
    this.clock.observe(found.now, found.trustedAt, askedAtMs);
    client.once("end", () => this.#connections.delete(client));
  }

  /** Closes all connections when the primary has changed. The old server's responses are outdated, and its commits are lost. */
  #closeConnections(): void {
    for (const client of this.#connections.keys()) (client as pg.Client).connection.stream.destroy();
    this.#connections.clear();
  }
}
