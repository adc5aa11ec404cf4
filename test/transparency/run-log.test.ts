import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import pg from "pg";
import { afterEach, beforeEach, describe, expect, inject, it } from "vitest";
import { encodeHex } from "#tlog/bytes.ts";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { cosignNote, makeSigner } from "#tlog/note.ts";
import { parsePolicy, verifyCheckpoint } from "#tlog/policy.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { findPublished, findTlogProgress } from "../../src/transparency/db/log-checkpoints.ts";
import { findTlogTree, type TlogTree } from "../../src/transparency/db/log-tree.ts";
import { integrateBatches } from "../../src/transparency/integrate-batches.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  backUp,
  naiveTreeRoot,
  readLeaves,
  settingsOf,
  startWitness,
  tamper,
  tlogKey,
  witnessKeys,
} from "../support/log-setup.ts";
import { naiveRoot } from "../support/naive-merkle.ts";
import { besideTransaction, untilWaiting, waitLongForLocks } from "../support/outside-transaction.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { useLog } from "../support/use-log.ts";

const { servers, db, files, partner, issue, begin, open, run, audit } = useLog();

afterEach(async () => {
  await servers.closeOpened();
  await assertInvariants(db);
});

const FORGED = Buffer.alloc(32, 7);

it("the sequencer adds every sealed event to the log's tree in chain order, and serves the root", async () => {
  const issued = await issueVouchers(db, partner, 520, { validUntil: new Date(Date.now() - 1_000) });
  expect(await run()).toMatchObject({ placed: 0, size: 0, refused: null });
  expect([await tree(), await published(), existsSync(files.anchor)]).toEqual([null, null, false]);
  const { report, ...sequencer } = await begun(0);
  expect(report).toMatchObject({ placed: 520, size: 520, published: 520, refused: null });
  const expired = await recordExpiries(provisioning(db), performance.now() + 60_000);
  expect(expired).toBe(issued.length);
  expect(await sequencer.run()).toMatchObject({ placed: 520, size: 1_040, published: 1_040 });
  expect(await sequencer.run()).toMatchObject({ placed: 0, size: 1_040, published: 1_040 });
  expect(await verifyPublished()).toEqual({ size: 1_040, root: await naiveTreeRoot(db), cosignatures: 0 });
  expect(parseCheckpoint(readAnchor())?.size).toBe(1_040);
});

it("the sequencer adds no leaf to a tree that another process has locked or no witness has cosigned", async () => {
  await begin();
  await issue(3);
  const { run } = open();
  await besideTransaction(db, async (other) => {
    await other.query("SELECT 1 FROM log_tree FOR NO KEY UPDATE");
    expect(await run()).toMatchObject({ placed: 0, size: 0 });
  });
  expect(await integrateBatches(db, await settingsOf(files), [], "another")).toMatchObject({ placed: 0 });
  expect((await tree()).size).toBe(0);
  expect(await run()).toMatchObject({ placed: 3 });
});

it("the sequencer signs a tree that was committed before a crash, with the same bytes each time", async () => {
  await begin();
  await issue(5);
  const before = await tree();
  const integrated = await integrateBatches(db, await settingsOf(files), [before], before.server);
  expect([integrated?.placed, (await tree()).size, await published()]).toEqual([5, 5, null]);
  await run();
  expect((await published())?.note).toBe(readAnchor());
  expect(readAnchor()).toBe(await signCheckpoint(tlogKey, { size: 5, root: (await tree()).root }));
});

describe("a log's tree that was changed in the database", () => {
  /** Replaces all leaves. */
  const forge = (size: number) => `
    DELETE FROM log_bundles;
    INSERT INTO log_bundles (index, entries) SELECT 0, decode(repeat('${FORGED.toString("hex")}', ${size}), 'hex');
    UPDATE log_tree SET size = ${size}, root = '\\x${naiveRoot(Array(size).fill(FORGED)).toString("hex")}'`;
  let roots: string[];
  let state: () => { size: number };

  beforeEach(async () => {
    roots = [];
    const before = (note: string) => roots.push(encodeHex(parseCheckpoint(note)?.root ?? new Uint8Array()));
    const witness = await startWitness(servers, files, 0, { before });
    state = witness.state;
    files.setWitnesses([witness.url]);
  });

  /** Returns the checkpoints that the log has signed and serves. */
  const signed = async () => [readAnchor(), (await published())?.note, state()];

  it("the sequencer refuses to sign a tree that was changed in the database, until the tree is repaired", async () => {
    const running = await begun(5);
    const [before, asked] = [await signed(), roots.length];
    const expectRefused = async (reason: RegExp) => {
      for (const { run } of [running, open()])
        expect(await run()).toMatchObject({ published: 0, obstacle: "contradiction", ...refused(reason) });
    };
    const { root } = await tree();
    for (const url of [servers.ownerUrl, servers.adminUrl]) {
      const pool = new pg.Pool({ connectionString: url, max: 1 });
      await pool.query("UPDATE log_tree SET size = size + 1, root = $1", [FORGED]).finally(() => pool.end());
      await expectRefused(/^The database states 6 leaves or more, but lacks one/);
      await tamper(db, `UPDATE log_tree SET size = 5, root = '\\x${root.toString("hex")}'`);
    }
    expect(roots).toHaveLength(asked);
    await tamper(
      db,
      `INSERT INTO statements (organization_id, month, content, note_due)
      VALUES ('${partner.organizationId}', '2025-03', '{"final":true,"month":"2025-03","amountUsd":0}', true)`,
    );
    const restore = await backUp(db);
    for (const statement of [
      "UPDATE log_tree SET root = sha256('x')",
      "UPDATE log_bundles SET entries = overlay(entries placing sha256('x') from 1)",
      forge(5),
      forge(9),
    ]) {
      await tamper(db, statement);
      await expectRefused(/another root for (its )?5 leaves/);
      await restore();
    }
    expect(await signed()).toEqual(before);
    expect((await db.query("SELECT note FROM statements")).rows).toEqual([{ note: null }]);
    expect(roots).not.toContain(naiveRoot(Array(9).fill(FORGED)).toString("hex"));
    await issue(1);
    expect(await running.run()).toMatchObject({ published: 6, cosigned: 1, refused: null });
  });

  /** Runs a pass while the tree changes. Expects the next pass to be refused, and no forged root to be signed. */
  async function changeDuring(change: (outside: pg.PoolClient, startPass: () => Promise<void>) => Promise<unknown>) {
    const { pool, run } = await begun(5);
    waitLongForLocks(pool);
    await issue(3);
    // First gives all leaves their positions, because waiting leaves would make the pass compare the tree again.
    const { server, ...head } = await tree();
    await integrateBatches(db, await settingsOf(files), [head], server);
    const restore = await backUp(db);
    let pass: Promise<unknown> | undefined;
    await besideTransaction(db, async (outside) => {
      await outside.query("SET LOCAL session_replication_role = replica");
      await change(outside, async () => {
        pass = run();
        await untilWaiting(db, 1);
      });
      await pass;
    });
    expect(await run()).toMatchObject(refused(/another root for (5|8) leaves/));
    for (const size of [5, 8, 9]) expect(roots).not.toContain(naiveRoot(Array(size).fill(FORGED)).toString("hex"));
    await restore();
    expect(await run()).toMatchObject({ published: 8, refused: null });
    expect(readAnchor()).toContain((await tree()).root.toString("base64"));
  }

  it.each([
    ["before the pass locks it", "SELECT FROM log_tree FOR UPDATE; LOCK TABLE log_batches", forge(9)],
    ["before the pass reads the leaves", "LOCK TABLE log_batches", forge(5).replace(/UPDATE log_tree.*/, "")],
  ])("the sequencer never signs a tree that was changed in the database %s", (_, lock, change) =>
    changeDuring(async (outside, startPass) => {
      await outside.query(lock);
      await startPass();
      await outside.query(`${change}; COMMIT`);
    }));

  it("the sequencer never signs a tree that is changed in the database between COMMIT and signature", () =>
    changeDuring((outside, startPass) =>
      besideTransaction(db, async (first) => {
        await first.query("LOCK TABLE log_batches");
        await startPass();
        // This lock waits for the pass, and is granted when the pass commits.
        const locked = outside.query("LOCK TABLE log_tree");
        await untilWaiting(db, 2);
        await first.query("COMMIT");
        await locked;
        await outside.query(`${forge(8)}; COMMIT`);
      }),
    ));
});

it.each([
  "9223372036854775807",
  "2199023255552",
  "0",
  "-1",
])("the sequencer sets aside a leaf batch with the id %s, which no sequence drew, until its deletion", async (id) => {
  const { run } = await begun(5);
  await tamper(
    db,
    "ALTER TABLE log_batches DROP CONSTRAINT log_batches_id_in_slot",
    `INSERT INTO log_batches (id, leaves, hashes) VALUES (${id}, 1, sha256('x'))`,
    "ALTER TABLE log_batches ADD CONSTRAINT log_batches_id_in_slot CHECK (id BETWEEN 1 AND 2199023255551) NOT VALID",
  );
  await issue(2);
  expect(await run()).toMatchObject({ published: 7, setAside: 1, refused: null });
  expect(await findTlogProgress(db)).toMatchObject({ lagMs: 0 });
  expect((await audit()).problems).toEqual(["1 leaves wait for their place, and 0 events"]);
  // The statements of docs/runbook/log.md.
  const [repair] =
    /BEGIN;\nALTER TABLE log_batches DISABLE[^`]*COMMIT;/.exec(readFileSync("docs/runbook/log.md", "utf8")) ?? [];
  await db.query(String(repair));
  expect(await run()).toMatchObject({ setAside: 0, refused: null });
  expect((await audit()).problems).toEqual([]);
});

// The rights that docs/proof.md states for each role. Without roles, every test connects as the owner.
describe.skipIf(inject("logins").api === null)("a person who connects to the log's database", () => {
  const NOT_ALLOWED = "42501";
  const REFUSED_BY_TRIGGER = "23001";
  /** SQLSTATE: the session has drawn no number of the sequence. */
  const NOT_DRAWN = "55000";
  let run: ReturnType<typeof open>["run"];

  beforeEach(async () => {
    ({ run } = await begun(5));
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

  it("a person with the role pva_api can only add a leaf to the log, and log audit finds the leaf", async () => {
    const attempt = connect(servers.databaseUrl);
    const { payload, ...changes } = CHANGES;
    const restore = await backUp(db);
    const leaf = (id: string) => `INSERT INTO log_batches (id, leaves, hashes) VALUES (${id}, 1, sha256('x'))`;
    expect(await attempt(leaf("9223372036854775807"))).toBe(NOT_DRAWN);
    for (const chosen of ["9223372036854775807", "currval('log_batch_ids') + 1", "currval('log_batch_ids') - 1"])
      expect(await attempt(`SELECT nextval('log_batch_ids'); ${leaf(chosen)}`), chosen).toBe(REFUSED_BY_TRIGGER);
    for (const statement of Object.values(changes)) expect(await attempt(statement), statement).toBe(NOT_ALLOWED);
    expect(await attempt(payload)).toBe(REFUSED_BY_TRIGGER);
    expect(await attempt(leaf("nextval('log_batch_ids')"))).toBeNull();
    expect(await run()).toMatchObject({ published: 6, refused: null });
    expect((await audit()).problems).toEqual(["leaf 5 belongs to no event"]);
    await restore();
  });

  it("a person with the role pva_admin can add a leaf or stop the log, but change nothing published", async () => {
    const attempt = connect(servers.adminUrl);
    for (const change of ["served", "policy", "lost", "event"] as const)
      expect(await attempt(CHANGES[change]), change).toBe(NOT_ALLOWED);
    for (const change of ["cut", "root", "leaf", "payload"] as const)
      expect(await attempt(CHANGES[change]), change).toBe(REFUSED_BY_TRIGGER);
    const hash = createHash("sha256").update("x").digest();
    const root = naiveRoot([...(await readLeaves(db)), hash]).toString("hex");
    const add = `
      UPDATE log_bundles SET entries = entries || sha256('x');
      UPDATE log_tree SET size = 6, root = '\\x${root}'`;
    expect(await attempt(add)).toBeNull();
    expect(await run()).toMatchObject({ published: 6, refused: null });
    expect((await audit()).problems).toEqual(["leaf 5 belongs to no event"]);
    expect(await attempt(CHANGES.grown)).toBeNull();
    expect(await run()).toMatchObject(refused(/^The database states 7 leaves/));
  });

  it("the log repairs any change by the database's owner or stops, or log audit reports the change", async () => {
    const attempt = connect(servers.ownerUrl);
    const change = async (statement: string) =>
      expect(await attempt(`SET LOCAL session_replication_role = replica; ${statement}`), statement).toBeNull();
    const old = await published();
    await issue(2);
    await run();
    const last = await published();
    // The next pass replaces an old checkpoint and another policy.
    const [root, note] = [encodeHex(old?.root ?? new Uint8Array()), old?.note.replaceAll("\n", "\\n")];
    await change(`UPDATE log_published SET size = 5, root = '\\x${root}', note = E'${note}'`);
    expect(await run()).toMatchObject({ published: 7, refused: null });
    await change(CHANGES.policy);
    await run();
    expect(await published()).toMatchObject({ note: last?.note, policy: last?.policy });
    const restore = await backUp(db);
    for (const name of ["served", "lost", "cut", "root", "leaf", "grown"] as const) {
      await change(CHANGES[name]);
      // Turns an error into a report, because damaged tiles end the pass with an error instead of a refusal.
      const report = await run().catch((error: Error) => ({ refused: error.message }));
      expect(report.refused, name).not.toBeNull();
      await restore();
    }
    expect(readAnchor()).toBe(last?.note);
    await change("DELETE FROM voucher_events WHERE log_slot = (SELECT min(log_slot) FROM voucher_events)");
    expect(await run()).toMatchObject({ refused: null });
    expect((await audit()).problems).toEqual(["leaf 0 belongs to no event"]);
    await restore();
  });
});

it("an anchor file with a larger tree, another root or no signature of the log stops the sequencer", async () => {
  const { run } = await begun(5);
  const before = await published();
  const other = await makeSigner("log", "other.test/log", Buffer.alloc(32, 9));
  for (const text of ["", "garbage\n", await signCheckpoint(other, { size: 1, root: FORGED })]) {
    writeFileSync(files.anchor, text);
    expect(await open().run(), text).toMatchObject(refused(/is not a checkpoint of this log/));
  }
  await writeAnchor(9);
  await issue(10);
  expect(await run()).toMatchObject({ placed: 0, ...refused(/has 9 leaves, the database 5/) });
  await writeAnchor(3);
  expect(await run()).toMatchObject(refused(/another root for 3 leaves/));
  expect([(await tree()).size, (await published())?.note]).toEqual([5, before?.note]);
});

it("a deleted anchor file stops a new sequencer until an operator accepts the loss", async () => {
  await begun(5);
  rmSync(files.anchor);
  expect(await run()).toMatchObject(refused(/No anchor and no witness remembers/));
  await expect(begin()).rejects.toThrow(/is missing/);
  const { root } = await tree();
  await tamper(db, "UPDATE log_tree SET root = sha256('x')");
  await expect(begin(true)).rejects.toThrow(/another root for its 5 leaves/);
  await tamper(db, `UPDATE log_tree SET root = '\\x${root.toString("hex")}'`);
  expect(await begin(true)).toMatchObject({ begun: false, anchorsWritten: [files.anchor] });
  expect(await run()).toMatchObject({ refused: null, published: 5 });
});

it("the sequencer serves no checkpoint while it cannot write the anchor file, and reports the failure", async () => {
  const { run } = await begun(5);
  rmSync(files.directory, { recursive: true });
  await issue(1);
  expect(await run()).toMatchObject({ size: 6, published: 5, obstacle: "anchor", ...refused(/cannot be written: /) });
  mkdirSync(files.directory);
  expect(await run()).toMatchObject({ published: 6, refused: null });
});

it("a second host's anchor file follows the checkpoints that the first host serves", async () => {
  const { run } = await begun(5);
  const other = `${files.directory}/other`;
  writeFileSync(other, readAnchor());
  const second = open(files, [other]);
  await issue(2);
  await run();
  expect(await second.run()).toMatchObject({ published: 7, refused: null });
  expect(readFileSync(other, "utf8")).toBe(readAnchor());
});

it("an anchor file stops the sequencer and `log init` if the database has no log", async () => {
  await writeAnchor(2);
  expect(await run()).toMatchObject(refused(/has no log, but an anchor has one/));
  await expect(begin(true)).rejects.toThrow(/knows 2 leaves, the database 0/);
  expect(await tree()).toBeNull();
});

type Answer = (response: ServerResponse, note: string, body: string) => unknown;

/** Starts a witness that answers as the test says. */
async function startFake(answer: Answer): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    await answer(response, body.slice(body.indexOf("\n\n") + 2), body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.onClose(async () => server.closeAllConnections() ?? server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a witness that refuses some checkpoints, and otherwise answers like an honest one. */
async function startRefusing(refuses: (note: string) => boolean): Promise<string> {
  const { url } = await startWitness(servers, files);
  return startFake(async (response, note, body) => {
    if (refuses(note)) return response.writeHead(422).end();
    const answer = await fetch(`${url}/add-checkpoint`, { method: "POST", body });
    return response.writeHead(answer.status).end(await answer.text());
  });
}

it.each<[string, Answer, RegExp]>([
  [
    "names an absurd size",
    (response) => response.writeHead(409).end("9007199254740991\n"),
    /has seen 9007199254740991/,
  ],
  ["rejects everything", (response) => response.writeHead(422).end("no\n"), /contradicts the database/],
])("a witness that %s stops a log only if the log's quorum needs the witness", async (_, answer, claim) => {
  const honest = [(await startWitness(servers, files, 0)).url, (await startWitness(servers, files, 1)).url];
  const liar = await startFake(answer);
  files.setWitnesses([...honest, liar], 2);
  const { run, report } = await begun(4);
  expect(report).toMatchObject({ published: 4, cosigned: 2, claims: 1, refused: null });
  await issue(4);
  expect(await run()).toMatchObject({ published: 8, cosigned: 2, claims: 1, refused: null });
  files.setWitnesses([...honest, liar], 3);
  expect(await open().run()).toMatchObject({ published: 0, ...refused(claim) });
});

it("witnesses cosign every checkpoint of the log, and remember the last checkpoint over restarts", async () => {
  const witnesses = [await startWitness(servers, files, 0), await startWitness(servers, files, 1)];
  files.setWitnesses(witnesses.map(({ url }) => url));
  const { run } = await begun(0);
  for (const size of [4, 300, 301]) {
    await issue(size - (await tree()).size);
    expect(await run()).toMatchObject({ published: size, cosigned: 2 });
    expect(await verifyPublished()).toMatchObject({ size, cosignatures: 2 });
    expect(witnesses.map(({ state }) => state().size)).toEqual([size, size]);
  }
});

it("without a quorum of witnesses no new checkpoint is served, but events get their positions in the log", async () => {
  const { url } = await startWitness(servers, files);
  files.setWitnesses([url, await startFake((response) => response.writeHead(500).end())]);
  const { report } = await begun(4);
  expect(report).toMatchObject({ size: 4, published: 0, cosigned: 1, ...refused(/^Too few witnesses cosigned: 1/) });
  expect(await published()).toBeNull();
});

it.each<[string, Answer]>([
  [
    "lies",
    async (response, note) => {
      const other = await makeSigner("witness", witnessKeys[0]?.name ?? "", Buffer.alloc(32, 9));
      response.end(`${await cosignNote(other, `${note.slice(0, note.indexOf("\n\n"))}\n`, 1)}\n`);
    },
  ],
  [
    "signs something else",
    async (response) =>
      response.end(`${await cosignNote(witnessKeys[0] as (typeof witnessKeys)[0], "something else\n", 1)}\n`),
  ],
  ["hangs", () => undefined],
  ["answers ten megabytes", (response) => response.end("x".repeat(10_000_000))],
  ["redirects", (response) => response.writeHead(307, { location: "/elsewhere" }).end()],
  ["names a size that is not a number", (response) => response.writeHead(409).end("many\n")],
  ["hangs up", (response) => response.destroy()],
])("no checkpoint is served, and nothing is lost, with a witness that %s", async (_, answer) => {
  files.setWitnesses([await startFake(answer)]);
  const { report } = await begun(4);
  expect(report).toMatchObject({
    published: 0,
    obstacle: "witnesses",
    ...refused(/^Too few witnesses answer .*: w2.test/),
  });
  files.setWitnesses([(await startWitness(servers, files)).url]);
  expect(await run()).toMatchObject({ size: 4, published: 4, cosigned: 1 });
});

it("the sequencer writes no tree to the anchor file while witnesses contradict the tree", async () => {
  let refuses = false;
  files.setWitnesses([await startRefusing((note) => refuses && parseCheckpoint(note)?.size === 9)]);
  const { run } = await begun(4);
  const anchor = readAnchor();
  refuses = true;
  await issue(5);
  expect(await run()).toMatchObject({ size: 9, published: 4, ...refused(/contradicts the database/) });
  expect(readAnchor()).toBe(anchor);
  refuses = false;
  expect(await run()).toMatchObject({ published: 9, refused: null });
  expect(parseCheckpoint(readAnchor())?.size).toBe(9);
});

it("witnesses with a newer checkpoint than the database stop a new sequencer before it adds leaves", async () => {
  files.setWitnesses([(await startWitness(servers, files)).url]);
  await begun(4);
  files.setWitnesses([await startFake((response) => response.writeHead(409).end("50\n"))]);
  await issue(4);
  expect(await run()).toMatchObject({ placed: 0, ...refused(/has seen 50 leaves, the database has 4/) });
});

function runWithoutAnchor() {
  rmSync(files.anchor, { force: true });
  return run();
}

it.each([4, 0])("witnesses stop a log that was restored to %i leaves and has lost its anchor file", async (count) => {
  const { url, state, close } = await startWitness(servers, files);
  files.setWitnesses([url]);
  if (count > 0) await begun(count);
  else await begin();
  const restore = await backUp(db);
  await issue(6);
  await run();
  const seen = state();
  await restore();
  await issue(20);
  const lost = new RegExp(`has seen ${count + 6} leaves, the database has ${count}`);
  expect(await runWithoutAnchor()).toMatchObject({ placed: 0, ...refused(lost) });
  await close();
  // Now the only witness that knows of the loss does not respond.
  expect(await runWithoutAnchor()).toMatchObject({
    placed: 0,
    ...refused(/^Too few witnesses answer to say what was signed. Without an answer: w2.test/),
  });
  expect([(await tree()).size, state()]).toEqual([count, seen]);
});

it("a deleted anchor file is written again if enough witnesses respond", async () => {
  const witnesses = [await startWitness(servers, files, 0), await startWitness(servers, files, 1)];
  files.setWitnesses(witnesses.map(({ url }) => url));
  expect((await begun(4)).report).toMatchObject({ published: 4, cosigned: 2 });
  await issue(1);
  expect(await runWithoutAnchor()).toMatchObject({ refused: null, published: 5 });
  expect(parseCheckpoint(readAnchor())?.size).toBe(5);
  await witnesses[1]?.close();
  await issue(4);
  expect(await runWithoutAnchor()).toMatchObject({
    placed: 4,
    published: 5,
    cosigned: 1,
    ...refused(/^Too few witnesses cosigned: 1/),
  });
});

it("without an anchor file, the sequencer sends witnesses only a checkpoint that its log has signed", async () => {
  const { url, state } = await startWitness(servers, files);
  files.setWitnesses([url]);
  await begun(4);
  const seen = state();
  const other = await makeSigner("log", tlogKey.name, Buffer.alloc(32, 9));
  const notes = [
    signCheckpoint(other, { size: 9, root: FORGED }),
    signCheckpoint(tlogKey, { size: 3, root: FORGED }),
    "garbage",
  ];
  for (const note of await Promise.all(notes)) {
    await db.query("UPDATE log_published SET note = $1", [note]);
    expect(await runWithoutAnchor(), note).toMatchObject({
      refused: "The served checkpoint is not one that this log has signed for its tree.",
    });
  }
  expect(state()).toEqual(seen);
});

it("a new log can begin even if its witnesses do not cosign an empty tree", async () => {
  files.setWitnesses([await startRefusing((note) => note.includes("\n0\n"))]);
  expect((await begun(4)).report).toMatchObject({ published: 4, cosigned: 1, refused: null });
});

it("the sequencer refuses an unsafe key file, an unsuitable policy and a missing anchor file", async () => {
  chmodSync(files.env.LOG_KEY_FILE, 0o640);
  await expect(settingsOf(files)).rejects.toThrow(/Other users can read/);
  chmodSync(files.env.LOG_KEY_FILE, 0o600);
  expect((await settingsOf(files)).origin).toBe("vouchers.test/log");
  await expect(settingsOf(files, [])).rejects.toThrow(/^LOG_KEY_FILE requires a memory of what was signed: set LOG_/);
  const policy = `${files.directory}/policy`;
  files.env.LOG_POLICY = policy;
  await expect(settingsOf(files)).rejects.toThrow(/LOG_POLICY cannot be read/);
  writeFileSync(policy, "quorum none\n");
  await expect(settingsOf(files)).rejects.toThrow(/does not name this log's key/);
  writeFileSync(policy, "quorum one\n");
  await expect(settingsOf(files)).rejects.toThrow(/Line 1 of the policy/);
  writeFileSync(files.env.LOG_KEY_FILE, "not a key\n");
  await expect(settingsOf(files)).rejects.toThrow(/does not hold a key/);
});

const writeAnchor = async (size: number) =>
  writeFileSync(files.anchor, await signCheckpoint(tlogKey, { size, root: FORGED }));

/** Verifies the served checkpoint against the policy that is served with it. */
async function verifyPublished() {
  const served = await published();
  const checkpoint = served && parseCheckpoint(served.note);
  if (!served || !checkpoint) throw new Error("no checkpoint is served");
  const cosignatures = await verifyCheckpoint(await parsePolicy(served.policy), checkpoint);
  return { size: checkpoint.size, root: encodeHex(checkpoint.root), cosignatures: cosignatures.length };
}

/** Begins the log with some leaves, which a pass publishes if the witnesses allow it. */
async function begun(count: number) {
  await begin();
  if (count > 0) await issue(count);
  const sequencer = open();
  return { ...sequencer, report: await sequencer.run() };
}

const published = () => findPublished(db);
const tree = async () => (await findTlogTree(db)) as TlogTree;
const readAnchor = () => readFileSync(files.anchor, "utf8");
const refused = (reason: RegExp) => ({ refused: expect.stringMatching(reason) });
