import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { findLogTree } from "../../src/db/log-tree.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { type Started, startNode } from "../support/child-process.ts";
import { assertInvariants } from "../support/invariants.ts";
import { KeptNotes } from "../support/kept-notes.ts";
import {
  beginLog,
  type LogFiles,
  makeLogFiles,
  naiveTreeRoot,
  startWitness,
  type WitnessHooks,
} from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { BASE_URL } from "../support/service.ts";
import { issueVouchers, makePartner, type TestPartner } from "../support/supply.ts";
import { until, untilStarted } from "../support/until.ts";

let servers: TestServers;
let files: LogFiles;
let partner: TestPartner;
const notes = new KeptNotes();
const hooks: WitnessHooks = {};

beforeAll(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  partner = await makePartner(servers.db);
  const { url } = await startWitness(servers, files, 0, {
    before: (note) => {
      notes.keep(note);
      return hooks.before?.(note);
    },
    after: (note) => hooks.after?.(note),
  });
  files.setWitnesses([url]);
  await beginLog(servers.db, files);
});

afterAll(async () => {
  await servers.close();
  files.remove();
});

function startLogWorker(): Started {
  const { logUrl, redisUrl } = servers;
  return startNode(["workers/main.ts"], {
    ...{ DATABASE_URL: logUrl, REDIS_URL: redisUrl, BASE_URL, ...files.env },
    ...{ WORKER_QUEUES: "log", LOG_INTERVAL_MS: "100", LOG_LEVEL: "warn" },
  });
}

async function kill({ child, ended }: Started): Promise<void> {
  child.kill("SIGKILL");
  await ended;
  notes.keepAnchor(files.anchor);
}

const treeSize = async () => (await findLogTree(servers.db))?.size ?? 0;
const anchorSize = () => Number(readFileSync(files.anchor, "utf8").split("\n")[1]);
const publishedSize = async () => (await findPublished(servers.db))?.size ?? 0;

/** Holds a table's lock until released. */
async function lockTable(table: string, mode: "SHARE" | "ACCESS EXCLUSIVE") {
  const tx = await servers.db.connect();
  await tx.query(`BEGIN; LOCK TABLE ${table} IN ${mode} MODE`);
  return async () => {
    await tx.query("ROLLBACK");
    tx.release();
  };
}

/** Waits until the worker waits for a lock on a table. */
const untilBlockedOn = (table: string) =>
  untilStarted(async () => {
    const { rowCount } = await servers.db.query(
      "SELECT 1 FROM pg_locks WHERE relation = $1::regclass AND NOT granted",
      [table],
    );
    return rowCount === 1;
  });

/** Starts a worker, waits until it has come to a point, and kills it there. Gives the size of the tree before. */
async function killAt(reach: (worker: Started, before: number) => Promise<(() => Promise<void>)[]>): Promise<number> {
  const before = await treeSize();
  await issueVouchers(servers.db, partner, 5);
  const worker = startLogWorker();
  try {
    const releases = await reach(worker, before);
    await kill(worker);
    for (const release of releases) await release();
    return before;
  } finally {
    worker.child.kill("SIGKILL");
    Object.assign(hooks, { before: undefined, after: undefined });
  }
}

/** Resolves before or after the witness cosigns a tree of more than `size` leaves. Its answer never comes. */
function holdWitness(when: "before" | "after", size: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  hooks[when] = (note) => {
    if (Number(note.split("\n")[1]) <= size) return undefined;
    resolve();
    return new Promise(() => undefined);
  };
  return promise;
}

describe("a worker of the log that is killed", () => {
  it("before it commits the leaves' places, has changed nothing", async () => {
    const release = await lockTable("log_bundles", "SHARE");
    const before = await killAt(async () => {
      await untilBlockedOn("log_bundles");
      return [release];
    });
    expect(await treeSize()).toBe(before);
  });

  it("after the commit, before it signs, leaves a tree that the next one signs", async () => {
    const releasePlaces = await lockTable("log_bundles", "SHARE");
    const size = await publishedSize();
    const before = await killAt(async (_, smaller) => {
      await untilBlockedOn("log_bundles");
      const release = await lockTable("log_witnesses", "ACCESS EXCLUSIVE");
      await releasePlaces();
      await untilBlockedOn("log_witnesses");
      expect(await treeSize()).toBeGreaterThan(smaller);
      return [release];
    });
    expect([await publishedSize(), notes.largest <= before]).toEqual([size, true]);
  });

  it("after it has signed, before a witness has cosigned, has signed what the next one signs", async () => {
    await killAt(async (_, before) => {
      await holdWitness("before", before);
      return [];
    });
    expect([notes.largest, (await publishedSize()) < notes.largest]).toEqual([await treeSize(), true]);
  });

  it("after a witness has cosigned, before the anchor is written, is continued from the witness", async () => {
    await killAt(async (_, before) => {
      await holdWitness("after", before);
      return [];
    });
    expect(anchorSize()).toBeLessThan(notes.largest);
    expect([notes.largest, (await publishedSize()) < notes.largest]).toEqual([await treeSize(), true]);
  });

  it("after the anchor is written, before the checkpoint is served, is continued from the anchor", async () => {
    const release = await lockTable("log_published", "SHARE");
    await killAt(async () => {
      await untilBlockedOn("log_published");
      return [release];
    });
    expect([(await treeSize()) - 5, await treeSize()]).toContain(notes.largest);
    expect(anchorSize()).toBe(notes.largest);
  });

  it("a worker of the log that is killed at any of these points leaves a log that the next worker continues, also when Redis is emptied meanwhile", async () => {
    const worker = startLogWorker();
    const { rows } = await servers.db.query("SELECT count(*)::int AS events FROM voucher_events");
    const events = rows[0]?.events;
    await untilStarted(async () => (await publishedSize()) === events);
    await servers.redis.flushdb();
    await issueVouchers(servers.db, partner, 5);
    await until(async () => (await publishedSize()) === events + 5);
    await kill(worker);
    expect(notes.count).toBeGreaterThan(4);
    expect(await notes.findProblems(servers.db)).toEqual([]);
    expect(await onSnapshot(servers.db, auditLog)).toMatchObject({ events: events + 5, waiting: 0, problems: [] });
    expect((await findLogTree(servers.db))?.root.toString("hex")).toBe(await naiveTreeRoot(servers.db));
    await assertInvariants(servers.db);
  });
});
