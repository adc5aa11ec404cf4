import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Logger } from "pino";
import type { DeploymentIdentity } from "../deployment-identity.ts";
import {
  isNewer,
  isOf,
  judgeServer,
  keepAfter,
  type Memory,
  mayUse,
  NOTHING_SHARED,
  type Recollection,
  remember,
  type ServerStart,
  type SharedMemory,
  type SharedText,
} from "../marks.ts";
import { bigint, boolean, orNull, text, timestamptz } from "./columns.ts";
import { DatabaseClock, type ServerTime } from "./database-clock.ts";
import { confirmMark, positionsOf, recallMarks, recollection, refusalFor, waitsFor } from "./marks.ts";
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
    started: text,
    host: text,
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
/** If Redis takes longer than this to answer, it counts as hanging. Milliseconds. */
const PROMPT_MS = 1_000;

/** The server in use. Replaced after a failover or restart. Timelines are hex texts of the same length. */
type Identity = Readonly<Pick<Identified, "deploymentId" | "database" | "timeline" | "started">> & { serverId: string };

function identityOf({ deploymentId, database, timeline, started }: Identified): Identity {
  return { deploymentId, database, timeline, started, serverId: `${deploymentId}/${database}/${timeline}/${started}` };
}

/**
 * Admits only connections to the deployment's primary server. Refuses standbys, copies of the database, and servers
 * without all data that this process has seen committed. README.md of src/platform has the rule.
 */
export class DatabaseFence implements DeploymentIdentity {
  readonly #log: Logger;
  readonly #shared: SharedMemory;
  readonly #ready = Promise.withResolvers<void>();
  #identity: Identity | null = null;
  /** What this process has seen on the server in use, or on the last server while none is in use. */
  #memory: Memory | null = null;
  /** The shared state, and since when it is unchanged for this process, on the monotonic clock. */
  #heard: (SharedText & { deploymentId: string; sinceMs: number }) | null = null;
  /** The reason why the last server was refused, to log it only once. */
  #reported = "";
  /** The server's own message while it accepts no marks because its disk is full or failing. Otherwise null. */
  refusal: UnusableDatabase | null = null;
  /** The open connections, each with the id of its server, which never changes. */
  readonly #connections = new Map<pg.ClientBase, string>();
  readonly clock: DatabaseClock;
  #closed = false;

  constructor(log: Logger, shared: SharedMemory = NOTHING_SHARED, clock = new DatabaseClock()) {
    this.#log = log;
    this.#shared = shared;
    this.clock = clock;
  }

  /** The deployment's id. @throws UnusableDatabase before the first connection. */
  get id(): string {
    return this.#known.deploymentId;
  }

  /**
   * The part of jobs and replies that names their server: the deployment's id, the fingerprint of server and database,
   * the timeline, and the server's start.
   * @throws UnusableDatabase before the first connection.
   */
  get serverId(): string {
    return this.#known.serverId;
  }

  get #known(): Identity {
    if (this.#identity === null) throw new UnusableDatabase("unavailable", "The database has not been reached yet.");
    return this.#identity;
  }

  /** Null before the first connection. */
  get memory(): Memory | null {
    return this.#memory;
  }

  /** Resolves once the database is reachable and has the migrations of this release. */
  ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Tries until the database is ready, and resolves {@link ready}, or until {@link close}. Never rejects. */
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

  /** The id of the server that a connection has reached. */
  serverIdOf(client: pg.ClientBase): string | undefined {
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
   * Confirms at once, and then each second, that a mark (a random id) is committed, and remembers it, until {@link
   * close} is called. While a COMMIT hangs, the process does not remember its mark. Never rejects.
   */
  async watchMarks(pool: pg.Pool): Promise<void> {
    for (; !this.#closed; await sleep(OBSERVE_EVERY_MS, undefined, { ref: false })) {
      const memory = this.#memory;
      const reading = await confirmMark(pool).catch((error) => {
        if (!this.#closed && !isDatabaseUnavailable(error)) this.#log.error({ err: error }, "cannot write a mark");
        this.refusal = refusalOf(error);
        // The server has become read-only. New connections to it are refused, so open ones are closed too.
        if (isReadOnly(error)) this.#closeConnections();
        return null;
      });
      if (reading !== null) this.refusal = null;
      if (reading === null || memory === null || !isOf(memory, reading)) continue;
      const next = remember(memory, reading);
      // Shares the mark before this process uses it, so that a process that starts now knows it too.
      if ((await this.#share(next)) && memory === this.#memory) this.#memory = next;
    }
  }

  /** Reads each second which server the other processes use, until {@link close} is called. Never rejects. */
  async watchShared(): Promise<void> {
    while (!this.#closed) {
      await sleep(OBSERVE_EVERY_MS, undefined, { ref: false });
      const known = this.#identity;
      if (known !== null) await this.#hear(known.deploymentId);
    }
  }

  /**
   * Shares a memory with a new mark, unless another server is in use or a newer mark is shared. Returns whether this
   * process may use that memory. Never rejects.
   */
  async #share(next: Memory): Promise<boolean> {
    const told = await this.#hear(next.deploymentId);
    if (told === null) return true;
    return isOf(told.memory, next) && (!isNewer(next.newest, told.memory?.newest) || this.#write(next, told));
  }

  /** Shares what this process remembers. False if another process has shared something since `told` was read. */
  async #write(memory: Memory, told: SharedText): Promise<boolean> {
    const isWritten = await this.#shared.replace(memory, told);
    const [text, sinceMs] = [JSON.stringify(memory), this.clock.monotonicMs()];
    if (isWritten && this.#heard !== null) this.#heard = { ...this.#heard, text, memory, sinceMs };
    return isWritten;
  }

  /**
   * Reads the shared state. If it names another server, stops using the current one. If Redis has lost the state,
   * restores it. While Redis cannot be reached, returns the last state that was read, or null. Never rejects.
   */
  async #hear(deploymentId: string): Promise<SharedText | null> {
    const askedAtMs = this.clock.monotonicMs();
    const told = await this.#shared.read(deploymentId);
    const before = this.#heard?.deploymentId === deploymentId ? this.#heard : null;
    const sinceMs = this.clock.monotonicMs();
    // While Redis does not answer promptly, the state may change unseen, so the time without a change restarts.
    if (before !== null && (told === null || sinceMs - askedAtMs > PROMPT_MS)) this.#heard = { ...before, sinceMs };
    if (told === null) return before;
    if (told.text === "" && before?.memory) {
      await this.#shared.replace(before.memory, told);
      return before;
    }
    if (before?.text !== told.text) this.#heard = { ...told, deploymentId, sinceMs };
    if (this.#identity !== null && !isOf(told.memory, this.#identity)) {
      this.#refuse(waitsFor(told.memory));
      this.#closeConnections();
    }
    return told;
  }

  /** Ends {@link connect} and the watching functions. */
  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Checks the database of a new connection. @throws UnusableDatabase */
  async admit(client: pg.ClientBase): Promise<void> {
    for (;;) {
      const [memory, known] = [this.#memory, this.#identity];
      const askedAtMs = this.clock.monotonicMs();
      const found = await identifyDatabase(client, positionsOf(memory)).catch(rejectAsOutdated);
      assertOwnPrimary(found, known?.deploymentId);
      const reached = identityOf(found);
      const isInUse =
        known?.serverId === reached.serverId && (this.#heard === null || isOf(this.#heard.memory, reached));
      const next = isInUse ? this.#compare(memory, found) : await this.#takeUp(client, memory, found);
      // Repeats the comparison, because another connection or another process was faster.
      if (next === null || memory !== this.#memory || known !== this.#identity) continue;
      this.#memory = next;
      if (!isInUse) this.#use(reached);
      this.#keep(client, reached.serverId);
      return this.#observe(found, askedAtMs);
    }
  }

  /** Compares a server with this process's memory. Returns the new memory. @throws UnusableDatabase */
  #compare(memory: Memory | null, found: ServerStart & Recollection): Memory {
    const verdict = judgeServer(memory, found);
    const refusal = refusalFor(verdict, memory);
    if (refusal !== null) throw this.#refuse(refusal);
    return keepAfter(verdict, memory, found);
  }

  /**
   * Begins to use a server, in place of any other. Returns the new memory, or null if another process was faster. A
   * process that has never reached Redis relies on its own memory.
   * @throws UnusableDatabase
   */
  async #takeUp(client: pg.ClientBase, memory: Memory | null, found: Identified): Promise<Memory | null> {
    const told = await this.#hear(found.deploymentId);
    if (told === null) return this.#compare(memory, found);
    const recalled = { ...found, ...(await recallMarks(client, positionsOf(told.memory))) };
    const verdict = judgeServer(told.memory, recalled);
    const silentMs = this.clock.monotonicMs() - (this.#heard?.sinceMs ?? 0);
    if (!mayUse(told, verdict, silentMs, found)) throw this.#refuse(waitsFor(told.memory));
    const own = this.#compare(memory, found);
    const next = told.memory === null ? own : this.#compare(told.memory, recalled);
    const isShared = isOf(told.memory, found) && verdict === "known";
    return isShared || (await this.#write(next, told)) ? next : null;
  }

  /** Checks that a new connection with another login has reached the server in use. @throws UnusableDatabase */
  async admitLogin(client: pg.ClientBase): Promise<void> {
    const reached = identityOf(await identifyDatabase(client, positionsOf(null)).catch(rejectAsOutdated));
    if (reached.serverId !== this.#known.serverId) {
      throw new UnusableDatabase("unavailable", "OPS_DATABASE_URL leads to another server than DATABASE_URL.");
    }
    this.#keep(client, reached.serverId);
  }

  #keep(client: pg.ClientBase, serverId: string): void {
    this.#connections.set(client, serverId);
    client.once("end", () => this.#connections.delete(client));
  }

  #use(reached: Identity): void {
    if (this.#reported !== "") this.#log.warn({ server: reached.serverId }, "the database server is admitted");
    this.#reported = "";
    this.#closeConnections();
    this.#identity = reached;
  }

  #refuse(refusal: UnusableDatabase): UnusableDatabase {
    if (refusal.message !== this.#reported) this.#log.error({ err: refusal }, "the database server is refused");
    this.#reported = refusal.message;
    return refusal;
  }

  /** Closes all connections to a server that is not the primary or not in use, because commits there would be lost. */
  #closeConnections(): void {
    for (const client of this.#connections.keys()) (client as pg.Client).connection.stream.destroy();
    this.#connections.clear();
  }
}
