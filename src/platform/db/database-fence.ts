import { setTimeout as sleep } from "node:timers/promises";
import pTimeout from "p-timeout";
import type pg from "pg";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import { judgeServer, keepAfter, type Memory, NOTHING_SHARED, remember, type SharedMemory, share } from "../marks.ts";
import { bigint, boolean, orNull, text, timestamptz } from "./columns.ts";
import { DatabaseClock, type ServerTime } from "./database-clock.ts";
import { confirmMark, judgeShared, lacksMarks, positionsOf, recollection } from "./marks.ts";
import type { Queryable } from "./pool.ts";
import { assertMigrated, assertOwnPrimary, rejectAsOutdated, UnusableDatabase } from "./schema.ts";
import { Statements } from "./statements.ts";
import { isDatabaseUnavailable, isReadOnly, refusalOf } from "./transaction.ts";

export const sql = new Statements(new URL("./database-fence.sql", import.meta.url));

const SERVER_TIME = { trustedAt: orNull(timestamptz), closedUntil: timestamptz, now: timestamptz };

const identifyDatabase = sql.requiredRow(
  "identify_database",
  {
    deploymentId: text,
    readOnly: boolean,
    isCopy: boolean,
    database: text,
    ...recollection,
    ...SERVER_TIME,
  },
  { newestPosition: orNull(bigint), lastingPosition: orNull(bigint) },
);
type Identified = Awaited<ReturnType<typeof identifyDatabase>>;

const observeClock = sql.requiredRow("observe_clock", SERVER_TIME);

/** Pause between attempts to reach the database for the first time. Milliseconds. */
const TRY_AGAIN_MS = 500;
/** Pause between two readings of the server's clock, and between two marks. Milliseconds. */
const OBSERVE_EVERY_MS = 1_000;
/** Maximum number of comparisons in a row, which repeat when another process has shared something meanwhile. */
const SHARE_TRIES = 3;
/** Longest wait of the first connections for the memories of other processes, if Redis hangs. Milliseconds. */
const LEARN_MAX_MS = 5_000;

/** The server in use. Replaced when another server takes over or this one restarts. Timelines are hex of one length. */
type Identity = Readonly<Pick<Identified, "deploymentId" | "database" | "timeline" | "started">> & { origin: string };

function identityOf({ deploymentId, database, timeline, started }: Identified): Identity {
  return { deploymentId, database, timeline, started, origin: `${deploymentId}/${database}/${timeline}/${started}` };
}

/**
 * Admits only connections to the deployment's primary server: no standby, no copy of the database, and no server that
 * lacks what this process has seen committed. docs/design.md ("One deployment, one database") has the rule.
 */
export class DatabaseFence implements DeploymentIdentity {
  readonly #log: Logger;
  readonly #shared: SharedMemory;
  readonly #ready = Promise.withResolvers<void>();
  #identity: Identity | null = null;
  #memory: Memory | null = null;
  /** The start of a server for which the shared memory was read, and the promise of that read. */
  #learned: { server: string; done: Promise<void> } | null = null;
  /** Whether the last server was refused because it lacks a mark. */
  #isRefusing = false;
  /** The server's own message if it takes no marks because its disk is full or fails; null otherwise. */
  refusal: UnusableDatabase | null = null;
  /** The open connections, with the origin of each. A connection stays with its server. */
  readonly #connections = new Map<pg.ClientBase, string>();
  readonly clock = new DatabaseClock();
  #closed = false;

  constructor(log: Logger, shared: SharedMemory = NOTHING_SHARED) {
    this.#log = log;
    this.#shared = shared;
  }

  /** The deployment's id. @throws UnusableDatabase before the first connection. */
  get id(): string {
    return this.#known.deploymentId;
  }

  /**
   * The part of jobs and replies that shows the server that they belong to: the deployment's id, the fingerprint of
   * server and database, the timeline, and the server's start.
   * @throws UnusableDatabase before the first connection.
   */
  get origin(): string {
    return this.#known.origin;
  }

  get #known(): Identity {
    if (this.#identity === null) throw new UnusableDatabase("unavailable", "The database has not been reached yet.");
    return this.#identity;
  }

  /** What this process has seen of the database. Null before its first mark. */
  get memory(): Memory | null {
    return this.#memory;
  }

  /** Resolves once the database is reachable and has the migrations of this release. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Tries until the database is ready, which resolves {@link ready}, or until {@link close}. Never rejects. */
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

  /** Reads the server's clock each second, until {@link close} is called. Never rejects. */
  async watchClock(db: Queryable): Promise<void> {
    while (!this.#closed) {
      await sleep(OBSERVE_EVERY_MS, undefined, { ref: false });
      const known = this.#identity;
      const askedAtMs = this.clock.monotonicMs();
      const seen = await observeClock(db).catch(() => null);
      if (seen === null || known === null || known !== this.#identity) continue;
      this.#observe(seen, askedAtMs);
    }
  }

  #observe(seen: ServerTime, askedAtMs: number): void {
    const { aheadMs } = this.clock;
    this.clock.observe(seen, askedAtMs);
    if (aheadMs === 0 && this.clock.aheadMs > 0)
      this.#log.error({ aheadMs: this.clock.aheadMs }, "the database's clock has jumped ahead");
  }

  /**
   * Confirms a mark at once and then each second, and remembers it, until {@link close} is called. A mark whose COMMIT
   * hangs is not remembered. Never rejects.
   */
  async watchMarks(pool: pg.Pool): Promise<void> {
    for (; !this.#closed; await sleep(OBSERVE_EVERY_MS, undefined, { ref: false })) {
      const [known, memory] = [this.#identity, this.#memory];
      const reading = await confirmMark(pool).catch((error) => {
        if (!this.#closed && !isDatabaseUnavailable(error)) this.#log.error({ err: error }, "cannot write a mark");
        this.refusal = refusalOf(error);
        // The server has become read-only: new connections are refused, and open ones must not be used either.
        if (isReadOnly(error)) this.#closeConnections();
        return null;
      });
      if (reading !== null) this.refusal = null;
      if (reading === null || known === null || known !== this.#identity || memory !== this.#memory) continue;
      const next = remember(memory, { deploymentId: known.deploymentId, ...reading });
      // Shared before this process uses it, so that a process that starts now knows as much as this one.
      await this.#share(pool, known.deploymentId, next);
      if (known === this.#identity && memory === this.#memory) this.#memory = next;
    }
  }

  /**
   * Compares the server each second with what other processes remember, and shares this memory, until {@link close} is
   * called. Never rejects.
   */
  async watchShared(db: Queryable): Promise<void> {
    while (!this.#closed) {
      await sleep(OBSERVE_EVERY_MS, undefined, { ref: false });
      const id = this.#identity?.deploymentId ?? this.#memory?.deploymentId;
      if (id === undefined) continue;
      await this.#share(db, id, this.#memory);
      // Other processes must learn what this server lacks, even after Redis was emptied.
      if (this.#isRefusing && this.#memory !== null) await this.#shared.keepLacked(this.#memory);
    }
  }

  /** Compares the server with what other processes remember, and shares a memory that is newer. Never rejects. */
  async #share(db: Queryable, id: string, memory: Memory | null): Promise<void> {
    const known = this.#identity;
    try {
      for (let tries = 0; tries < SHARE_TRIES; tries++) {
        const told = await this.#shared.read(id);
        if (told === null || known === null || known !== this.#identity) return;
        // May open a connection, by which a process that refuses its server notices that the server is usable again.
        const { lacked, verdict } = await judgeShared(told, db);
        if (known !== this.#identity) return;
        if (lacked !== null) {
          this.#refuse(lacked);
          return this.#closeConnections();
        }
        // Shares only a memory of the server start in use, because a shared mark removes the memories of later starts.
        if (memory?.started !== known.started || this.#isRefusing) return;
        const next = share(told.starts, memory, verdict);
        if (next === null || (await this.#shared.replace(next, told))) return;
      }
    } catch (error) {
      if (!this.#closed && !isDatabaseUnavailable(error))
        this.#log.error({ err: error }, "cannot compare the marks of other processes");
    }
  }

  /** Ends {@link connect} and the watches. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Checks the database of a new connection. @throws UnusableDatabase */
  async admit(client: pg.ClientBase): Promise<void> {
    const { memory, found, askedAtMs } = await this.#identify(client);
    const [known, reached] = [this.#identity, identityOf(found)];
    if (known !== null && known.database === reached.database && reached.timeline < known.timeline) {
      throw new UnusableDatabase("unavailable", "This database server was the primary before a standby was promoted.");
    }
    const verdict = memory === null ? "known" : judgeServer(memory, found);
    if (memory !== null && verdict === "setBack") throw this.#refuse(memory);
    if (verdict !== "known" || this.#isRefusing) this.#log.warn({ verdict }, "the database server is admitted again");
    this.#isRefusing = false;
    this.#memory = keepAfter(verdict, memory, found);
    if (known?.origin !== reached.origin) {
      if (known !== null) this.#closeConnections();
      this.#identity = reached;
    }
    this.#keep(client, reached.origin);
    this.#observe(found, askedAtMs);
  }

  /** Checks a new connection of another login: it must have reached the server in use. @throws UnusableDatabase */
  async admitLogin(client: pg.ClientBase): Promise<void> {
    const reached = identityOf(await identifyDatabase(client, positionsOf(null)).catch(rejectAsOutdated));
    if (reached.origin !== this.#known.origin) {
      throw new UnusableDatabase("unavailable", "OPS_DATABASE_URL leads to another server than DATABASE_URL.");
    }
    this.#keep(client, reached.origin);
  }

  #keep(client: pg.ClientBase, origin: string): void {
    this.#connections.set(client, origin);
    client.once("end", () => this.#connections.delete(client));
  }

  /** Identifies the server that a new connection has reached, and compares it with the present memory. */
  async #identify(client: pg.ClientBase) {
    for (;;) {
      const memory = this.#memory;
      const askedAtMs = this.clock.monotonicMs();
      const found = await identifyDatabase(client, positionsOf(memory)).catch(rejectAsOutdated);
      assertOwnPrimary(found, this.#identity?.deploymentId);
      await this.#learn(client, found);
      if (memory === this.#memory) return { memory, found, askedAtMs };
    }
  }

  /**
   * Reads the memories of other processes once for each start of a server. Adopts one if this process has no memory or
   * the server lacks a mark of it. If reading takes too long, adopts none; {@link watchShared} reads it again.
   */
  async #learn(
    client: pg.ClientBase,
    reached: Pick<Identified, "deploymentId" | "database" | "started">,
  ): Promise<void> {
    const server = `${reached.deploymentId}/${reached.database}/${reached.started}`;
    if (this.#learned?.server !== server) {
      const read = this.#shared.read(reached.deploymentId);
      const told = pTimeout(read, { milliseconds: LEARN_MAX_MS, fallback: () => null });
      if (this.#memory?.deploymentId !== reached.deploymentId) this.#memory = null;
      const done = told.then(async (shared) => {
        const judged = shared && (await judgeShared(shared, client));
        if (judged?.lacked) this.#refuse(judged.lacked);
        this.#memory ??= judged?.newest ?? null;
      });
      this.#learned = { server, done };
    }
    const { done } = this.#learned;
    await done.catch((error) => {
      if (this.#learned?.done === done) this.#learned = null;
      throw error;
    });
  }

  /** Records that the present server lacks the newest mark of a memory. */
  #refuse(memory: Memory): UnusableDatabase {
    this.#memory = memory;
    const refusal = lacksMarks();
    if (!this.#isRefusing) {
      this.#log.error({ err: refusal, mark: memory.newest }, "the database server is refused");
      // Not delayed, so that a process that starts now learns of it.
      void this.#shared.keepLacked(memory);
    }
    this.#isRefusing = true;
    return refusal;
  }

  /** Closes all connections to a server that is not the primary, or lacks a mark: its commits are lost. */
  #closeConnections(): void {
    for (const client of this.#connections.keys()) (client as pg.Client).connection.stream.destroy();
    this.#connections.clear();
  }
}
