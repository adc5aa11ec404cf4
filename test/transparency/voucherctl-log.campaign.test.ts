import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { runNode, startNode } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { beginWithBackup, makeTlogFiles, startWitness, tamper, tlogKey } from "../support/log-setup.ts";
import { openTestServers } from "../support/servers.ts";
import { startApi, startWorkers } from "../support/service.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until, untilStarted } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl, useVoucherctl } from "../support/voucherctl.ts";

const { servers, db } = useService({ apis: [], workers: [] });
const voucherctl = useVoucherctl(servers);
const files = makeTlogFiles();
const at = (name: string) => join(files.directory, name);
afterAll(() => files.remove());

describe("a deployment with a log, a witness and a redemption", () => {
  let own: Awaited<ReturnType<typeof startDeployment>>;
  beforeAll(async () => {
    own = await startDeployment();
  });
  afterAll(() => own.close());

  it("log keygen writes a key file that only its owner can read, and overwrites no file", async () => {
    expect(statSync(at("log.key")).mode & 0o777).toBe(0o600);
    const again = await voucherctl.run(["log", "keygen", "--origin", "cli.test/log", "--out", at("log.key")]);
    expect(again).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/exists already/) });
  });

  it("receipt get prints a redemption's receipt, and receipt verify verifies the receipt offline", async () => {
    const got = await voucherctl.run(["receipt", "get", "order-1", "--org", own.partner.organizationId]);
    expect(`${got.stdout}`).toBe(own.receipt);
    const verify = ["receipt", "verify", at("receipt"), "--policy", at("policy")];
    const { exitCode, stdout } = await voucherctl.run(verify);
    expect([exitCode, stdout]).toEqual([
      0,
      expect.stringMatching(/Seen by w.test at .*\n.*"externalRef":"order-1".*"sandbox":true/),
    ]);
    writeFileSync(at("broken"), own.receipt.replace("index 1", "index 0"));
    const broken = await voucherctl.run(verify.with(2, at("broken")));
    expect(broken).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/does not lead to the checkpoint's root/),
    });
    expect((await voucherctl.run([...verify.slice(0, -1), at("missing")])).exitCode).toBe(2);
  });

  it("log monitor verifies a receipt, continues from its saved checkpoint, and exits 69 for a silent log", async () => {
    const watch = ["log", "monitor", `${own.api.url}/log`, "--policy", at("policy"), "--state", at("seen"), "--keep"];
    expect(await voucherctl.json(...watch, "--receipt", at("receipt"))).toMatchObject({
      size: 2,
      before: 0,
      receipts: 1,
    });
    expect((await voucherctl.run(watch)).stdout).toMatch(
      /continues the 2 seen before.*A witness has cosigned it \d+ s ago\.$/m,
    );
    expect(await voucherctl.run(watch.with(2, "http://127.0.0.1:1/log"))).toMatchObject({
      exitCode: 69,
      stderr: "http://127.0.0.1:1/log does not answer.\n",
    });
  });

  it("witness serve refuses a port that another process uses", async () => {
    const taken = ["witness", "serve", "--key", at("w.key"), "--state", at("w2.json"), "--log", own.vkey, "--port"];
    expect(await voucherctl.run([...taken, new URL(own.api.url).port])).toMatchObject({
      exitCode: 1,
      stderr: "Another process listens on this port.\n",
    });
  });

  it("log audit needs the database, and log audit --url needs a policy instead of the database", async () => {
    expect(await voucherctl.json("log", "audit")).toMatchObject({ leaves: 2, events: 2, problemCount: 0 });
    const served = ["log", "audit", "--url", own.api.url, "--policy", at("policy"), "--voucher", own.voucherId];
    // The command must not need a database, so DATABASE_URL names a server that does not respond.
    const elsewhere = { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" };
    const audited = await voucherctl.run([...served, "--json"], elsewhere);
    expect(JSON.parse(audited.stdout)).toEqual({
      origin: "cli.test/log",
      leaves: 2,
      tiles: 1,
      events: 2,
      waiting: 0,
      problemCount: 0,
      problems: [],
      cosignedAge: expect.any(Number),
    });
    const untrusted = await voucherctl.run(served.slice(0, 4), elsewhere);
    expect(untrusted).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/--url needs --policy/) });
  });

  it("log recover refuses an export that has no more leaves than the database", async () => {
    expect(await voucherctl.json("log", "backfill")).toEqual({ events: 0 });
    expect(await voucherctl.json("log", "export", "--to", at("export"))).toEqual({ size: 2 });
    expect(readFileSync(at("export/checkpoint"), "utf8")).toContain("cli.test/log\n2\n");
    const recover = await until(async () => {
      const ended = await voucherctl.run(["log", "recover", "--from", at("export")], own.env);
      // Repeats the command while the worker holds the lock of the tree.
      return ended.stderr.includes("is in use") ? null : ended;
    });
    expect(recover).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/has 2 leaves, the copy's checkpoint 2/),
    });
  });

  it("log retire refuses while a worker of the log runs, and exports nothing", async () => {
    await voucherctl.json("log", "keygen", "--origin", "cli.test/log2", "--out", at("log2.key"));
    const next = { ...own.env, LOG_KEY_FILE: at("log2.key"), LOG_POLICY: "", REDIS_URL: servers.redisUrl };
    const retire = ["log", "retire", "cli.test/log", "--reason", "key leaked", "--to", at("retired")];
    expect(await voucherctl.run(retire, next)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/A worker of the queue log is running/),
    });
    expect(existsSync(at("retired"))).toBe(false);
  });
});

/** Starts a deployment with its first key and its own witness, and redeems a sandbox's voucher. */
async function startDeployment() {
  const { vkey } = await voucherctl.json("log", "keygen", "--origin", "cli.test/log", "--out", at("log.key"));
  const witness = await voucherctl.json("witness", "keygen", "--name", "w.test", "--out", at("w.key"));
  const serve = ["src/cli/main.ts", "witness", "serve", "--key", at("w.key"), "--state", at("w.json"), "--log", vkey];
  const serving = startNode([...serve, "--port", "0", "--json"], {});
  const { url } = JSON.parse(await untilStarted(() => serving.output()));
  writeFileSync(at("policy"), `log ${vkey}\nwitness w ${witness.vkey} ${url}\nquorum w\n`);
  const env = { LOG_KEY_FILE: at("log.key"), LOG_ANCHOR: `file:${at("log.anchor")}`, LOG_POLICY: at("policy") };

  const before = await voucherctl.run(["log", "checkpoint"], env);
  expect(before).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/has no log/) });
  expect((await voucherctl.run(["log", "init"], env)).stdout).toMatch(/^The log cli.test\/log begins\./);

  const api = await startApi(servers);
  await startWorkers(servers);
  await startWorkers(servers, { WORKER_QUEUES: "log", DATABASE_URL: servers.logUrl, LOG_INTERVAL_MS: "100", ...env });
  const partner = await makePartner(db, { sandbox: true });
  const till = partnerClient(api.url, (await makeKey(db, partner.organizationId)).key);
  const [voucher] = await issueVouchers(db, partner, 1);
  expect((await till.redeem({ code: voucher?.code, externalRef: "order-1" })).status).toBe(200);
  const receipt = await until(async () =>
    (await till.receipt("order-1")).status === 200 ? till.receipt("order-1") : null,
  );
  writeFileSync(at("receipt"), receipt.body);
  const close = async () => {
    serving.child.kill("SIGTERM");
    await serving.ended;
  };
  return { vkey, env, api, partner, voucherId: String(voucher?.id), receipt: receipt.body, close };
}

it("log audit detects by an anchor file or a witness that the database was set back with its checkpoint", async () => {
  const own = await openTestServers();
  const command = openVoucherctl(own);
  const log = makeTlogFiles();
  onTestFinished(async () => {
    await own.close();
    log.remove();
  });
  const witness = await startWitness(own, log);
  log.setWitnesses([witness.url]);
  const restore = await beginWithBackup(own, log, await makePartner(own.db), { kept: 4, lost: 3 });
  const audit = async (env = {}) => {
    const { exitCode, stdout } = await command.run(["log", "audit", "--json"], env);
    return { exitCode, ...JSON.parse(stdout) };
  };
  const anchored = { LOG_ANCHOR: log.env.LOG_ANCHOR };
  expect(await audit(anchored)).toMatchObject({ exitCode: 0, anchors: 1, witnesses: 1, problems: [] });
  await restore();
  const byWitness = "the witness w2.test has 7 leaves, the tree 4";
  const byAnchor = `the anchor ${log.anchor} has 7 leaves, the tree 4`;
  expect(await audit(anchored)).toMatchObject({ exitCode: 1, problems: [byAnchor, byWitness] });
  expect(await audit()).toMatchObject({ exitCode: 1, anchors: 0, problems: [byWitness] });
  await witness.close();
  expect(await audit(anchored)).toMatchObject({ exitCode: 1, silentWitnesses: 1, problems: [byAnchor] });
  expect(await audit()).toMatchObject({ exitCode: 0, witnesses: 0, silentWitnesses: 1 });

  for (const [text, problem] of [
    [
      await signCheckpoint(tlogKey, { size: 3, root: Buffer.alloc(32, 7) }),
      `the anchor ${log.anchor} has another root`,
    ],
    ["garbage", `the anchor ${log.anchor} is not a checkpoint of this log`],
    [null, `the anchor ${log.anchor} is missing`],
  ] as const) {
    if (text === null) rmSync(log.anchor);
    else writeFileSync(log.anchor, text);
    expect(await audit(anchored)).toMatchObject({ exitCode: 1, problems: [problem] });
  }
  await tamper(own.db, "UPDATE log_published SET note = replace(note, E'\\n4\\n', E'\\n3\\n')");
  const forged = "the served checkpoint is not one that this log has signed";
  expect(await audit()).toMatchObject({ exitCode: 1, problems: [forged] });
});

it.each([
  ["without a key", null, {}, /LOG_KEY_FILE is not set/],
  ["with a key that others can read", 0o644, {}, /Other users can read LOG_KEY_FILE/],
  ["with a key and without an anchor", 0o600, {}, /^LOG_KEY_FILE requires .* set LOG_ANCHOR\.$/m],
  ["under another name", 0o600, { LOG_ORIGIN: "other.test/log" }, /LOG_ORIGIN is other.test\/log/],
])("a worker for the transparency log does not start %s", async (_, mode, more, reason) => {
  chmodSync(files.env.LOG_KEY_FILE, mode ?? 0o600);
  const { exitCode, stderr } = await runNode(["workers/main.ts"], {
    BASE_URL: "https://vouchers.test",
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    WORKER_QUEUES: "log",
    ...(mode !== null && { LOG_KEY_FILE: files.env.LOG_KEY_FILE }),
    ...more,
  });
  expect(exitCode).not.toBe(0);
  expect(stderr).toMatch(reason);
});
