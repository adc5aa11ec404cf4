import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { pino } from "pino";
import { formatSecretKey, makeSigner, type SignerKey } from "#tlog/note.ts";
import { serveWitness, WitnessServer } from "#tlog/witness-server.ts";
import { DatabaseFence } from "../../src/platform/db/database-fence.ts";
import { openPool } from "../../src/platform/db/pool.ts";
import { initTlog } from "../../src/transparency/init-log.ts";
import { readTlogSettings } from "../../src/transparency/log-settings.ts";
import { Sequencer } from "../../src/transparency/run-log.ts";
import { leafOfEvent } from "./leaf-of-event.ts";
import { naiveRoot } from "./naive-merkle.ts";
import { bypassTriggers } from "./outside-transaction.ts";
import type { TestServers } from "./servers.ts";
import { issueVouchers, provisioning, type TestPartner } from "./supply.ts";

export const ORIGIN = "vouchers.test/log";
/** The key of a log, and the key of the log that follows its retirement. */
const LOG_SEED = Buffer.alloc(32, 1);
export const tlogKey = await makeSigner("log", ORIGIN, LOG_SEED);
const LOG_SECRET = await formatSecretKey("log", ORIGIN, LOG_SEED);
export const NEXT_ORIGIN = "vouchers.test/log2";
const NEXT_SEED = Buffer.alloc(32, 9);
const nextTlogKey = await makeSigner("log", NEXT_ORIGIN, NEXT_SEED);
const NEXT_SECRET = await formatSecretKey("log", NEXT_ORIGIN, NEXT_SEED);
export const witnessKeys = await Promise.all(
  [2, 3, 4].map((byte) => makeSigner("witness", `w${byte}.test`, Buffer.alloc(32, byte))),
);

/** A log's files in their own directory, and the log's variables. */
export interface TlogFiles {
  directory: string;
  anchor: string;
  /** The variables of a process that runs the sequencer. */
  env: { LOG_KEY_FILE: string; LOG_ANCHOR: string; LOG_POLICY?: string };
  /** Sets the witnesses. The quorum is `threshold` of them, or all. */
  setWitnesses(urls: readonly string[], threshold?: number): void;
  remove(): void;
}

/** Creates a key and a file name for an anchor. */
export function makeTlogFiles(): TlogFiles {
  return makeFiles(tlogKey, LOG_SECRET);
}

/** Like `makeTlogFiles`, for the log that follows the retirement of the first. */
export function makeNextTlogFiles(): TlogFiles {
  return makeFiles(nextTlogKey, NEXT_SECRET);
}

function makeFiles({ text }: SignerKey, secret: string): TlogFiles {
  const directory = mkdtempSync(join(tmpdir(), "voucher-log-"));
  const key = join(directory, "key");
  writeFileSync(key, `${secret}\n`);
  chmodSync(key, 0o600);
  const anchor = join(directory, "anchor");
  const files: TlogFiles = {
    directory,
    anchor,
    env: { LOG_KEY_FILE: key, LOG_ANCHOR: `file:${anchor}` },
    setWitnesses(urls, threshold = urls.length) {
      files.env.LOG_POLICY = join(directory, "policy");
      const lines = urls.map((url, index) => `witness w${index} ${witnessKeys[index]?.text} ${url}\n`);
      const members = urls.map((_, index) => `w${index}`).join(" ");
      writeFileSync(
        files.env.LOG_POLICY,
        `log ${text}\n${lines.join("")}group all ${threshold} ${members}\nquorum all\n`,
      );
    },
    remove: () => rmSync(directory, { recursive: true }),
  };
  return files;
}

/** Runs statements in one transaction without triggers, as the database's owner can. */
export async function tamper(db: pg.Pool, ...statements: string[]): Promise<void> {
  await bypassTriggers(db, statements.join(";"));
}

/** Copies vouchers, events and the log. Returns the function that restores them. */
export async function backUp(db: pg.Pool): Promise<() => Promise<void>> {
  const tables = [
    "voucher_events",
    "vouchers",
    "log_batches",
    "log_bundles",
    "log_tiles",
    "log_tree",
    "log_published",
    "log_retirements",
  ];
  await tamper(db, ...tables.map((table) => `CREATE TABLE backup_${table} AS SELECT * FROM ${table}`));
  return () =>
    tamper(
      db,
      ...tables.map((table) => `DELETE FROM ${table}`),
      ...tables.map((table) => `INSERT INTO ${table} SELECT * FROM backup_${table}`),
    );
}

/** Reads the settings in these files, as a process does. */
export function settingsOf(files: TlogFiles, anchors = [files.anchor]) {
  const policyFile = files.env.LOG_POLICY ?? null;
  return readTlogSettings({ keyFile: files.env.LOG_KEY_FILE, origin: null, anchors, policyFile, intervalMs: 1_000 });
}

/** Begins the log of a database. */
export async function beginTlog(db: pg.Pool, files: TlogFiles, acceptAnchor = false) {
  return initTlog(provisioning(db), await settingsOf(files), acceptAnchor);
}

/** Opens a sequencer with its own connections, like a worker process. */
export function openSequencer(servers: TestServers, files: TlogFiles, anchors?: string[]) {
  const log = pino({ level: "silent" });
  const deployment = new DatabaseFence(log);
  const pool = openPool({
    databaseUrl: servers.logUrl,
    max: 2,
    applicationName: "sequencer",
    use: "service",
    deployment,
    log,
  });
  const sequencer = settingsOf(files, anchors).then((tlogSettings) => new Sequencer({ pool, tlogSettings, log }));
  servers.onClose(() => pool.end());
  return {
    pool,
    run: async () => {
      // The first connection also reads the deployment's id, so this opens it before the pass.
      await pool.query("SELECT 1");
      return (await sequencer).run();
    },
  };
}

/** Kills a pool's only connection at a statement. Returns a function that counts the sent statements. */
export async function dieAt(pool: pg.Pool, statement: number): Promise<() => number> {
  await pool.query("SELECT 1");
  let sent = 0;
  // The pool sends its statements through the connections that it lends.
  const killed = await pool.connect();
  const query = killed.query.bind(killed);
  const dying = Object.assign(killed, {
    query: (...args: Parameters<typeof query>) => {
      sent += 1;
      if (sent === statement) killed.connection.stream.destroy();
      return query(...args);
    },
  });
  dying.release();
  return () => sent;
}

/**
 * Begins a log with the events of `kept` vouchers, backs it up, and logs the events of `lost` other vouchers. Returns
 * the function that restores the backup.
 */
export async function beginWithBackup(
  servers: TestServers,
  files: TlogFiles,
  partner: TestPartner,
  { kept, lost }: { kept: number; lost: number },
): Promise<() => Promise<void>> {
  const { run } = openSequencer(servers, files);
  await beginTlog(servers.db, files);
  await issueVouchers(servers.db, partner, kept);
  await run();
  const restore = await backUp(servers.db);
  await issueVouchers(servers.db, partner, lost);
  await run();
  return restore;
}

/** Hooks for each checkpoint that the log asks a witness to cosign. The witness waits for the hooks' results. */
export interface WitnessHooks {
  before?: (note: string) => unknown;
  after?: (note: string) => unknown;
}

/** Starts a witness of the service itself, with its state in the log's directory. */
export async function startWitness(
  servers: Pick<TestServers, "onClose">,
  files: TlogFiles,
  index = 0,
  hooks: WitnessHooks = {},
) {
  const key = witnessKeys[index];
  if (key === undefined) throw new Error(`there is no key for witness ${index}`);
  const state = join(files.directory, `witness-${index}`);
  const witness = await WitnessServer.open(key, [tlogKey, nextTlogKey], state);
  const hooked = {
    async addCheckpoint(body: string, now: number) {
      const note = body.slice(body.indexOf("\n\n") + 2);
      await hooks.before?.(note);
      const response = await witness.addCheckpoint(body, now);
      await hooks.after?.(note);
      return response;
    },
  };
  const served = await serveWitness(hooked, { port: 0, host: "127.0.0.1" });
  const close = async () => {
    await served.close();
    witness.close();
  };
  servers.onClose(close);
  return { url: served.url, close, state: () => JSON.parse(readFileSync(state, "utf8"))[ORIGIN] };
}

/** Reads every leaf of the tree, in order, from the events and their leaf batches instead of the log's bundles. */
export async function readLeaves(db: pg.Pool): Promise<Buffer[]> {
  const { rows } = await db.query<{ place: number; hash: Buffer }>(
    `SELECT ${leafOfEvent("e", "b")}::int AS place, e.record_hash AS hash
       FROM voucher_events AS e JOIN log_batches AS b ON b.id = e.log_slot >> 12
      WHERE b.first_index IS NOT NULL ORDER BY 1`,
  );
  const wrong = rows.findIndex(({ place }, index) => place !== index);
  if (wrong >= 0) throw new Error(`leaf ${wrong} belongs to no event, or to two`);
  return rows.map(({ hash }) => hash);
}

/** Computes the root of the tree by the tests' own implementation. */
export async function naiveTreeRoot(db: pg.Pool): Promise<string> {
  return naiveRoot(await readLeaves(db)).toString("hex");
}
