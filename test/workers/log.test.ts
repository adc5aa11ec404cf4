import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { encodeHex } from "../../packages/tlog/src/bytes.ts";
import { parseCheckpoint } from "../../packages/tlog/src/checkpoint.ts";
import { cosignNote, makeSigner } from "../../packages/tlog/src/note.ts";
import { parsePolicy, verifyCheckpoint } from "../../packages/tlog/src/policy.ts";
import { findPublished } from "../../src/db/log-checkpoints.ts";
import { findLogTree, type LogTree } from "../../src/db/log-tree.ts";
import { onSnapshot } from "../../src/db/transaction.ts";
import { recordExpiries } from "../../src/services/chain/record-expiries.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { integrateBatches } from "../../src/services/log/integrate-batches.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  backUp,
  beginLog,
  type LogFiles,
  logKey,
  makeLogFiles,
  naiveTreeRoot,
  openSequencer,
  readLeaves,
  settingsOf,
  startWitness,
  tamper,
  witnessKeys,
} from "../support/log-setup.ts";
import { naiveRoot } from "../support/naive-merkle.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
let files: LogFiles;
let partner: TestPartner;

beforeEach(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  partner = await makePartner(servers.db);
});

afterEach(async () => {
  await servers.closeOpened();
  await assertInvariants(servers.db).finally(() => servers.close());
  files.remove();
});

const published = () => findPublished(servers.db);
const tree = () => findLogTree(servers.db);

/** The served checkpoint, verified against the policy that is served with it. */
async function verifyPublished() {
  const served = await published();
  const checkpoint = served && parseCheckpoint(served.note);
  if (!served || !checkpoint) throw new Error("no checkpoint is served");
  const cosignatures = await verifyCheckpoint(await parsePolicy(served.policy), checkpoint);
  return { size: checkpoint.size, root: encodeHex(checkpoint.root), cosignatures: cosignatures.length };
}

it("the sequencer puts every sealed event into the tree in the order of its chain, and serves the signed root", async () => {
  const issued = await issueVouchers(servers.db, partner, 1_100, { validUntil: new Date(Date.now() - 1_000) });
  await beginLog(servers.db, files);
  const { run } = openSequencer(servers, files);
  expect(await run()).toMatchObject({ placed: 1_100, size: 1_100, published: 1_100, refused: null });
  const expired = await recordExpiries(provisioning(servers.db), performance.now() + 60_000);
  expect(expired).toBe(issued.length);
  expect(await run()).toMatchObject({ placed: 1_100, size: 2_200, published: 2_200 });
  expect(await run()).toMatchObject({ placed: 0, size: 2_200, published: 2_200 });
  expect(await verifyPublished()).toEqual({ size: 2_200, root: await naiveTreeRoot(servers.db), cosignatures: 0 });
  expect(parseCheckpoint(readFileSync(files.anchor, "utf8"))?.size).toBe(2_200);
});

it("the sequencer does nothing before the log has begun, and then places the events that waited", async () => {
  await issueVouchers(servers.db, partner, 3);
  const { run } = openSequencer(servers, files);
  expect(await run()).toMatchObject({ placed: 0, size: 0, refused: null });
  expect([await tree(), await published(), existsSync(files.anchor)]).toEqual([null, null, false]);
  await beginLog(servers.db, files);
  expect(await run()).toMatchObject({ placed: 3, published: 3 });
});

it("the sequencer does not change the tree while another process has locked it", async () => {
  await beginLog(servers.db, files);
  await issueVouchers(servers.db, partner, 3);
  const other = await servers.db.connect();
  await other.query("BEGIN");
  await other.query("SELECT 1 FROM log_tree FOR NO KEY UPDATE");
  const { run } = openSequencer(servers, files);
  expect(await run()).toMatchObject({ placed: 0, size: 0 });
  await other.query("ROLLBACK");
  other.release();
  expect(await run()).toMatchObject({ placed: 3 });
});

it("the sequencer may die at any statement: no leaf is lost, doubled or out of order, and no two notes contradict each other", async () => {
  await beginLog(servers.db, files);
  await issueVouchers(servers.db, partner, 300);
  const notes = new Map<number, string>();
  let survived = 0;
  for (let statement = 1; survived < 2; statement++) {
    await issueVouchers(servers.db, partner, 7);
    const sequencer = openSequencer(servers, files);
    await sequencer.pool.query("SELECT 1");
    let sent = 0;
    // The pool sends its statements through the connections that it hands out.
    const killed = await sequencer.pool.connect();
    const query = killed.query.bind(killed);
    const dying = Object.assign(killed, {
      query: (...args: Parameters<typeof query>) => {
        sent += 1;
        // Ends the connection without a message, like a process that is killed.
        if (sent === statement) killed.connection.stream.destroy();
        return query(...args);
      },
    });
    dying.release();
    const report = await sequencer.run().catch(() => null);
    if (report !== null && sent < statement) survived += 1;
    await openSequencer(servers, files).run();
    const { size, root } = await verifyPublished();
    expect(notes.get(size) ?? root).toBe(root);
    notes.set(size, root);
    expect(root).toBe(await naiveTreeRoot(servers.db));
    await servers.closeOpened();
  }
  expect(notes.size).toBeGreaterThan(10);
});

it("the sequencer signs what was committed before a crash, with the same bytes each time", async () => {
  await beginLog(servers.db, files);
  await issueVouchers(servers.db, partner, 5);
  const begun = (await tree()) as LogTree;
  expect(await integrateBatches(servers.db, await settingsOf(files), [begun], begun.server)).toMatchObject({
    placed: 5,
  });
  expect([(await tree())?.size, await published()]).toEqual([5, null]);
  await openSequencer(servers, files).run();
  const anchor = readFileSync(files.anchor, "utf8");
  expect((await published())?.note).toBe(anchor);
  expect(anchor).toBe(await signCheckpoint(logKey, { size: 5, root: (await tree())?.root as Buffer }));
});

describe("a tree that was changed in the database", () => {
  const forged = Buffer.alloc(32, 7);
  /** Replaces all leaves. */
  const forge = (size: number) => `
    DELETE FROM log_bundles;
    INSERT INTO log_bundles (index, entries) SELECT 0, decode(repeat('${forged.toString("hex")}', ${size}), 'hex');
    UPDATE log_tree SET size = ${size}, root = '\\x${naiveRoot(Array(size).fill(forged)).toString("hex")}'`;
  let roots: string[];
  let state: () => { size: number };

  beforeEach(async () => {
    roots = [];
    const witness = await startWitness(servers, files, 0, {
      before: (note) => roots.push(encodeHex(parseCheckpoint(note)?.root ?? new Uint8Array())),
    });
    state = witness.state;
    files.setWitnesses([witness.url]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 5);
  });

  /** What the log has signed and serves. */
  const signed = async () => [readFileSync(files.anchor, "utf8"), (await published())?.note, state(), roots.length];

  it.each([
    "owner",
    "pva_admin",
  ])("a tree that was changed in the database by a size and a root of the %s is refused, until the row is repaired", async (role) => {
    const running = openSequencer(servers, files);
    await running.run();
    const before = await signed();
    const pool = new pg.Pool({ connectionString: role === "owner" ? servers.ownerUrl : servers.adminUrl, max: 1 });
    servers.onClose(() => pool.end());
    const { root } = (await tree()) as LogTree;
    await pool.query("UPDATE log_tree SET size = size + 1, root = $1", [forged]);
    for (const { run } of [running, openSequencer(servers, files)])
      expect(await run()).toMatchObject({
        published: 0,
        obstacle: "contradiction",
        refused: expect.stringMatching(/^The database states 6 leaves or more, but lacks one/),
      });
    expect(await signed()).toEqual(before);
    await tamper(servers.db, `UPDATE log_tree SET size = 5, root = '\\x${root.toString("hex")}'`);
    await issueVouchers(servers.db, partner, 1);
    expect(await running.run()).toMatchObject({ published: 6, cosigned: 1, refused: null });
  });

  it("a tree that was changed in the database by a root alone, or by other leaves, is refused before any of it is signed", async () => {
    const running = openSequencer(servers, files);
    await running.run();
    const before = await signed();
    const restore = await backUp(servers.db);
    for (const statement of [
      "UPDATE log_tree SET root = sha256('x')",
      "UPDATE log_bundles SET entries = overlay(entries placing sha256('x') from 1)",
      forge(5),
      forge(9),
    ]) {
      await tamper(servers.db, statement);
      for (const { run } of [running, openSequencer(servers, files)])
        expect(await run(), statement).toMatchObject({
          refused: expect.stringMatching(/another root for (its )?5 leaves/),
        });
      await restore();
    }
    expect((await signed()).slice(0, 3)).toEqual(before.slice(0, 3));
    expect(roots).not.toContain(naiveRoot(Array(9).fill(forged)).toString("hex"));
  });

  /** Runs a pass while the tree changes. The next one is refused, and no forged root is signed. */
  async function changeDuring(change: (outside: pg.PoolClient, startPass: () => Promise<void>) => Promise<unknown>) {
    const { run } = openSequencer(servers, files);
    await run();
    await issueVouchers(servers.db, partner, 3);
    // Leaves that wait would make the pass compare the tree once more.
    const { server, ...head } = (await tree()) as LogTree;
    await integrateBatches(servers.db, await settingsOf(files), [head], server);
    const restore = await backUp(servers.db);
    let pass: Promise<unknown> | undefined;
    await besideTransaction(servers.db, async (outside) => {
      await outside.query("SET LOCAL session_replication_role = replica");
      await change(outside, async () => {
        pass = run();
        await untilWaiting(servers.db, 1);
      });
      await pass;
    });
    expect(await run()).toMatchObject({ refused: expect.stringMatching(/another root for (5|8) leaves/) });
    for (const size of [5, 8, 9]) expect(roots).not.toContain(naiveRoot(Array(size).fill(forged)).toString("hex"));
    await restore();
    expect(await run()).toMatchObject({ published: 8, refused: null });
    expect((await signed())[0]).toContain((await tree())?.root.toString("base64"));
  }

  it.each([
    ["before the pass locks it", "SELECT FROM log_tree FOR UPDATE; LOCK TABLE log_batches", forge(9)],
    ["before the pass reads the leaves", "LOCK TABLE log_batches", forge(5).replace(/UPDATE log_tree.*/, "")],
  ])("a tree that was changed in the database that was changed %s is never signed", (_, lock, change) =>
    changeDuring(async (outside, startPass) => {
      await outside.query(lock);
      await startPass();
      await outside.query(`${change}; COMMIT`);
    }));

  it("a tree that was changed in the database that was changed after the pass commits and before it signs is never signed", () =>
    changeDuring((outside, startPass) =>
      besideTransaction(servers.db, async (first) => {
        await first.query("LOCK TABLE log_batches");
        await startPass();
        // Waits for the pass, and gets the lock when the pass commits.
        const locked = outside.query("LOCK TABLE log_tree");
        await untilWaiting(servers.db, 2);
        await first.query("COMMIT");
        await locked;
        await outside.query(`${forge(8)}; COMMIT`);
      }),
    ));
});

// What docs/proof.md says of each. Without roles, every test connects as the owner.
describe.skipIf(inject("logins").api === null)("a person who connects to the database", () => {
  const NOT_ALLOWED = "42501";
  const REFUSED_BY_TRIGGER = "23001";
  let run: ReturnType<typeof openSequencer>["run"];

  beforeEach(async () => {
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 5);
    ({ run } = openSequencer(servers, files));
    await run();
  });

  function connect(url: string) {
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    servers.onClose(() => pool.end());
    /** Runs statements in a transaction. Returns the SQLSTATE of the error, or null. */
    return async (statements: string) =>
      pool.query(`BEGIN; ${statements}; COMMIT`).then(
        () => null,
        async (error: pg.DatabaseError) => {
          await pool.query("ROLLBACK");
          return error.code;
        },
      );
  }

  const audit = async () => (await onSnapshot(servers.db, auditLog)).problems;
  const CHANGES = {
    served: "UPDATE log_published SET note = 'x'",
    policy: "UPDATE log_published SET policy = 'quorum none'",
    lost: "DELETE FROM log_bundles",
    event: "DELETE FROM voucher_events",
    cut: "UPDATE log_tree SET size = size - 1",
    root: "UPDATE log_tree SET root = sha256('x')",
    leaf: "UPDATE log_bundles SET entries = overlay(entries placing sha256('x') from 1)",
    grown: "UPDATE log_tree SET size = size + 1",
    payload: "UPDATE voucher_events SET payload = '{}'",
  };

  it("a person who connects to the database as the API can add a leaf, which an audit finds, and can change nothing of the log", async () => {
    const attempt = connect(servers.databaseUrl);
    const { payload, ...changes } = CHANGES;
    const restore = await backUp(servers.db);
    for (const statement of Object.values(changes)) expect(await attempt(statement), statement).toBe(NOT_ALLOWED);
    expect(await attempt(payload)).toBe(REFUSED_BY_TRIGGER);
    expect(
      await attempt("INSERT INTO log_batches (id, leaves, hashes) VALUES (nextval('log_batch_ids'), 1, sha256('x'))"),
    ).toBeNull();
    expect(await run()).toMatchObject({ published: 6, refused: null });
    expect(await audit()).toEqual(["leaf 5 belongs to no event"]);
    await restore();
  });

  it("a person who connects to the database as an administrator can also add a leaf to the tree or stop the log, and can change nothing that was published", async () => {
    const attempt = connect(servers.adminUrl);
    for (const change of ["served", "policy", "lost", "event"] as const)
      expect(await attempt(CHANGES[change]), change).toBe(NOT_ALLOWED);
    for (const change of ["cut", "root", "leaf", "payload"] as const)
      expect(await attempt(CHANGES[change]), change).toBe(REFUSED_BY_TRIGGER);
    const hash = createHash("sha256").update("x").digest();
    const root = naiveRoot([...(await readLeaves(servers.db)), hash]).toString("hex");
    const add = `UPDATE log_bundles SET entries = entries || sha256('x'); UPDATE log_tree SET size = 6, root = '\\x${root}'`;
    expect(await attempt(add)).toBeNull();
    expect(await run()).toMatchObject({ published: 6, refused: null });
    expect(await audit()).toEqual(["leaf 5 belongs to no event"]);
    expect(await attempt(CHANGES.grown)).toBeNull();
    expect(await run()).toMatchObject({ refused: expect.stringMatching(/^The database states 7 leaves/) });
  });

  it("a person who connects to the database as the owner can change every row, and the log refuses or repairs what it has published", async () => {
    const attempt = connect(servers.ownerUrl);
    const change = async (statement: string) =>
      expect(await attempt(`SET LOCAL session_replication_role = replica; ${statement}`), statement).toBeNull();
    const old = await published();
    await issueVouchers(servers.db, partner, 2);
    await run();
    const last = await published();
    // An old checkpoint is replaced by the next pass, and so is another policy.
    await change(
      `UPDATE log_published SET size = 5, root = '\\x${encodeHex(old?.root ?? new Uint8Array())}', note = E'${old?.note.replaceAll("\n", "\\n")}'`,
    );
    expect(await run()).toMatchObject({ published: 7, refused: null });
    await change(CHANGES.policy);
    await run();
    expect(await published()).toMatchObject({ note: last?.note, policy: last?.policy });
    const restore = await backUp(servers.db);
    for (const name of ["served", "lost", "cut", "root", "leaf", "grown"] as const) {
      await change(CHANGES[name]);
      // Damaged tiles end the pass with an error instead of a refusal.
      const report = await run().catch((error: Error) => ({ refused: error.message }));
      expect(report.refused, name).not.toBeNull();
      await restore();
    }
    expect(readFileSync(files.anchor, "utf8")).toBe(last?.note);
    await change("DELETE FROM voucher_events WHERE log_slot = (SELECT min(log_slot) FROM voucher_events)");
    expect(await run()).toMatchObject({ refused: null });
    expect(await audit()).toEqual(["leaf 0 belongs to no event"]);
    await restore();
  });
});

describe("the anchor", () => {
  async function begun(count: number) {
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, count);
    const sequencer = openSequencer(servers, files);
    await sequencer.run();
    return sequencer;
  }

  it("the anchor of a larger tree stops everything: the database has lost a part of the log", async () => {
    const { run } = await begun(5);
    const before = await published();
    writeFileSync(files.anchor, await signCheckpoint(logKey, { size: 9, root: Buffer.alloc(32, 7) }));
    await issueVouchers(servers.db, partner, 10);
    expect(await run()).toMatchObject({ placed: 0, refused: expect.stringMatching(/has 9 leaves, the database 5/) });
    expect([(await tree())?.size, (await published())?.note]).toEqual([5, before?.note]);
  });

  it("the anchor with another root stops everything, even when the database has a larger tree", async () => {
    const { run } = await begun(5);
    writeFileSync(files.anchor, await signCheckpoint(logKey, { size: 3, root: Buffer.alloc(32, 7) }));
    expect(await run()).toMatchObject({ refused: expect.stringMatching(/another root for 3 leaves/) });
  });

  it("the anchor that another key has signed, or that is no checkpoint, stops everything", async () => {
    await begun(5);
    const { run } = openSequencer(servers, files);
    const root = Buffer.alloc(32);
    const other = await makeSigner("log", "other.test/log", Buffer.alloc(32, 9));
    for (const text of ["", "garbage\n", await signCheckpoint(other, { size: 1, root })]) {
      writeFileSync(files.anchor, text);
      expect(await run(), text).toMatchObject({ refused: expect.stringMatching(/is not a checkpoint of this log/) });
    }
  });

  it("the anchor that was deleted stops a new process, until an operator accepts the loss", async () => {
    await begun(5);
    rmSync(files.anchor);
    const { run } = openSequencer(servers, files);
    expect(await run()).toMatchObject({ refused: expect.stringMatching(/No anchor and no witness remembers/) });
    await expect(beginLog(servers.db, files)).rejects.toThrow(/is missing/);
    const { root } = (await tree()) as LogTree;
    await tamper(servers.db, "UPDATE log_tree SET root = sha256('x')");
    await expect(beginLog(servers.db, files, true)).rejects.toThrow(/another root for its 5 leaves/);
    await tamper(servers.db, `UPDATE log_tree SET root = '\\x${root.toString("hex")}'`);
    expect(await beginLog(servers.db, files, true)).toMatchObject({ begun: false, anchorsWritten: [files.anchor] });
    expect(await run()).toMatchObject({ refused: null, published: 5 });
  });

  it("the anchor that cannot be written lets no checkpoint be served, and the pass says so", async () => {
    const { run } = await begun(5);
    rmSync(files.directory, { recursive: true });
    await issueVouchers(servers.db, partner, 1);
    expect(await run()).toMatchObject({
      ...{ size: 6, published: 5, obstacle: "anchor" },
      refused: expect.stringMatching(/cannot be written: /),
    });
    mkdirSync(files.directory);
    expect(await run()).toMatchObject({ published: 6, refused: null });
  });

  it("the anchor of a second host follows the checkpoints that the first one serves", async () => {
    const { run } = await begun(5);
    const other = `${files.directory}/other`;
    writeFileSync(other, readFileSync(files.anchor));
    const second = openSequencer(servers, files, [other]);
    await issueVouchers(servers.db, partner, 2);
    await run();
    expect(await second.run()).toMatchObject({ published: 7, refused: null });
    expect(readFileSync(other, "utf8")).toBe(readFileSync(files.anchor, "utf8"));
  });

  it("the anchor of a log that the database does not have stops everything, and `log init` does not begin a second log", async () => {
    writeFileSync(files.anchor, await signCheckpoint(logKey, { size: 2, root: Buffer.alloc(32, 7) }));
    const { run } = openSequencer(servers, files);
    expect(await run()).toMatchObject({ refused: expect.stringMatching(/has no log, but an anchor has one/) });
    await expect(beginLog(servers.db, files, true)).rejects.toThrow(/knows 2 leaves, the database 0/);
    expect(await tree()).toBeNull();
  });

  it("the anchor is not needed when a witness remembers the log, and is written again", async () => {
    const { url } = await startWitness(servers, files);
    files.setWitnesses([url]);
    await begun(5);
    rmSync(files.anchor);
    await issueVouchers(servers.db, partner, 1);
    expect(await openSequencer(servers, files).run()).toMatchObject({ refused: null, published: 6 });
    expect(parseCheckpoint(readFileSync(files.anchor, "utf8"))?.size).toBe(6);
  });
});

describe("witnesses", () => {
  let fake: Server | undefined;

  afterEach(() => {
    fake?.closeAllConnections();
    fake?.close();
    fake = undefined;
  });

  it.each<[string, (response: ServerResponse) => void, RegExp]>([
    [
      "names an absurd size",
      (response) => response.writeHead(409).end("9007199254740991\n"),
      /has seen 9007199254740991/,
    ],
    ["rejects everything", (response) => response.writeHead(422).end("no\n"), /contradicts the database/],
  ])("one that %s counts as failed while the others meet the quorum, and stops a log that needs it", async (_, answer, claim) => {
    const honest = [(await startWitness(servers, files, 0)).url, (await startWitness(servers, files, 1)).url];
    const liar = await startFake(answer);
    files.setWitnesses([...honest, liar], 2);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    const { run } = openSequencer(servers, files);
    expect(await run()).toMatchObject({ published: 4, cosigned: 2, claims: 1, refused: null });
    await issueVouchers(servers.db, partner, 4);
    expect(await run()).toMatchObject({ published: 8, cosigned: 2, claims: 1, refused: null });
    files.setWitnesses([...honest, liar], 3);
    expect(await openSequencer(servers, files).run()).toMatchObject({
      published: 0,
      refused: expect.stringMatching(claim),
    });
  });

  /** Starts a witness that answers as the test says. */
  async function startFake(answer: (response: ServerResponse, note: string, body: string) => void): Promise<string> {
    const server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      answer(response, body.slice(body.indexOf("\n\n") + 2), body);
    });
    fake = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
  }

  it("cosign every checkpoint, and remember the last one over restarts", async () => {
    const witnesses = [await startWitness(servers, files, 0), await startWitness(servers, files, 1)];
    files.setWitnesses(witnesses.map(({ url }) => url));
    await beginLog(servers.db, files);
    const { run } = openSequencer(servers, files);
    for (const size of [4, 300, 301]) {
      await issueVouchers(servers.db, partner, size - ((await tree())?.size ?? 0));
      expect(await run()).toMatchObject({ published: size, cosigned: 2 });
      expect(await verifyPublished()).toMatchObject({ size, cosignatures: 2 });
      expect(witnesses.map(({ state }) => state().size)).toEqual([size, size]);
    }
  });

  it("witnesses that are too few let no new checkpoint be served, while events still get their places", async () => {
    const { url, close } = await startWitness(servers, files, 0);
    files.setWitnesses([url, await startFake((response) => response.writeHead(500).end())]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    const { run } = openSequencer(servers, files);
    const refused = /^Too few witnesses cosigned: 1/;
    expect(await run()).toMatchObject({ size: 4, published: 0, cosigned: 1, refused: expect.stringMatching(refused) });
    expect(await published()).toBeNull();
    await close();
  });

  it.each<[string, (response: ServerResponse, note: string) => void]>([
    [
      "lies",
      async (response, note) => {
        const other = await makeSigner("witness", witnessKeys[0]?.name ?? "", Buffer.alloc(32, 9));
        response.end(`${await cosignNote(other, `${note.slice(0, note.indexOf("\n\n"))}\n`, 1)}\n`);
      },
    ],
    [
      "signs something else",
      async (response) => {
        const [key] = witnessKeys;
        if (key !== undefined) response.end(`${await cosignNote(key, "something else\n", 1)}\n`);
      },
    ],
    ["hangs", () => undefined],
    ["answers ten megabytes", (response) => response.end("x".repeat(10_000_000))],
    ["redirects", (response) => response.writeHead(307, { location: "/elsewhere" }).end()],
    ["names a size that is not a number", (response) => response.writeHead(409).end("many\n")],
    ["hangs up", (response) => response.destroy()],
  ])("one that %s lets no checkpoint be served, and nothing is lost", async (_, answer) => {
    files.setWitnesses([await startFake(answer)]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    expect(await openSequencer(servers, files).run()).toMatchObject({
      published: 0,
      obstacle: "witnesses",
      refused: expect.stringMatching(/^Too few witnesses answer .*: w2.test/),
    });
    const honest = await startWitness(servers, files, 0);
    files.setWitnesses([honest.url]);
    expect(await openSequencer(servers, files).run()).toMatchObject({ size: 4, published: 4, cosigned: 1 });
  });

  it("witnesses that contradict a tree keep it out of the anchor, and the log goes on once they agree", async () => {
    const honest = await startWitness(servers, files);
    let refuses = false;
    const fakeUrl = await startFake(async (response, note, body) => {
      if (refuses && parseCheckpoint(note)?.size === 9) return void response.writeHead(422).end();
      const answer = await fetch(`${honest.url}/add-checkpoint`, { method: "POST", body });
      response.writeHead(answer.status).end(await answer.text());
    });
    files.setWitnesses([fakeUrl]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    const { run } = openSequencer(servers, files);
    await run();
    const anchor = readFileSync(files.anchor, "utf8");
    refuses = true;
    await issueVouchers(servers.db, partner, 5);
    expect(await run()).toMatchObject({
      size: 9,
      published: 4,
      refused: expect.stringMatching(/contradicts the database/),
    });
    expect(readFileSync(files.anchor, "utf8")).toBe(anchor);
    refuses = false;
    expect(await run()).toMatchObject({ published: 9, refused: null });
    expect(parseCheckpoint(readFileSync(files.anchor, "utf8"))?.size).toBe(9);
  });

  it("witnesses that have seen more than the database stop a new process before anything gets a place", async () => {
    const { url } = await startWitness(servers, files);
    files.setWitnesses([url]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    await openSequencer(servers, files).run();
    const ahead = await startFake((response) => response.writeHead(409).end("50\n"));
    files.setWitnesses([ahead]);
    await issueVouchers(servers.db, partner, 4);
    const report = await openSequencer(servers, files).run();
    expect(report).toMatchObject({
      placed: 0,
      refused: expect.stringMatching(/has seen 50 leaves, the database has 4/),
    });
  });
});

describe("witnesses of a log whose anchor was deleted", () => {
  function withoutAnchor() {
    rmSync(files.anchor, { force: true });
    return openSequencer(servers, files);
  }

  it.each([
    ["after its first checkpoint", 4],
    ["before its first checkpoint", 0],
  ])("witnesses of a log whose anchor was deleted stop a database that was restored to a state %s, before anything gets a place or is signed", async (_, count) => {
    const { url, state, ...witness } = await startWitness(servers, files);
    files.setWitnesses([url]);
    await beginLog(servers.db, files);
    if (count > 0) {
      await issueVouchers(servers.db, partner, count);
      await openSequencer(servers, files).run();
    }
    const restore = await backUp(servers.db);
    await issueVouchers(servers.db, partner, 6);
    await openSequencer(servers, files).run();
    const seen = state();
    await restore();
    await issueVouchers(servers.db, partner, 20);
    const lost = new RegExp(`has seen ${count + 6} leaves, the database has ${count}`);
    expect(await withoutAnchor().run()).toMatchObject({ placed: 0, refused: expect.stringMatching(lost) });
    await witness.close();
    // Now the only witness that knows of the loss does not answer.
    expect(await withoutAnchor().run()).toMatchObject({
      placed: 0,
      refused: expect.stringMatching(/^Too few witnesses answer to say what was signed. Without an answer: w2.test/),
    });
    expect([(await tree())?.size, state()]).toEqual([count, seen]);
  });

  it("witnesses of a log whose anchor was deleted are enough when those that do not answer are too few for a quorum", async () => {
    const witnesses = [await startWitness(servers, files, 0), await startWitness(servers, files, 1)];
    files.setWitnesses(witnesses.map(({ url }) => url));
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    expect(await openSequencer(servers, files).run()).toMatchObject({ published: 4, cosigned: 2 });
    await witnesses[1]?.close();
    await issueVouchers(servers.db, partner, 4);
    expect(await withoutAnchor().run()).toMatchObject({
      ...{ placed: 4, published: 4, cosigned: 1 },
      refused: expect.stringMatching(/^Too few witnesses cosigned: 1/),
    });
  });

  it("witnesses of a log whose anchor was deleted are sent only text that the log has signed, even if the database serves other text", async () => {
    const { url, state } = await startWitness(servers, files);
    files.setWitnesses([url]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    await openSequencer(servers, files).run();
    const seen = state();
    const other = await makeSigner("log", logKey.name, Buffer.alloc(32, 9));
    for (const note of [
      await signCheckpoint(other, { size: 9, root: Buffer.alloc(32, 7) }),
      await signCheckpoint(logKey, { size: 3, root: Buffer.alloc(32, 7) }),
      "garbage",
    ]) {
      await servers.db.query("UPDATE log_published SET note = $1", [note]);
      expect(await withoutAnchor().run(), note).toMatchObject({
        refused: "The served checkpoint is not one that this log has signed for its tree.",
      });
    }
    expect(state()).toEqual(seen);
  });

  it("witnesses of a log whose anchor was deleted that do not cosign an empty tree let a new log begin", async () => {
    const honest = await startWitness(servers, files);
    const { promise, resolve } = Promise.withResolvers<string>();
    const picky = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      if (body.includes("\n0\n")) return void response.writeHead(422).end();
      const answer = await fetch(`${honest.url}/add-checkpoint`, { method: "POST", body });
      response.writeHead(answer.status).end(await answer.text());
    });
    picky.listen(0, "127.0.0.1", () => {
      const address = picky.address();
      resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`);
    });
    servers.onClose(async () => picky.closeAllConnections() ?? picky.close());
    files.setWitnesses([await promise]);
    await beginLog(servers.db, files);
    await issueVouchers(servers.db, partner, 4);
    expect(await openSequencer(servers, files).run()).toMatchObject({ published: 4, cosigned: 1, refused: null });
  });
});

it("a database server that was not compared with the witnesses gives no places", async () => {
  await beginLog(servers.db, files);
  await issueVouchers(servers.db, partner, 4);
  expect(await integrateBatches(servers.db, await settingsOf(files), [], "another")).toMatchObject({ placed: 0 });
  expect((await tree())?.size).toBe(0);
});

it("the settings refuse a key file that others can read, one without a key, another origin and a policy without this log", async () => {
  chmodSync(files.env.LOG_KEY_FILE, 0o640);
  await expect(settingsOf(files)).rejects.toThrow(/Other users can read/);
  chmodSync(files.env.LOG_KEY_FILE, 0o600);
  expect((await settingsOf(files)).origin).toBe("vouchers.test/log");
  files.env.LOG_POLICY = `${files.directory}/policy`;
  await expect(settingsOf(files)).rejects.toThrow(/LOG_POLICY cannot be read/);
  writeFileSync(files.env.LOG_POLICY, "quorum none\n");
  await expect(settingsOf(files)).rejects.toThrow(/does not name this log's key/);
  writeFileSync(files.env.LOG_POLICY, "quorum one\n");
  await expect(settingsOf(files)).rejects.toThrow(/Line 1 of the policy/);
  writeFileSync(files.env.LOG_KEY_FILE, "not a key\n");
  await expect(settingsOf(files)).rejects.toThrow(/does not hold a key/);
});

it("the settings refuse a key without an anchor", async () => {
  await expect(settingsOf(files, [])).rejects.toThrow(
    "LOG_KEY_FILE requires a memory of what was signed: set LOG_ANCHOR.",
  );
});
