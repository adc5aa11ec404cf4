import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { expect, it, onTestFinished } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import type { ContractStatus } from "../../src/domain/audience.ts";
import { newId } from "../../src/domain/ids.ts";
import { makeLogFiles, makeNextLogFiles, NEXT_ORIGIN, ORIGIN, openSequencer, tamper } from "../support/log-setup.ts";
import { makeContract, makeMember, newUser } from "../support/marketplace.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers } from "../support/servers.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl, useVoucherctl } from "../support/voucherctl.ts";

const { db, servers, partner, issue } = useService({ apis: [], workers: [] });
const voucherctl = useVoucherctl(servers);

type State = Record<string, unknown>;

const entriesAfter = async (id: number) =>
  (await db.query("SELECT * FROM audit_entries WHERE id > $1 ORDER BY id", [id])).rows;
const lastEntryId = async (): Promise<number> =>
  (await db.query("SELECT coalesce(max(id), 0) AS id FROM audit_entries")).rows[0].id;
const batchOf = async (voucherId: string | undefined): Promise<string> =>
  (await db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucherId])).rows[0].batch_id;

/** Every row but the audit entries. */
async function dumpOthers() {
  const { audit_entries, ...others } = await dumpRows(db);
  return { ...others, clock: (await db.query("SELECT clock_trusted_at FROM redemptions_closed")).rows };
}

const MOMENT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const idOf = (prefix: string) => expect.stringMatching(new RegExp(`^${prefix}_[0-9a-z]{26}$`));

/** A command that must write an audit entry: what it prints, and the expected entry. */
interface ChangeCase {
  line: string;
  printed: unknown;
  given: State;
  entityType: string;
  /** Null for the `id` that the command prints. */
  entityId: string | null;
  before: State | null;
  after: State;
}

const keyState = (changes: State = {}) => ({
  organizationId: partner.organizationId,
  label: null,
  scopes: ["voucher.read", "voucher.redeem"],
  allowIps: [],
  createdAt: MOMENT,
  expiresAt: null,
  revokedAt: null,
  secretsExpireAt: [null],
  ...changes,
});

const contractState = (user: string, changes: State = {}) => ({
  brandId: partner.brandId,
  userId: user,
  status: "Offered",
  endsAt: null,
  offeredAt: MOMENT,
  changedAt: MOMENT,
  ...changes,
});

const webhookState = (changes: State = {}) => ({
  organizationId: partner.organizationId,
  url: "https://shop.example.com/",
  description: "",
  eventTypes: [],
  enabled: true,
  disabledReason: null,
  disabledAt: null,
  secretVersion: 1,
  previousSecretUntil: null,
  createdAt: MOMENT,
  ...changes,
});

const batchState = (changes: State = {}) => ({
  productId: partner.productId,
  audience: "OpenToAll",
  voucherCount: 2,
  validUntil: "2099-12-31T00:00:00.000Z",
  retailPriceUsd: 50,
  priceUsd: 40.25,
  benefitMonths: 6,
  usageUnitLabel: "visit",
  createdAt: MOMENT,
  windows: [],
  windowsOpenAt: [],
  windowsCloseAt: [],
  ...changes,
});

async function makeWebhook(): Promise<string> {
  const { organizationId } = await makePartner(db);
  const id = newId("whk");
  await db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://shop.example.com/')",
    [id, organizationId],
  );
  return id;
}

const DISABLED = { enabled: false, disabledReason: "operator", disabledAt: MOMENT };

/** Changes an existing endpoint, which is disabled by an operator if `before` says so. */
async function webhookChange(verb: string, before: State, after: State, printed: unknown): Promise<ChangeCase> {
  const id = await makeWebhook();
  if (before.enabled === false) {
    await db.query(
      "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'operator', disabled_at = now() WHERE id = $1",
      [id],
    );
  }
  const organizationId = idOf("org");
  return {
    line: `webhook ${verb} ${id}`,
    printed,
    given: { id },
    entityType: "WebhookEndpoint",
    entityId: id,
    before: webhookState({ organizationId, ...before }),
    after: webhookState({ organizationId, ...after }),
  };
}

/** Changes the status of an existing contract. */
async function contractMove(verb: string, from: ContractStatus, to: ContractStatus): Promise<ChangeCase> {
  const user = newUser();
  const id = await makeContract(db, partner.brandId, user, from);
  return {
    line: `contract ${verb} ${id}`,
    printed: { id, status: to },
    given: { id },
    entityType: "ReferrerContract",
    entityId: id,
    before: contractState(user, { status: from }),
    after: contractState(user, { status: to }),
  };
}

/** Changes the one row that identifies the database as this deployment's. */
async function deploymentChange(verb: string, before: State, after: State): Promise<ChangeCase> {
  const { rows } = await db.query(
    'SELECT id, system_identifier::text AS "systemIdentifier", database_oid::text AS "databaseOid" FROM deployment',
  );
  return {
    line: `db ${verb}`,
    printed: expect.anything(),
    given: {},
    entityType: "Deployment",
    entityId: rows[0].id,
    before: { ...rows[0], ...before },
    after: { ...rows[0], ...after },
  };
}

/** Creates an entity whose id has the given prefix. */
const creation = (prefix: string, entityType: string, line: string, given: State, after: State): ChangeCase => ({
  line,
  printed: { id: idOf(prefix) },
  given,
  entityType,
  entityId: null,
  before: null,
  after: { ...after, createdAt: MOMENT },
});

/** Every command that changes something. */
const CHANGES: Record<string, () => Promise<ChangeCase>> = {
  "org create": async () =>
    creation(
      "org",
      "Organization",
      "org create --name '  Café Größenwahn '",
      { name: "Café Größenwahn" },
      {
        name: "Café Größenwahn",
        sandbox: false,
      },
    ),
  "webhook create": async () => {
    const [org, url] = [partner.organizationId, "https://shop.example.com/"];
    const line = `webhook create --org ${org} --url ${url} --event-type reservation.expired`;
    const eventTypes = ["reservation.expired"];
    return {
      ...creation("whk", "WebhookEndpoint", line, { org, url, eventType: eventTypes }, webhookState({ eventTypes })),
      printed: expect.objectContaining({ id: idOf("whk"), secret: expect.stringMatching(/^whsec_/) }),
    };
  },
  "webhook disable": () => webhookChange("disable", {}, DISABLED, expect.anything()),
  "webhook enable": () => webhookChange("enable", DISABLED, {}, expect.anything()),
  "webhook rotate": () =>
    webhookChange("rotate", {}, { secretVersion: 2, previousSecretUntil: MOMENT }, expect.anything()),
  "webhook replay": async () => {
    const change = await webhookChange("replay", { replayed: 0 }, { replayed: 1 }, expect.anything());
    await db.query(
      `INSERT INTO webhook_deliveries (endpoint_id, event_id, voucher_id, sequence, event_type, position, state, created_at, finished_at)
       VALUES ($1, 'vch_x-2', 'vch_x', 2, 'voucher.instance.voided', 1, 'Delivered', now(), now())`,
      [change.entityId],
    );
    return { ...change, line: `${change.line} --event-id vch_x-2`, given: { ...change.given, eventId: ["vch_x-2"] } };
  },
  "brand create": async () => {
    const org = partner.organizationId;
    const after = { organizationId: org, name: "Second" };
    return creation("brd", "Brand", `brand create --org ${org} --name Second`, { org, name: "Second" }, after);
  },
  "product create": async () => {
    const [brand, key] = [partner.brandId, newUser("product")];
    const prices = { retailPriceUsd: 9999999999.99, priceUsd: 0.01 };
    const same = { key, name: "Day pass", type: "Service", ...prices, benefitMonths: 12, usageUnitLabel: "entry" };
    return creation(
      ...(["prd", "Product"] as const),
      `product create --brand ${brand} --key ${key} --name 'Day pass' --type Service --retail-price-usd 9999999999.99 --price-usd 0.01 --benefit-months 12 --usage-unit-label entry`,
      ...[
        { brand, ...same },
        { brandId: brand, ...same },
      ],
    );
  },
  "key create": async () => {
    const org = partner.organizationId;
    const [label, expires] = ["till 1", "2099-01-01T00:00:00.000Z"];
    const line = `key create --org ${org} --scope voucher.read --allow-ip 192.0.2.0/24 --expires 2099-01-01 --label 'till 1'`;
    const given = { org, scope: ["voucher.read"], allowIp: ["192.0.2.0/24"], expires, label };
    const after = { scopes: ["voucher.read"], allowIps: ["192.0.2.0/24"], expiresAt: expires, label };
    return {
      ...creation("key", "ApiKey", line, given, keyState(after)),
      printed: { id: idOf("key"), key: expect.stringMatching(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/) },
    };
  },
  "key rotate": async () => {
    const { id } = await makeKey(db, partner.organizationId);
    return {
      line: `key rotate ${id} --grace 2h`,
      printed: { id, key: expect.stringMatching(/^pvk_/), oldSecretsUntil: MOMENT },
      given: { id, grace: 7_200_000 },
      entityType: "ApiKey",
      entityId: id,
      before: keyState(),
      after: keyState({ secretsExpireAt: [MOMENT, null] }),
    };
  },
  "key revoke": async () => {
    const { id } = await makeKey(db, partner.organizationId);
    return {
      line: `key revoke ${id}`,
      printed: { id, revoked: true },
      given: { id },
      entityType: "ApiKey",
      entityId: id,
      before: keyState(),
      after: keyState({ revokedAt: MOMENT }),
    };
  },
  "batch issue": async () => {
    const product = partner.productId;
    const line = `batch issue --product ${product} --count 3 --valid-until 2099-12-31 --claim --buy --closes-at 2099-06-30T02:00:00+02:00`;
    const closesAt = "2099-06-30T00:00:00.000Z";
    const windows = { windows: ["buy", "claim"], windowsOpenAt: [null, null], windowsCloseAt: [closesAt, closesAt] };
    const given = { product, count: 3, audience: "OpenToAll", claim: true, buy: true, closesAt };
    return {
      ...creation("bat", "Batch", line, { ...given, validUntil: "2099-12-31T00:00:00.000Z" }, batchState(windows)),
      printed: { id: idOf("bat"), count: 3, firstSerial: 1, lastSerial: 3 },
      after: batchState({ ...windows, voucherCount: 3 }),
    };
  },
  "voucher void": async () => {
    const { id, code } = await issue();
    const org = partner.organizationId;
    const active = { organizationId: org, batchId: await batchOf(id), serial: 1, redeemedAt: null };
    return {
      line: `voucher void ${code} --org ${org} --reason 'printed twice'`,
      printed: { id, status: "Voided" },
      given: { org, reason: "printed twice" },
      entityType: "VoucherInstance",
      entityId: id,
      before: { ...active, status: "Active", lastSequence: 1 },
      after: { ...active, status: "Voided", lastSequence: 2 },
    };
  },
  "batch void": async () => {
    const [voucher] = await issueVouchers(db, partner, 2, { validUntil: new Date("2099-12-31T00:00:00Z") });
    const id = await batchOf(voucher?.id);
    return {
      line: `batch void ${id} --reason 'printed twice'`,
      printed: { voided: 2, alreadyFinal: 0 },
      given: { id, reason: "printed twice" },
      entityType: "Batch",
      entityId: id,
      before: batchState({ vouchersVoided: 0 }),
      after: batchState({ vouchersVoided: 2 }),
    };
  },
  "member add": async () => {
    const [org, user] = [partner.organizationId, newUser()];
    await makeMember(db, org, user, "employee");
    return {
      line: `member add --org ${org} --user ${user} --role owner`,
      printed: { organizationId: org, user, role: "owner" },
      given: { org, user, role: "owner" },
      entityType: "Member",
      entityId: `${org}/${user}`,
      before: { role: "employee", createdAt: MOMENT },
      after: { role: "owner", createdAt: MOMENT },
    };
  },
  "contract offer": async () => {
    const [brand, user, endsAt] = [partner.brandId, newUser(), "2099-06-30T10:00:00.000Z"];
    const line = `contract offer --brand ${brand} --user ${user} --ends-at 2099-06-30T12:00:00+02:00`;
    const { after, ...change } = creation("ctr", "ReferrerContract", line, { brand, user, endsAt }, {});
    return { ...change, after: contractState(user, { endsAt }) };
  },
  "contract accept": () => contractMove("accept", "Offered", "Active"),
  "contract decline": () => contractMove("decline", "Offered", "Declined"),
  "contract end": () => contractMove("end", "Active", "Ended"),
  "link create": async () => {
    const { productId, brandId } = partner;
    const contract = await makeContract(db, brandId, newUser());
    const line = `link create --contract ${contract} --product ${productId}`;
    const after = { contractId: contract, productId, brandId };
    return {
      ...creation("lnk", "ReferralLink", line, { contract, product: productId }, after),
      printed: { code: expect.stringMatching(/^[0-9a-hjkmnp-tv-z]{12}$/) },
    };
  },
  "listing create": async () => {
    const batch = await batchOf((await issue()).id);
    return creation("lst", "Listing", `listing create --batch ${batch}`, { batch }, { batchId: batch });
  },
  "db trust-clock": () =>
    deploymentChange(
      "trust-clock",
      { closedUntil: MOMENT, trustedAt: null },
      { closedUntil: MOMENT, trustedAt: MOMENT },
    ),
  "db adopt": () => deploymentChange("adopt", {}, { id: expect.stringMatching(/^[0-9a-f]{12}$/) }),
};

/** Reads codes, and so writes an entry although it changes nothing. Tested in voucherctl-batch.test.ts. */
const RECORDED_READS = ["batch export"];

const LISTS = ["org", "brand", "product", "batch", "listing", "contract", "link"];

/** Every command that only reads. */
const READS: Record<string, () => Promise<string>> = {
  "key list": async () => `key list --org ${partner.organizationId}`,
  "webhook list": async () => `webhook list --org ${partner.organizationId}`,
  "webhook deliveries": async () => `webhook deliveries ${await makeWebhook()}`,
  "batch show": async () => `batch show ${await batchOf((await issue()).id)}`,
  "voucher show": async () => `voucher show ${(await issue()).code} --org ${partner.organizationId}`,
  "chain verify": async () => "chain verify --all",
  "audit list": async () => "audit list",
  "redemption list": async () => `redemption list --org ${partner.organizationId}`,
  "voucher find": async () => "voucher find --ref order-1",
  "voucher history": async () => `voucher history ${(await issue()).id}`,
  ...Object.fromEntries(LISTS.map((noun) => [`${noun} list`, async () => `${noun} list`])),
};

/** Commands that use no database: `completion` prints a script, `user token` signs with a key file of the embedded servers. */
const ELSEWHERE = ["voucherctl completion", "user token", "sandbox check"];

/** Commands tested in test/db/{roles,durability}.test.ts on a Postgres of their own, because they are about the whole server. */
const ON_THE_SERVER = ["db roles", "db check"];

/** Commands that change the log. Tested below, with a log's key. */
const LOG_CHANGES = ["log init", "log backfill", "log recover", "log retire"];

/** Commands tested in voucherctl-log.test.ts, voucherctl-webhook.test.ts, test/workers and test/cluster: they need a key, a receiver or Redis. */
const WITH_MORE = [
  ...["audit", "checkpoint", "export", "keygen", "monitor"].map((verb) => `log ${verb}`),
  ...["receipt get", "receipt verify", "witness keygen", "witness serve"],
  ...["queue shards", "queue drop-shards", "webhook test"],
];

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

it("this file covers every command of voucherctl, or says where it is tested", () => {
  const all = leavesOf(buildProgram()).map((command) => `${command.parent?.name()} ${command.name()}`);
  const covered = [...Object.keys(CHANGES), ...Object.keys(READS), ...RECORDED_READS, ...ELSEWHERE, ...ON_THE_SERVER];
  expect(all.sort()).toEqual([...covered, ...LOG_CHANGES, ...WITH_MORE].sort());
});

it.each(
  Object.entries(CHANGES),
)("voucherctl %s prints its result and writes one audit entry with user, command, and state before and after", async (command, make) => {
  const change = await make();
  const [before, last] = [await dumpOthers(), await lastEntryId()];
  const printed = await voucherctl.json(change.line);
  expect(printed).toStrictEqual(change.printed);
  expect(await dumpOthers(), "it changed something").not.toEqual(before);
  expect(await entriesAfter(last)).toStrictEqual([
    {
      id: expect.any(Number),
      at: expect.any(Date),
      database_role: new URL(servers.adminUrl).username,
      os_user: userInfo().username,
      host: hostname(),
      command,
      arguments: change.given,
      entity_type: change.entityType,
      // A link is a secret, so its entry has the code's hash.
      entity_id: change.entityId ?? printed.id ?? createHash("sha256").update(printed.code).digest("hex"),
      before: change.before,
      after: change.after,
    },
  ]);
});

it.each(Object.entries(READS))("voucherctl %s writes nothing", async (_command, make) => {
  const line = await make();
  const before = await dumpRows(db);
  await voucherctl.json(line);
  expect(await dumpRows(db)).toEqual(before);
});

it("a repeated key revoke or member add changes nothing and writes no audit entry", async () => {
  const { id } = await makeKey(db, partner.organizationId);
  for (const line of [
    `key revoke ${id}`,
    `member add --org ${partner.organizationId} --user ${newUser()} --role owner`,
  ]) {
    const first = await voucherctl.json(line);
    const before = await dumpRows(db);
    expect(await voucherctl.json(line)).toEqual(first);
    expect(await dumpRows(db)).toEqual(before);
  }
});

it("a command changes nothing when it cannot write its audit entry", async () => {
  const cases = await Promise.all(Object.values(CHANGES).map((make) => make()));
  await db.query("ALTER TABLE audit_entries ADD CONSTRAINT full_up CHECK (false) NOT VALID");
  onTestFinished(async () => void (await db.query("ALTER TABLE audit_entries DROP CONSTRAINT full_up")));
  for (const { line } of cases) await voucherctl.fails(1, /full_up/, line);
});

it("no audit entry contains a key, a voucher's code, a link or the hash of a secret", async () => {
  const made = await voucherctl.json(`key create --org ${partner.organizationId} --scope voucher.read`);
  const rotated = await voucherctl.json(`key rotate ${made.id}`);
  const { code } = await voucherctl.json((await (CHANGES["link create"] as () => Promise<ChangeCase>)()).line);
  // In the spelling of a user, which normalises to the stored code.
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
    before: null,
  };
  const brand = { entityType: "Brand", entityId: idOf("brd"), arguments: { org: id, name: "Then" } };
  expect(acts).toStrictEqual([
    { ...row, command: "brand create", ...brand, after: { organizationId: id, name: "Then", createdAt: MOMENT } },
    {
      ...{ ...row, command: "org create", arguments: { name: "First" }, entityType: "Organization", entityId: id },
      after: { name: "First", sandbox: false, createdAt: MOMENT },
    },
  ]);
  expect(acts[0].id).toBeGreaterThan(acts[1].id);
  expect((await voucherctl.json("audit list")).acts).toHaveLength(20);
});

it("audit list --entity prints the entries of one entity, and none for an entity without changes", async () => {
  const { id } = await voucherctl.json(`key create --org ${partner.organizationId} --scope voucher.read`);
  for (const verb of ["rotate", "revoke"]) await voucherctl.json(`key ${verb} ${id}`);
  const { acts } = await voucherctl.json(`audit list --entity ${id}`);
  expect(acts.map(({ command }: { command: string }) => command)).toEqual(["key revoke", "key rotate", "key create"]);
  expect(acts[0].before).toEqual(acts[1].after);
  expect(acts[1].before).toEqual(acts[2].after);
  expect(await voucherctl.json("audit list --entity key_none")).toEqual({ acts: [] });
});

it("voucherctl log writes one audit entry when it begins, fills, recovers or retires the log, and none when that changes nothing", async () => {
  const own = await openTestServers();
  const files = makeLogFiles();
  const ctl = openVoucherctl(own);
  onTestFinished(async () => {
    ctl.close();
    await own.close();
    files.remove();
  });
  const entriesOf = async () =>
    (
      await own.db.query(
        "SELECT command, arguments, entity_type, entity_id, before, after FROM audit_entries ORDER BY id",
      )
    ).rows;
  /** Runs a command, and returns the entries that it wrote. */
  const entriesBy = async (...args: string[]) => {
    const before = (await entriesOf()).length;
    const ended = await ctl.run([...args, "--json"], files.env);
    return { exitCode: ended.exitCode, entries: (await entriesOf()).slice(before) };
  };
  const empty = { size: 0, root: createHash("sha256").digest("base64") };
  const entry = (command: string, given: State, entityId: string, before: State, after: State) => ({
    exitCode: 0,
    entries: [{ command, arguments: given, entity_type: "Log", entity_id: entityId, before, after }],
  });
  const nothing = { exitCode: 0, entries: [] };

  await issueVouchers(own.db, await makePartner(own.db), 3);
  const anchor = files.anchor;
  expect(await entriesBy("log", "init")).toEqual(
    entry("log init", {}, ORIGIN, { anchorsWritten: [] }, { ...empty, anchorsWritten: [anchor] }),
  );
  expect(await entriesBy("log", "init")).toEqual(nothing);
  rmSync(anchor);
  expect(await entriesBy("log", "init")).toEqual({ exitCode: 1, entries: [] });
  expect(await entriesBy("log", "init", "--accept-anchor")).toEqual(
    entry(
      "log init",
      { acceptAnchor: true },
      ORIGIN,
      { ...empty, anchorsWritten: [] },
      { ...empty, anchorsWritten: [anchor] },
    ),
  );

  expect(await entriesBy("log", "backfill")).toEqual(nothing);
  await tamper(own.db, "UPDATE voucher_events SET log_slot = NULL", "DELETE FROM log_batches");
  expect(await entriesBy("log", "backfill")).toEqual(
    entry("log backfill", {}, "backfill", { events: 0 }, { events: 3 }),
  );

  expect(await openSequencer(own, files).run()).toMatchObject({ published: 3 });
  const copy = join(files.directory, "copy");
  expect(await entriesBy("log", "export", "--to", copy)).toEqual(nothing);
  expect(await entriesBy("log", "recover", "--from", copy)).toEqual({ exitCode: 1, entries: [] });
  const { rows } = await own.db.query("SELECT encode(root, 'base64') AS root FROM log_tree");
  await tamper(
    own.db,
    ...["log_bundles", "log_tiles", "log_published", "log_batches"].map((table) => `DELETE FROM ${table}`),
    `UPDATE log_tree SET size = 0, root = decode('${empty.root}', 'base64')`,
  );
  expect(await entriesBy("log", "recover", "--from", copy)).toEqual(
    entry("log recover", { from: copy }, ORIGIN, empty, { size: 3, root: rows[0].root }),
  );

  await openSequencer(own, files).run();
  const next = makeNextLogFiles();
  onTestFinished(() => next.remove());
  const given = { reason: "the key leaked", to: join(files.directory, "retired") };
  const args = ["log", "retire", ORIGIN, "--reason", given.reason, "--to", given.to];
  const before = (await entriesOf()).length;
  expect((await ctl.run(args, next.env)).exitCode).toBe(78);
  const owner = { ...next.env, DATABASE_URL: own.ownerUrl };
  for (const _ of ["retires it", "exports it again"]) expect((await ctl.run(args, owner)).exitCode).toBe(0);
  const state = { size: 3, root: rows[0].root };
  const { entries } = entry("log retire", { origin: ORIGIN, ...given }, ORIGIN, state, { retiredFor: NEXT_ORIGIN });
  expect((await entriesOf()).slice(before)).toEqual(entries);
});
