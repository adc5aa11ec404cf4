import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { verifyStatement } from "#client/statement.ts";
import { parseCheckpoint } from "#tlog/checkpoint.ts";
import { parsePolicy } from "#tlog/policy.ts";
import { verifyProof } from "#tlog/receipt.ts";
import { hashLeaves } from "#tlog/tree.ts";
import { erasePerson } from "../../src/acts/erase-person.ts";
import type { IssuedVoucher } from "../../src/acts/issue-batch.ts";
import { verifySignedStatement } from "../../src/acts/verify-statement.ts";
import { onSnapshot } from "../../src/platform/db/transaction.ts";
import { auditTlog } from "../../src/transparency/audit-log.ts";
import { send } from "../support/client.ts";
import {
  beginTlog,
  makeTlogFiles,
  openSequencer,
  readLeaves,
  startWitness,
  type TlogFiles,
  tlogKey,
  witnessKeys,
} from "../support/log-setup.ts";
import { bypassTriggers, closeRedemptions } from "../support/outside-transaction.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const OPS_TOKEN = "the token of the operators";

const { api, servers, partner, till, keys } = useService({ env: { OPS_TOKEN } });
let files: TlogFiles;
let run: () => Promise<{ published: number }>;
let vouchers: IssuedVoucher[];

beforeAll(async () => {
  files = makeTlogFiles();
  const { url } = await startWitness(servers, files);
  files.setWitnesses([url]);
  vouchers = await issueVouchers(servers.db, partner, 300);
  return () => files.remove();
});

const codeOf = (at: number) => String(vouchers[at]?.code);

it("before log init, the transparency log serves nothing, and receipts answer not_logged_yet", async () => {
  expect(await openOperatorsPage()).toContain("This deployment has no log. voucherctl log init begins it.");
  for (const path of ["checkpoint", "policy", "tile/0/000.p/1", "tile/entries/000.p/1"]) {
    expect((await get(path)).status, path).toBe(404);
  }
  expect((await till.redeem({ code: codeOf(0), externalRef: "early" })).status).toBe(200);
  const reply = await till.receipt("early");
  expect([reply.status, reply.body.code, reply.headers.get("retry-after")]).toEqual([409, "not_logged_yet", "1"]);
  expect(await logIndexesOf(0)).toEqual([null, null]);
  // In a browser, the answer is a page that reloads until the proof exists.
  const page = await proofOf(1, 0, { accept: "text/html" });
  expect([page.status, page.headers.get("refresh")]).toEqual([409, "3"]);
  expect(await page.text()).toMatch(/Not in the log yet.*within seconds.*This page looks again by itself/s);
  expect((await proofOf(1, 0)).headers.get("refresh")).toBeNull();
});

describe("after a checkpoint is published", () => {
  beforeAll(async () => {
    await beginTlog(servers.db, files);
    ({ run } = openSequencer(servers, files));
    expect(await run()).toMatchObject({ published: 301 });
  });

  it("the operators' page of the log shows checkpoint and cosignatures before any worker has reported", async () => {
    const page = await openOperatorsPage();
    expect(page).toMatch(/Leaves 301 Served 301 Age of the checkpoint \d+ s Log vouchers\.test\/log Lag None: nothing/);
    expect(page).toMatch(/w2\.test http:\/\/\S+ 301 leaves Cosigned \d+ \w+ \d{4}, /);
    expect(page).toContain("Last pass Unknown: no worker with the log's key has run");
  });

  it("the transparency log's checkpoint and policy are public, including for pages of other origins", async () => {
    const { status, headers, bytes } = await get("checkpoint");
    expect(status).toBe(200);
    expect(parseCheckpoint(bytes.toString())).toMatchObject({ origin: "vouchers.test/log", size: 301 });
    expect(Object.fromEntries(headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "public, max-age=1",
      "access-control-allow-origin": "*",
    });
    const policy = await parsePolicy((await get("policy")).bytes.toString());
    expect(policy.logs.map(({ key }) => key.text)).toEqual([tlogKey.text]);
  });

  it("the transparency log's tiles and entry bundles contain the leaves, and can be cached for a year", async () => {
    const leaves = await readLeaves(servers.db);
    for (const [path, from, to] of [
      ["000", 0, 256],
      ["000.p/1", 0, 1],
      ["000.p/255", 0, 255],
      ["001.p/45", 256, 301],
      ["001.p/7", 256, 263],
    ] as const) {
      const wanted = leaves.slice(from, to);
      const tile = await get(`tile/0/${path}`);
      expect(tile.bytes, path).toEqual(hashLeaves(Buffer.concat(wanted)));
      const entries = await get(`tile/entries/${path}`);
      expect(entries.bytes, path).toEqual(Buffer.concat(wanted.flatMap((leaf) => [Buffer.of(0, 32), leaf])));
      expect(tile.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(tile.headers.get("content-type")).toBe("application/octet-stream");
    }
    expect((await get("tile/1/000.p/1")).bytes).toHaveLength(32);
  });

  it("a tile that is beyond the checkpoint's size or has another spelling of its path gets 404", async () => {
    for (const path of [
      ...["tile/0/001", "tile/0/001.p/46", "tile/0/002.p/1", "tile/1/000", "tile/1/000.p/2", "tile/2/000.p/1"],
      ...["tile/0/0", "tile/0/000.p/0", "tile/entries/001", "tile/7/000", "tile/0/%30%30%30", "tile/", "nothing"],
    ]) {
      const { status, headers } = await get(path);
      expect([status, headers.get("cache-control")], path).toEqual([404, "no-store"]);
    }
  });

  it("a receipt proves a redemption offline to a verifier that shares no code with the service", async () => {
    const { status, body } = await till.receipt("early");
    expect(status).toBe(200);
    const file = join(files.directory, "early.tlog-proof");
    writeFileSync(file, body);
    const command = ["docs/verify-receipt.mjs", file, tlogKey.text, String(witnessKeys[0]?.text)];
    // Another process verifies the receipt, because this process also runs the service, which would count as paused.
    const verified = await promisify(execFile)(process.execPath, command);
    expect(verified.stderr).toMatch(/^Valid: the log \S+ has this event, [^\n]+\.\n$/);
    expect(JSON.parse(verified.stdout)).toMatchObject({
      eventType: "voucher.instance.redeemed",
      data: { externalRef: "early" },
    });
    expect(await logIndexesOf(0)).toEqual([0, 300]);
    expect((await till.eventReceipt(codeOf(0), 2)).body).toBe(body);
  });

  it("the public proof of an event has no payload, and proves only the recordHash", async () => {
    const proof = await (await proofOf(1, 7)).text();
    expect(proof).not.toContain("extra");
    const { body } = await send("GET", `${api.url}/integrity/events/VoucherInstance/${vouchers[7]?.id}`);
    const [event] = body.events;
    const policy = await parsePolicy((await get("policy")).bytes.toString());
    const proved = await verifyProof(proof, policy, Buffer.from(event.recordHash, "hex"));
    expect([proved.index, event.logIndex]).toEqual([7, 7]);
  });

  it("an event after the checkpoint has no receipt and no logIndex until the next checkpoint", async () => {
    expect((await till.redeem({ code: codeOf(9), externalRef: "late" })).status).toBe(200);
    expect((await till.receipt("late")).status).toBe(409);
    expect(await logIndexesOf(9)).toEqual([9, null]);
    await run();
    expect((await till.receipt("late")).status).toBe(200);
  });

  it("an erased event gets no new receipt, keeps its proof, and counts as intact in log audit", async () => {
    const id = vouchers[9]?.id ?? "";
    await erasePerson(provisioning(servers.db), { by: "voucher", voucherId: id }, null);
    const refused = { status: 410, body: { code: "payload_erased" } };
    expect(await till.receipt("late")).toMatchObject(refused);
    expect(await till.eventReceipt(codeOf(9), 2)).toMatchObject(refused);
    expect((await proofOf(2, 9)).status).toBe(200);
    await run();
    const audit = await onSnapshot(servers.db, (tx) => auditTlog(tx));
    expect(audit).toMatchObject({ problems: [], erased: 1 });
  });

  it("an event is reported as broken, not erased, if the database's owner removed or changed its payload", async () => {
    const lost = "payload = NULL, erased_by = NULL";
    const changes = [lost, "payload = NULL, erased_by = 3", "payload = replace(payload, 'order', 'Order')"];
    await servers.db.query(`
      ALTER TABLE voucher_events DISABLE TRIGGER USER;
      ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload;
      ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_sealed_complete`);
    for (const [index, change] of changes.entries()) {
      const at = 20 + index;
      await till.redeem({ code: codeOf(at), externalRef: `an order ${at}` });
      const event = "voucher_id = $1 AND sequence = 2";
      const { rows } = await servers.db.query(`SELECT payload FROM voucher_events WHERE ${event}`, [vouchers[at]?.id]);
      await servers.db.query(`UPDATE voucher_events SET ${change} WHERE ${event}`, [vouchers[at]?.id]);
      await run();
      const refused = { status: 500, body: { code: "internal_error" } };
      expect(await till.receipt(`an order ${at}`), change).toMatchObject(refused);
      expect(await till.eventReceipt(codeOf(at), 2), change).toMatchObject(refused);
      expect((await proofOf(2, at)).status, change).toBe(200);
      const path = `${api.url}/integrity/events/VoucherInstance/${vouchers[at]?.id}`;
      const { body } = await send("GET", path);
      expect(body.events.map((event: { payloadKept: boolean }) => event.payloadKept)).toEqual([true, false]);
      const page = await (await fetch(`${path}/history`, { headers: { accept: "text/html" } })).text();
      expect(page.includes("Its content is missing or was changed"), change).toBe(!change.includes("erased_by = 3"));
      await servers.db.query(`UPDATE voucher_events SET payload = $2, erased_by = NULL WHERE ${event}`, [
        ...[vouchers[at]?.id, rows[0].payload],
      ]);
    }
  });

  it("a final monthly statement is served once the log has signed it, and its signature verifies offline", async () => {
    const month = "2025-03";
    await bypassTriggers(servers.db, "UPDATE redemptions SET redeemed_at = '2025-03-01' WHERE external_ref = 'early'");
    await closeRedemptions(servers.db);
    const read = async () => (await till.statement(month)).body;
    const notFinal = { final: false, rowsHash: null, note: null, redemptions: 1, amountUsd: 40.25 };
    await until(async () => (await read()).completeUntil === "2025-04-01T00:00:00.000Z");
    expect([await read(), await read()]).toMatchObject([notFinal, notFinal]);
    await run();
    const statement = await read();
    expect(statement).toMatchObject({ final: true, redemptions: 1, amountUsd: 40.25 });
    const headers = { "x-api-key": keys.till.key, accept: "text/csv" };
    const csv = await (await fetch(`${api.url}/partner/statements/${month}`, { headers })).text();
    const policy = `log ${tlogKey.text}\nquorum none\n`;
    await verifyStatement(statement, csv, policy);
    expect(await verifySignedStatement(JSON.stringify(statement), policy)).toEqual(statement);
    const others = {
      "The note is about another statement.": { ...statement, amountUsd: 40.26 },
      "The statement has no note.": { ...statement, note: null },
      "The note is not signed by a log": { ...statement, note: statement.note.replace(/.{9}\n$/, "AAAAAAA==\n") },
    };
    for (const [problem, other] of Object.entries(others))
      await expect(verifySignedStatement(JSON.stringify(other), policy), problem).rejects.toThrow(problem);
    await expect(verifySignedStatement("{}", policy)).rejects.toThrow("is no statement");
    writeFileSync(join(files.directory, "statement.json"), JSON.stringify(statement));
    const [, command = ""] = /```sh\n(jq .*?)```/s.exec(readFileSync("docs/settlement.md", "utf8")) ?? [];
    const shell = { cwd: files.directory, env: { ...process.env, VKEY: tlogKey.text } };
    const { stdout } = await promisify(execFile)("sh", ["-c", command], shell);
    expect(stdout).toContain(`Successfully\nVoucher statement\nmonth ${month}\n`);
    expect(stdout).toContain(`redemptions 1\namountUsd 40.25\nrowsHash ${statement.rowsHash}\n`);
    for (const change of ["note = NULL", "content = content || ' '"])
      await expect(servers.db.query(`UPDATE statements SET ${change}`)).rejects.toThrow("statement is permanent");
    // The deletion has the effect of a backup that contains the redemptions but not the statement.
    await servers.db.query("UPDATE brands SET name = 'Renamed'");
    await bypassTriggers(servers.db, "DELETE FROM statements");
    await read();
    await run();
    const again = await read();
    expect(again).toMatchObject({ final: true, note: statement.note, lines: [{ brand: "Renamed" }] });
  });

  it("an unknown sequence number of a voucher's events has no receipt and no proof", async () => {
    for (const sequence of ["0", "3", "01", "-1", "1.0", "99999999999", "x", "1%00"]) {
      const reply = await till.eventReceipt(codeOf(3), sequence);
      expect([reply.status, reply.body.code], sequence).toEqual([404, "not_found"]);
      const proof = await proofOf(sequence, 3);
      expect([proof.status, (await proof.json()).code], sequence).toEqual([404, "entity_not_found"]);
    }
  });
});

it("operators see each retired log with the number of leaves, time and reason", async () => {
  expect(await openOperatorsPage()).not.toContain("Retired logs");
  await servers.db.query(
    `INSERT INTO log_retirements (origin, next_origin, size, root, last_note, served_note, policy, reason, retired_at)
     SELECT 'vouchers.test/old', t.origin, 5, t.root, '', '', '', 'the <key> leaked', '2026-11-01T12:00:00Z'
       FROM log_tree AS t`,
  );
  expect(await openOperatorsPage()).toMatch(
    /Retired logs .* vouchers\.test\/old 5 leaves 1 November 2026, 12:00:00 UTC the &#60;key&#62; leaked/,
  );
});

async function get(path: string): Promise<{ status: number; headers: Headers; bytes: Buffer }> {
  const response = await fetch(`${api.url}/log/${path}`);
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
}

async function openOperatorsPage(): Promise<string> {
  const authorization = `Basic ${Buffer.from(`zoe:${OPS_TOKEN}`).toString("base64")}`;
  const response = await fetch(`${api.url}/ops/log`, { headers: { accept: "text/html", authorization } });
  expect(response.status).toBe(200);
  return (await response.text()).replaceAll(/<[^>]+>/g, " ").replaceAll(/\s+/g, " ");
}

const proofOf = (sequence: number | string, at: number, headers: Record<string, string> = {}) =>
  fetch(`${api.url}/integrity/events/VoucherInstance/${vouchers[at]?.id}/${sequence}/proof`, { headers });

const logIndexesOf = async (at: number) =>
  (await till.events(codeOf(at))).body.events.map(({ logIndex }: { logIndex: number | null }) => logIndex);
