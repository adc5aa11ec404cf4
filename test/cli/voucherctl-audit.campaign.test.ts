import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { createOperator } from "../../src/acts/operator/create.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { buildVoucherctl } from "../../src/local/voucherctl.ts";
import { makeNextTlogFiles, makeTlogFiles, NEXT_ORIGIN, ORIGIN, openSequencer, tamper } from "../support/log-setup.ts";
import { makeContract, newUser } from "../support/marketplace.ts";
import { findBatchOf } from "../support/recorded.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers } from "../support/servers.ts";
import { issueVouchers, makePartner, provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl, useVoucherctl } from "../support/voucherctl.ts";
import { CHANGES, IDS, idOf, MOMENT, type State } from "./voucherctl-changes.ts";

const { db, servers, partner, issue } = useService({ apis: [], workers: [] });
const voucherctl = useVoucherctl(servers);

/** Commands that only read. */
const READS = [
  ...["key list --org {org}", "webhook list --org {org}", "webhook deliveries {webhook}", "batch show {batch}"],
  ...["voucher show {code} --org {org}", "voucher find --ref order-1", "voucher history {voucher}"],
  ...["chain verify --all", "audit list", "erasure list", "redemption list --org {org}"],
  ...["org", "brand", "product", "batch", "listing", "contract", "link", "operator"].map((noun) => `${noun} list`),
];

/** Commands that use no database. */
const ELSEWHERE = ["voucherctl completion", "user token", "sandbox check"];

/** Commands for a whole server. test/acts/roles and durability.campaign.test.ts test them. */
const ON_THE_SERVER = ["db roles", "db check"];

/** Commands that change the log. Tests below run them with a log's key. */
const LOG_CHANGES = ["log init", "log backfill", "log recover", "log retire"];

/** Commands that need servers or files that this test does not make. Their own tests run them. */
const WITH_MORE = [
  ...["audit", "checkpoint", "export", "keygen", "monitor"].map((verb) => `log ${verb}`),
  ...["receipt get", "receipt verify", "witness keygen", "witness serve", "person erase", "erasure replay"],
  "statement verify",
  ...["queue shards", "queue drop-shards", "webhook test", "alert test", "person show"],
  // `batch export` reads codes, so it writes an audit entry although it changes nothing.
  ...["export", "extend", "suspend", "resume"].map((verb) => `batch ${verb}`),
];

/** The values that replace the names in braces in the commands. */
let made: Record<string, string>;

beforeAll(async () => {
  const [user, offeree] = [newUser(), newUser()];
  const { id: voucher, code } = await issue();
  const { rows } = await db.query(
    "SELECT id AS deployment, system_identifier::text AS system, database_oid::text AS oid FROM deployment",
  );
  const webhook = newId("whk");
  await db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://shop.example.com/')",
    [webhook, (await makePartner(db)).organizationId],
  );
  made = {
    ...rows[0],
    org: partner.organizationId,
    brand: partner.brandId,
    product: partner.productId,
    user,
    offeree,
    voucher,
    code,
    webhook,
    batch: await findBatchOf(db, voucher),
    contract: await makeContract(db, partner.brandId, newUser(), "Active"),
    offered: await makeContract(db, partner.brandId, offeree, "Offered"),
  };
});

it("this file tests every voucherctl command, or names the test file that does", () => {
  const leavesOf = (command: Command): Command[] =>
    command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
  const all = leavesOf(buildVoucherctl()).map((command) => `${command.parent?.name()} ${command.name()}`);
  const here = [...Object.values(CHANGES).flatMap((changes) => changes.map(({ line }) => line)), ...READS];
  const elsewhere = [...ELSEWHERE, ...ON_THE_SERVER, ...LOG_CHANGES, ...WITH_MORE];
  expect([...new Set([...here.map(commandOf), ...elsewhere])].sort()).toEqual(all.sort());
});

it.each(
  Object.entries(CHANGES),
)("each change of %s prints its result and adds one audit entry", async (entity, changes) => {
  let id = fill(IDS[entity]);
  let state = null as State | null;
  for (const { line: pattern, printed, given, from, to, sql } of changes) {
    const line = fill(pattern, { id });
    if (sql !== undefined) await db.query(fill(sql, { id }));
    if (to !== null) {
      await db.query("ALTER TABLE audit_entries ADD CONSTRAINT full_up CHECK (false) NOT VALID");
      await voucherctl
        .fails(1, /full_up/, line)
        .finally(() => db.query("ALTER TABLE audit_entries DROP CONSTRAINT full_up"));
    }
    const [last, rows] = [await lastEntryId(), await dumpRows(db)];
    const result = await voucherctl.json(line);
    const usual = id === undefined ? { id: expect.stringMatching(/^[a-z]{3}_[0-9a-z]{26}$/) } : expect.anything();
    expect(result, line).toStrictEqual(fill(printed, { id }) ?? usual);
    if (to === null) {
      expect(await dumpRows(db), line).toEqual(rows);
      continue;
    }
    // A link's code is a secret, so the audit entry has its hash.
    id ??= result.id ?? createHash("sha256").update(result.code).digest("hex");
    const before: State | null = state === null && from === undefined ? null : { ...state, ...fill<State>(from ?? {}) };
    state = { ...before, ...fill<State>(to) };
    const names = Array.from(line.matchAll(/--([a-z-]+)/g), ([, name = ""]) =>
      name.replace(/-./g, (text) => text.slice(1).toUpperCase()),
    );
    const entries = await entriesAfter(last);
    expect(entries, line).toStrictEqual([
      {
        id: expect.any(Number),
        at: expect.any(Date),
        database_role: new URL(servers.adminUrl).username,
        os_user: userInfo().username,
        host: hostname(),
        by: "command",
        command: commandOf(line),
        arguments: fill(given, { id }) ?? expect.anything(),
        entity_type: entity.split(" ")[0],
        entity_id: id,
        before,
        after: state,
      },
    ]);
    expect(Object.keys(entries[0].arguments), line).toEqual(expect.arrayContaining(names));
  }
});

it.each(READS)("voucherctl %s writes nothing", async (line) => {
  const before = await dumpRows(db);
  await voucherctl.json(fill(line));
  expect(await dumpRows(db)).toEqual(before);
});

it("no audit entry contains a key, a voucher's code, a link or the hash of a secret", async () => {
  const made = await voucherctl.json(`key create --org ${partner.organizationId} --scope voucher.read`);
  const rotated = await voucherctl.json(`key rotate ${made.id}`);
  const { code } = await voucherctl.json(fill("link create --contract {contract} --product {product}"));
  // The code as a user may type it. The command normalises it to the stored code.
  const typed = (await issue()).code.toLowerCase().replaceAll("-", " ");
  await voucherctl.json(`voucher void '${typed}' --org ${partner.organizationId}`);
  const { rows } = await db.query("SELECT string_agg(a::text, ' ') AS text FROM audit_entries AS a");
  const { rows: codes } = await db.query("SELECT code, code_key FROM vouchers");
  const { rows: hashes } = await db.query("SELECT encode(secret_hash, 'hex') AS hash FROM api_key_secrets");
  const secrets = [made.key, rotated.key, code, typed, ...codes.flatMap((row) => [row.code, row.code_key])];
  const found = [...secrets.map((secret) => secret.replace(/^pvk_/, "")), ...hashes.map(({ hash }) => hash)].filter(
    (secret) => rows[0].text.includes(secret),
  );
  expect(found).toEqual([]);
});

it("audit list prints the requested number of entries, newest first, with every field", async () => {
  const { id } = await voucherctl.json("org create --name First");
  await voucherctl.json(`brand create --org ${id} --name Then`);
  const { acts } = await voucherctl.json("audit list --limit 2");
  const row = {
    id: expect.any(Number),
    at: MOMENT,
    databaseRole: new URL(servers.adminUrl).username,
    osUser: userInfo().username,
    host: hostname(),
    by: "command",
    before: null,
  };
  const brand = { entityType: "Brand", entityId: idOf("brd"), arguments: { org: id, name: "Then" } };
  const after = { organizationId: id, name: "Then", colour: null, logo: null, createdAt: MOMENT };
  expect(acts).toStrictEqual([
    { ...row, command: "brand create", ...brand, after },
    {
      ...row,
      command: "org create",
      arguments: { name: "First" },
      entityType: "Organization",
      entityId: id,
      after: { name: "First", sandbox: false, timeZone: "UTC", createdAt: MOMENT },
    },
  ]);
  expect(acts[0].id).toBeGreaterThan(acts[1].id);
  expect((await voucherctl.json("audit list")).acts).toHaveLength(20);
});

it("audit list --entity prints only one entity's entries, or none if the entity never changed", async () => {
  const { id } = await voucherctl.json(`key create --org ${partner.organizationId} --scope voucher.read`);
  for (const verb of ["rotate", "revoke"]) await voucherctl.json(`key ${verb} ${id}`);
  const { acts } = await voucherctl.json(`audit list --entity ${id}`);
  expect(acts.map(({ command }: { command: string }) => command)).toEqual(["key revoke", "key rotate", "key create"]);
  expect(acts[0].before).toEqual(acts[1].after);
  expect(acts[1].before).toEqual(acts[2].after);
  expect(await voucherctl.json("audit list --entity key_none")).toEqual({ acts: [] });
});

it("audit list --user prints an operator's entries, and entries made with OPS_TOKEN under that name", async () => {
  for (const [user, by] of [
    ["ada", "operator"],
    ["shared: ada", "shared"],
  ] as const) {
    const audited = auditedCommand("operator create", {}, { user, by, host: "console" });
    const values = { name: `by ${by}`, role: "viewer" as const, expires: null };
    await createOperator.run({ ...provisioning(db), audited }, "", values);
  }
  const { acts } = await voucherctl.json("audit list --user ada");
  expect(acts.map(({ osUser, by }: { osUser: string; by: string }) => [osUser, by])).toEqual([
    ["shared: ada", "shared"],
    ["ada", "operator"],
  ]);
  const { stdout } = await voucherctl.run("audit list --user ada");
  expect(stdout).toMatch(/^\S+ \S+ +shared: ada@console \(shared\) +\w+ \w+ /m);
  expect(await voucherctl.json("audit list --user nemo")).toEqual({ acts: [] });
});

it("voucherctl log writes one audit entry for each change of the log, and none if it changes nothing", async () => {
  const log = await openLog();
  await issueVouchers(log.own.db, await makePartner(log.own.db), 3);
  await beginLog(log);
  await fillLog(log);
  const published = await recoverLog(log);
  await retireLog(log, published);
});

type OwnLog = Awaited<ReturnType<typeof openLog>>;

/** Opens a database and the files of its log, only for one test. */
async function openLog() {
  const own = await openTestServers();
  const files = makeTlogFiles();
  const ctl = openVoucherctl(own);
  onTestFinished(async () => {
    await own.close();
    files.remove();
  });
  const entriesOf = async () =>
    (
      await own.db.query(
        "SELECT command, arguments, entity_type, entity_id, before, after FROM audit_entries ORDER BY id",
      )
    ).rows;
  /** Runs a command, and returns the audit entries that the command wrote. */
  const entriesBy = async (...args: string[]) => {
    const before = (await entriesOf()).length;
    const ended = await ctl.run([...args, "--json"], files.env);
    return { exitCode: ended.exitCode, entries: (await entriesOf()).slice(before) };
  };
  return { own, files, ctl, entriesOf, entriesBy };
}

const EMPTY_LOG = { size: 0, root: createHash("sha256").digest("base64") };
const NO_ENTRY = { exitCode: 0, entries: [] };

const logEntry = (command: string, given: State, entityId: string, before: State, after: State) => ({
  exitCode: 0,
  entries: [{ command, arguments: given, entity_type: "Log", entity_id: entityId, before, after }],
});

async function beginLog({ files: { anchor }, entriesBy }: OwnLog): Promise<void> {
  const begun = { ...EMPTY_LOG, anchorsWritten: [anchor] };
  expect(await entriesBy("log", "init")).toEqual(logEntry("log init", {}, ORIGIN, { anchorsWritten: [] }, begun));
  expect(await entriesBy("log", "init")).toEqual(NO_ENTRY);
  rmSync(anchor);
  expect(await entriesBy("log", "init")).toEqual({ exitCode: 1, entries: [] });
  expect(await entriesBy("log", "init", "--accept-anchor")).toEqual(
    logEntry("log init", { acceptAnchor: true }, ORIGIN, { ...EMPTY_LOG, anchorsWritten: [] }, begun),
  );
}

/** Removes the leaf batches of all events, so that `log backfill` adds them again. */
async function fillLog({ own, entriesBy }: OwnLog): Promise<void> {
  expect(await entriesBy("log", "backfill")).toEqual(NO_ENTRY);
  await tamper(own.db, "UPDATE voucher_events SET log_slot = NULL", "DELETE FROM log_batches");
  expect(await entriesBy("log", "backfill")).toEqual(
    logEntry("log backfill", {}, "backfill", { events: 0 }, { events: 3 }),
  );
}

/** Publishes the log, deletes its published data and recovers it from a copy. Returns the published state. */
async function recoverLog({ own, files, entriesBy }: OwnLog): Promise<State> {
  expect(await openSequencer(own, files).run()).toMatchObject({ published: 3 });
  const copy = join(files.directory, "copy");
  expect(await entriesBy("log", "export", "--to", copy)).toEqual(NO_ENTRY);
  expect(await entriesBy("log", "recover", "--from", copy)).toEqual({ exitCode: 1, entries: [] });
  const { rows } = await own.db.query("SELECT encode(root, 'base64') AS root FROM log_tree");
  const published = { size: 3, root: rows[0].root };
  await tamper(
    own.db,
    ...["log_bundles", "log_tiles", "log_published", "log_batches"].map((table) => `DELETE FROM ${table}`),
    `UPDATE log_tree SET size = 0, root = decode('${EMPTY_LOG.root}', 'base64')`,
  );
  expect(await entriesBy("log", "recover", "--from", copy)).toEqual(
    logEntry("log recover", { from: copy }, ORIGIN, EMPTY_LOG, published),
  );
  return published;
}

/** Retires the log twice. The second run only exports the log again. */
async function retireLog({ own, files, ctl, entriesOf }: OwnLog, published: State): Promise<void> {
  await openSequencer(own, files).run();
  const next = makeNextTlogFiles();
  onTestFinished(() => next.remove());
  const given = { reason: "the key leaked", to: join(files.directory, "retired") };
  const args = ["log", "retire", ORIGIN, "--reason", given.reason, "--to", given.to];
  const before = (await entriesOf()).length;
  expect((await ctl.run(args, next.env)).exitCode).toBe(78);
  const owner = { ...next.env, DATABASE_URL: own.ownerUrl };
  for (const _ of ["retires it", "exports it again"]) expect((await ctl.run(args, owner)).exitCode).toBe(0);
  const retired = { retiredFor: NEXT_ORIGIN };
  const { entries } = logEntry("log retire", { origin: ORIGIN, ...given }, ORIGIN, published, retired);
  expect((await entriesOf()).slice(before)).toEqual(entries);
}

const entriesAfter = async (id: number) =>
  (await db.query("SELECT * FROM audit_entries WHERE id > $1 ORDER BY id", [id])).rows;

const lastEntryId = async (): Promise<number> =>
  (await db.query("SELECT coalesce(max(id), 0) AS id FROM audit_entries")).rows[0].id;

/** Replaces the names in braces in texts, lists and objects. */
function fill<T>(value: T, more: State = {}): T {
  if (typeof value === "string") {
    return value.replace(/\{(\w+)\}/g, (_, name: string) => String({ ...made, ...more }[name])) as T;
  }
  if (Array.isArray(value)) return value.map((item) => fill(item, more)) as T;
  if (typeof value !== "object" || value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, more)])) as T;
}

const commandOf = (line: string) => line.split(" ").slice(0, 2).join(" ");
