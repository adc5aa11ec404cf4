import { createHash } from "node:crypto";
import { rmSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { buildProgram } from "../../src/cli/program.ts";
import { newId } from "../../src/domain/ids.ts";
import { startNode } from "../support/child-process.ts";
import { assertInvariants } from "../support/invariants.ts";
import {
  type LogFiles,
  makeLogFiles,
  makeNextLogFiles,
  NEXT_ORIGIN,
  ORIGIN,
  openSequencer,
  tamper,
} from "../support/log-setup.ts";
import { makeContract, makeMember, newUser } from "../support/marketplace.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { openVoucherctl, type Voucherctl } from "../support/voucherctl.ts";

let servers: TestServers;
let voucherctl: Voucherctl;
let partner: TestPartner;
/** The database role of the commands. */
let databaseRole: string;

beforeAll(async () => {
  servers = await openTestServers();
  voucherctl = openVoucherctl(servers);
  databaseRole = new URL(servers.adminUrl).username;
  partner = await makePartner(servers.db);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  voucherctl.close();
  await servers.close();
});

type State = Record<string, unknown>;

interface Recorded {
  id: number;
  at: Date;
  database_role: string;
  os_user: string;
  host: string;
  command: string;
  arguments: State;
  entity_type: string;
  entity_id: string;
  before: State | null;
  after: State | null;
}

async function entriesAfter(id: number): Promise<Recorded[]> {
  return (await servers.db.query("SELECT * FROM audit_entries WHERE id > $1 ORDER BY id", [id])).rows;
}

async function lastEntryId(): Promise<number> {
  return (await servers.db.query("SELECT coalesce(max(id), 0) AS id FROM audit_entries")).rows[0].id;
}

/** Every row but the audit entries. */
async function dumpOthers() {
  const { audit_entries, ...others } = await dumpRows(servers.db);
  const { rows } = await servers.db.query("SELECT clock_trusted_at FROM redemptions_closed");
  return { ...others, clock: rows };
}

const MOMENT = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A command that must write an audit entry: its arguments and the expected entry. */
interface ChangeCase {
  args: string[];
  arguments: State;
  entityType: string;
  /** Null for the `id` that the command prints. */
  entityId: string | null;
  before: State | null;
  after: State;
  /** The same command with an invalid argument: it must fail and write nothing. */
  refused: string[];
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

async function makeWebhook(): Promise<string> {
  const organization = await makePartner(servers.db);
  const id = newId("whk");
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url) VALUES ($1, $2, 1, 'https://shop.example.com/')",
    [id, organization.organizationId],
  );
  return id;
}

/** Changes an existing endpoint, which is disabled by an operator if `before` says so. */
async function webhookChange(verb: string, before: State, after: State): Promise<ChangeCase> {
  const id = await makeWebhook();
  if (before.enabled === false) {
    await servers.db.query(
      "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'operator', disabled_at = now() WHERE id = $1",
      [id],
    );
  }
  const organization = { organizationId: expect.stringMatching(/^org_/) };
  return {
    args: ["webhook", verb, id],
    arguments: { id },
    entityType: "WebhookEndpoint",
    entityId: id,
    before: webhookState({ ...organization, ...before }),
    after: webhookState({ ...organization, ...after }),
    refused: ["webhook", verb, newId("whk"), ...(verb === "replay" ? ["--event-id", "vch_x-2"] : [])],
  };
}

/** Changes the status of an existing contract. */
async function contractMove(verb: string, from: "Offered" | "Active", to: string): Promise<ChangeCase> {
  const user = newUser();
  const id = await makeContract(servers.db, partner.brandId, user, from);
  return {
    args: ["contract", verb, id],
    arguments: { id },
    entityType: "ReferrerContract",
    entityId: id,
    before: contractState(user, { status: from }),
    after: contractState(user, { status: to }),
    refused: ["contract", verb, newId("ctr")],
  };
}

/** Every command that changes something. */
const CHANGES: Record<string, () => Promise<ChangeCase>> = {
  "org create": async () => ({
    args: ["org", "create", "--name", "Corner Shop"],
    arguments: { name: "Corner Shop" },
    entityType: "Organization",
    entityId: null,
    before: null,
    after: { name: "Corner Shop", sandbox: false, createdAt: MOMENT },
    refused: ["org", "create", "--name", ""],
  }),
  "webhook create": async () => ({
    args: [
      "webhook",
      "create",
      "--org",
      partner.organizationId,
      "--url",
      "https://shop.example.com/",
      "--event-type",
      "reservation.expired",
    ],
    arguments: { org: partner.organizationId, url: "https://shop.example.com/", eventType: ["reservation.expired"] },
    entityType: "WebhookEndpoint",
    entityId: null,
    before: null,
    after: webhookState({ eventTypes: ["reservation.expired"] }),
    refused: ["webhook", "create", "--org", partner.organizationId, "--url", "https://127.0.0.1/"],
  }),
  "webhook disable": () =>
    webhookChange("disable", {}, { enabled: false, disabledReason: "operator", disabledAt: MOMENT }),
  "webhook enable": () =>
    webhookChange("enable", { enabled: false, disabledReason: "operator", disabledAt: MOMENT }, {}),
  "webhook rotate": () => webhookChange("rotate", {}, { secretVersion: 2, previousSecretUntil: MOMENT }),
  "webhook replay": async () => {
    const change = await webhookChange("replay", { replayed: 0 }, { replayed: 1 });
    await servers.db.query(
      `INSERT INTO webhook_deliveries (endpoint_id, event_id, voucher_id, sequence, event_type, position, state, created_at, finished_at)
       VALUES ($1, 'vch_x-2', 'vch_x', 2, 'voucher.instance.voided', 1, 'Delivered', now(), now())`,
      [change.entityId],
    );
    const args = [...change.args, "--event-id", "vch_x-2"];
    return { ...change, args, arguments: { ...change.arguments, eventId: ["vch_x-2"] } };
  },
  "brand create": async () => ({
    args: ["brand", "create", "--org", partner.organizationId, "--name", "Second"],
    arguments: { org: partner.organizationId, name: "Second" },
    entityType: "Brand",
    entityId: null,
    before: null,
    after: { organizationId: partner.organizationId, name: "Second", createdAt: MOMENT },
    refused: ["brand", "create", "--org", newId("org"), "--name", "Second"],
  }),
  "product create": async () => {
    const key = newUser("product");
    const options = ["--name", "Day pass", "--type", "Service", "--retail-price-usd", "19.90", "--price-usd", "12"];
    return {
      args: ["product", "create", "--brand", partner.brandId, "--key", key, ...options],
      arguments: {
        brand: partner.brandId,
        key,
        name: "Day pass",
        type: "Service",
        retailPriceUsd: 19.9,
        priceUsd: 12,
        benefitMonths: 0,
      },
      entityType: "Product",
      entityId: null,
      before: null,
      after: {
        brandId: partner.brandId,
        key,
        name: "Day pass",
        type: "Service",
        retailPriceUsd: 19.9,
        priceUsd: 12,
        benefitMonths: 0,
        usageUnitLabel: null,
        createdAt: MOMENT,
      },
      refused: ["product", "create", "--brand", partner.brandId, "--key", "pass", ...options],
    };
  },
  "key create": async () => {
    const options = ["--scope", "voucher.read", "--allow-ip", "192.0.2.0/24", "--expires", "2099-01-01"];
    const args = ["key", "create", "--org", partner.organizationId, ...options, "--label", "till 1"];
    return {
      args,
      arguments: {
        org: partner.organizationId,
        scope: ["voucher.read"],
        allowIp: ["192.0.2.0/24"],
        expires: "2099-01-01T00:00:00.000Z",
        label: "till 1",
      },
      entityType: "ApiKey",
      entityId: null,
      before: null,
      after: keyState({
        scopes: ["voucher.read"],
        allowIps: ["192.0.2.0/24"],
        expiresAt: "2099-01-01T00:00:00.000Z",
        label: "till 1",
      }),
      refused: ["key", "create", "--org", newId("org"), ...options],
    };
  },
  "key rotate": async () => {
    const { id } = await makeKey(servers.db, partner.organizationId);
    return {
      args: ["key", "rotate", id, "--grace", "2h"],
      arguments: { id, grace: 7_200_000 },
      entityType: "ApiKey",
      entityId: id,
      before: keyState(),
      after: keyState({ secretsExpireAt: [MOMENT, null] }),
      refused: ["key", "rotate", newId("key")],
    };
  },
  "key revoke": async () => {
    const { id } = await makeKey(servers.db, partner.organizationId);
    return {
      args: ["key", "revoke", id],
      arguments: { id },
      entityType: "ApiKey",
      entityId: id,
      before: keyState(),
      after: keyState({ revokedAt: MOMENT }),
      refused: ["key", "revoke", newId("key")],
    };
  },
  "batch issue": async () => {
    const options = ["--count", "3", "--valid-until", "2099-12-31", "--claim", "--buy", "--closes-at", "2099-06-30"];
    return {
      args: ["batch", "issue", "--product", partner.productId, ...options],
      arguments: {
        product: partner.productId,
        count: 3,
        validUntil: "2099-12-31T00:00:00.000Z",
        audience: "OpenToAll",
        claim: true,
        buy: true,
        closesAt: "2099-06-30T00:00:00.000Z",
      },
      entityType: "Batch",
      entityId: null,
      before: null,
      after: {
        productId: partner.productId,
        audience: "OpenToAll",
        voucherCount: 3,
        validUntil: "2099-12-31T00:00:00.000Z",
        retailPriceUsd: 50,
        priceUsd: 40.25,
        benefitMonths: 6,
        usageUnitLabel: "visit",
        createdAt: MOMENT,
        windows: ["buy", "claim"],
        windowsOpenAt: [null, null],
        windowsCloseAt: ["2099-06-30T00:00:00.000Z", "2099-06-30T00:00:00.000Z"],
      },
      refused: ["batch", "issue", "--product", newId("prd"), ...options],
    };
  },
  "voucher void": async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [id]);
    const state = {
      organizationId: partner.organizationId,
      batchId: rows[0].batch_id,
      serial: 1,
      status: "Active",
      redeemedAt: null,
      lastSequence: 1,
    };
    return {
      args: ["voucher", "void", code, "--org", partner.organizationId, "--reason", "printed twice"],
      arguments: { org: partner.organizationId, reason: "printed twice" },
      entityType: "VoucherInstance",
      entityId: id,
      before: state,
      after: { ...state, status: "Voided", lastSequence: 2 },
      refused: ["voucher", "void", "7Q4K-9MZX-2HTB-W8RC", "--org", partner.organizationId],
    };
  },
  "batch void": async () => {
    const [batch, state] = await makeBatch();
    return {
      args: ["batch", "void", batch, "--reason", "printed twice"],
      arguments: { id: batch, reason: "printed twice" },
      entityType: "Batch",
      entityId: batch,
      before: { ...state, vouchersVoided: 0 },
      after: { ...state, vouchersVoided: 2 },
      refused: ["batch", "void", newId("bat")],
    };
  },
  "member add": async () => {
    const user = newUser();
    await makeMember(servers.db, partner.organizationId, user, "employee");
    return {
      args: ["member", "add", "--org", partner.organizationId, "--user", user, "--role", "owner"],
      arguments: { org: partner.organizationId, user, role: "owner" },
      entityType: "Member",
      entityId: `${partner.organizationId}/${user}`,
      before: { role: "employee", createdAt: MOMENT },
      after: { role: "owner", createdAt: MOMENT },
      refused: ["member", "add", "--org", newId("org"), "--user", user, "--role", "owner"],
    };
  },
  "contract offer": async () => {
    const user = newUser();
    return {
      args: ["contract", "offer", "--brand", partner.brandId, "--user", user, "--ends-at", "2099-06-30"],
      arguments: { brand: partner.brandId, user, endsAt: "2099-06-30T00:00:00.000Z" },
      entityType: "ReferrerContract",
      entityId: null,
      before: null,
      after: contractState(user, { endsAt: "2099-06-30T00:00:00.000Z" }),
      refused: ["contract", "offer", "--brand", newId("brd"), "--user", user],
    };
  },
  "contract accept": () => contractMove("accept", "Offered", "Active"),
  "contract decline": () => contractMove("decline", "Offered", "Declined"),
  "contract end": () => contractMove("end", "Active", "Ended"),
  "link create": async () => {
    const contract = await makeContract(servers.db, partner.brandId, newUser());
    return {
      args: ["link", "create", "--contract", contract, "--product", partner.productId],
      arguments: { contract, product: partner.productId },
      entityType: "ReferralLink",
      entityId: null,
      before: null,
      after: {
        contractId: contract,
        productId: partner.productId,
        brandId: partner.brandId,
        createdAt: MOMENT,
      },
      refused: ["link", "create", "--contract", contract, "--product", newId("prd")],
    };
  },
  "listing create": async () => {
    const { id } = await issueVoucher(servers.db, partner);
    const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [id]);
    const batch = rows[0].batch_id;
    return {
      args: ["listing", "create", "--batch", batch],
      arguments: { batch },
      entityType: "Listing",
      entityId: null,
      before: null,
      after: { batchId: batch, createdAt: MOMENT },
      refused: ["listing", "create", "--batch", newId("bat")],
    };
  },
  "db trust-clock": async () => {
    const { rows } = await servers.db.query(
      'SELECT id, system_identifier::text AS "systemIdentifier", database_oid::text AS "databaseOid" FROM deployment',
    );
    const [row] = rows;
    return {
      args: ["db", "trust-clock"],
      arguments: {},
      entityType: "Deployment",
      entityId: row.id,
      before: { ...row, closedUntil: MOMENT, trustedAt: null },
      after: { ...row, closedUntil: MOMENT, trustedAt: MOMENT },
      refused: ["db", "trust-clock", "now"],
    };
  },
  "db adopt": async () => {
    const { rows } = await servers.db.query(
      "SELECT id, system_identifier::text AS server, database_oid::text AS database FROM deployment",
    );
    const [{ id, server, database }] = rows;
    const row = { systemIdentifier: server, databaseOid: database };
    return {
      args: ["db", "adopt"],
      arguments: {},
      entityType: "Deployment",
      entityId: id,
      before: { id, ...row },
      after: { id: expect.stringMatching(/^[0-9a-f]{12}$/), ...row },
      refused: ["db", "adopt", "this"],
    };
  },
};

/** A batch of two vouchers, and its state in audit entries. */
async function makeBatch(): Promise<[id: string, state: State]> {
  const [voucher] = await issueVouchers(servers.db, partner, 2, { validUntil: new Date("2099-12-31T00:00:00Z") });
  const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucher?.id]);
  const state = {
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
  };
  return [rows[0].batch_id, state];
}

/** Reads codes, and so writes an entry although it changes nothing. Tested in voucherctl-operators.test.ts. */
const RECORDED_READS = ["batch export"];

/** Every command that only reads. */
const READS: Record<string, () => Promise<string[]>> = {
  "key list": async () => ["key", "list", "--org", partner.organizationId],
  "webhook list": async () => ["webhook", "list", "--org", partner.organizationId],
  "webhook deliveries": async () => ["webhook", "deliveries", await makeWebhook()],
  "batch show": async () => {
    const { id } = await issueVoucher(servers.db, partner);
    const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [id]);
    return ["batch", "show", rows[0].batch_id];
  },
  "voucher show": async () => {
    const { code } = await issueVoucher(servers.db, partner);
    return ["voucher", "show", code, "--org", partner.organizationId];
  },
  "chain verify": async () => ["chain", "verify", "--all"],
  "audit list": async () => ["audit", "list"],
  "voucher find": async () => ["voucher", "find", "--ref", "order-1"],
  "voucher history": async () => ["voucher", "history", (await issueVoucher(servers.db, partner)).id],
  ...Object.fromEntries(
    ["org", "brand", "product", "batch", "listing", "contract", "link"].map((noun) => [
      `${noun} list`,
      async () => [noun, "list"],
    ]),
  ),
};

/** Commands that use no database: `user token` signs with a key file of the embedded servers. */
const ELSEWHERE = ["user token", "sandbox check"];

/** Commands tested in test/db/{roles,durability}.test.ts on a Postgres of their own, because they are about the whole server. */
const ON_THE_SERVER = ["db roles", "db check"];

/** Commands that change the log. Tested below, with a log's key. */
const LOG_CHANGES = ["log init", "log backfill", "log recover", "log retire"];

/** Commands tested in voucherctl-log.test.ts, voucherctl-webhook.test.ts, test/workers and test/cluster: they need a key, a receiver or Redis. */
const WITH_MORE = [
  ...["audit", "checkpoint", "export", "keygen", "monitor"].map((verb) => `log ${verb}`),
  ...[
    "receipt get",
    "receipt verify",
    "witness keygen",
    "witness serve",
    "queue shards",
    "queue drop-shards",
    "webhook test",
  ],
];

function leavesOf(command: Command): Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

describe("voucherctl", () => {
  it("has no command that this file does not cover", () => {
    const all = leavesOf(buildProgram()).map((command) => `${command.parent?.name()} ${command.name()}`);
    expect(all.sort()).toEqual(
      [
        ...Object.keys(CHANGES),
        ...Object.keys(READS),
        ...RECORDED_READS,
        ...ELSEWHERE,
        ...ON_THE_SERVER,
        ...LOG_CHANGES,
        ...WITH_MORE,
      ].sort(),
    );
  });

  it.each(
    Object.entries(CHANGES),
  )("%s writes exactly one entry with user, command, and state before and after", async (name, make) => {
    const change = await make();
    const [before, last] = [await dumpOthers(), await lastEntryId()];
    const answered = await voucherctl.json(...change.args);
    expect(await dumpOthers(), "it changed something").not.toEqual(before);
    const entityId = change.entityId ?? answered.id ?? createHash("sha256").update(answered.code).digest("hex");
    const recorded = await entriesAfter(last);
    expect(recorded).toStrictEqual([
      {
        id: expect.any(Number),
        at: expect.any(Date),
        database_role: databaseRole,
        os_user: userInfo().username,
        host: hostname(),
        command: name,
        arguments: change.arguments,
        entity_type: change.entityType,
        entity_id: entityId,
        before: change.before,
        after: change.after,
      },
    ]);
  });

  it.each(Object.entries(CHANGES))("%s writes nothing when it is refused", async (_name, make) => {
    const { refused } = await make();
    const before = await dumpRows(servers.db);
    const { exitCode, stdout } = await voucherctl.run([...refused, "--json"]);
    expect({ refused: exitCode !== 0, stdout }).toEqual({ refused: true, stdout: "" });
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it.each(Object.entries(READS))("%s writes nothing", async (_name, make) => {
    const args = await make();
    const before = await dumpRows(servers.db);
    await voucherctl.json(...args);
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("writes nothing when a repeated command changes nothing", async () => {
    const { id } = await makeKey(servers.db, partner.organizationId);
    const member = ["member", "add", "--org", partner.organizationId, "--user", newUser(), "--role", "owner"];
    for (const args of [["key", "revoke", id], member]) {
      const first = await voucherctl.json(...args);
      const before = await dumpRows(servers.db);
      expect(await voucherctl.json(...args)).toEqual(first);
      expect(await dumpRows(servers.db)).toEqual(before);
    }
  });

  it("changes nothing when it cannot write the audit entry", async () => {
    const cases = await Promise.all(Object.values(CHANGES).map((make) => make()));
    await servers.db.query("ALTER TABLE audit_entries ADD CONSTRAINT full_up CHECK (false) NOT VALID");
    try {
      const before = await dumpRows(servers.db);
      for (const { args } of cases) {
        expect(await voucherctl.run([...args, "--json"]), args.join(" ")).toEqual({
          exitCode: 1,
          stdout: "",
          stderr: expect.stringContaining("full_up"),
        });
      }
      expect(await dumpRows(servers.db)).toEqual(before);
    } finally {
      await servers.db.query("ALTER TABLE audit_entries DROP CONSTRAINT full_up");
    }
  });

  it("writes no entry for an interrupted issue, and one for a completed issue", async () => {
    const issue = (count: string) => [
      "batch",
      "issue",
      "--product",
      partner.productId,
      "--count",
      count,
      "--valid-until",
      "2099-01-01",
    ];
    const before = await dumpRows(servers.db);
    const issuing = startNode(["src/cli/main.ts", ...issue("1000000")], { DATABASE_URL: servers.adminUrl });
    await untilStarted(async () => {
      const { rows } = await servers.db.query(
        "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'COPY vouchers%'",
      );
      return rows[0].n === 1;
    });
    issuing.child.kill("SIGTERM");
    expect((await issuing.ended).exitCode).not.toBe(0);
    expect(await dumpRows(servers.db)).toEqual(before);
    const last = await lastEntryId();
    const { id } = await voucherctl.json(...issue("5000"));
    expect(await entriesAfter(last)).toMatchObject([{ entity_id: id, after: { voucherCount: 5_000 } }]);
  });

  it("writes no key and no code into any entry", async () => {
    const made = await voucherctl.json("key", "create", "--org", partner.organizationId, "--scope", "voucher.read");
    const rotated = await voucherctl.json("key", "rotate", made.id);
    const { code } = await voucherctl.json(...(await (CHANGES["link create"] as () => Promise<ChangeCase>)()).args);
    const voided = await issueVoucher(servers.db, partner);
    // In the spelling of a user, which normalises to the stored code.
    const typed = voided.code.toLowerCase().replaceAll("-", " ");
    await voucherctl.json("voucher", "void", typed, "--org", partner.organizationId);
    const { rows } = await servers.db.query("SELECT string_agg(a::text, ' ') AS text FROM audit_entries AS a");
    const { rows: codes } = await servers.db.query("SELECT code, code_key FROM vouchers");
    expect(codes.length).toBeGreaterThan(5_000);
    const found = [made.key, rotated.key, code, typed, ...codes.flatMap((row) => [row.code, row.code_key])].filter(
      (secret) => rows[0].text.includes(secret) || rows[0].text.includes(secret.replace(/^pvk_/, "")),
    );
    expect(found).toEqual([]);
    const { rows: hashes } = await servers.db.query("SELECT encode(secret_hash, 'hex') AS hash FROM api_key_secrets");
    expect(hashes.filter(({ hash }) => rows[0].text.includes(hash))).toEqual([]);
  });
});

describe("voucherctl audit list", () => {
  it("prints the requested number of entries, newest first, with every field", async () => {
    const { id } = await voucherctl.json("org", "create", "--name", "First");
    await voucherctl.json("brand", "create", "--org", id, "--name", "Then");
    const { acts } = await voucherctl.json("audit", "list", "--limit", "2");
    const row = {
      id: expect.any(Number),
      at: MOMENT,
      databaseRole,
      osUser: userInfo().username,
      host: hostname(),
    };
    expect(acts).toStrictEqual([
      {
        ...row,
        command: "brand create",
        arguments: { org: id, name: "Then" },
        entityType: "Brand",
        entityId: expect.stringMatching(/^brd_/),
        before: null,
        after: { organizationId: id, name: "Then", createdAt: MOMENT },
      },
      {
        ...row,
        command: "org create",
        arguments: { name: "First" },
        entityType: "Organization",
        entityId: id,
        before: null,
        after: { name: "First", sandbox: false, createdAt: MOMENT },
      },
    ]);
    expect(acts[0].id).toBeGreaterThan(acts[1].id);
    expect((await voucherctl.json("audit", "list")).acts).toHaveLength(20);
  });

  it("prints the entries of one entity, and none for an entity without changes", async () => {
    const { id } = await voucherctl.json("key", "create", "--org", partner.organizationId, "--scope", "voucher.read");
    await voucherctl.json("key", "rotate", id);
    await voucherctl.json("key", "revoke", id);
    const { acts } = await voucherctl.json("audit", "list", "--entity", id);
    expect(acts.map(({ command }: { command: string }) => command)).toEqual(["key revoke", "key rotate", "key create"]);
    expect(acts[0].before).toEqual(acts[1].after);
    expect(acts[1].before).toEqual(acts[2].after);
    expect(await voucherctl.json("audit", "list", "--entity", "key_none")).toEqual({ acts: [] });
  });
});

describe("voucherctl log", () => {
  let own: TestServers;
  let files: LogFiles;
  let ctl: Voucherctl;

  beforeAll(async () => {
    own = await openTestServers();
    files = makeLogFiles();
    ctl = openVoucherctl(own);
  });

  afterAll(async () => {
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

  it("writes one entry when it begins, fills, recovers or retires the log, and none when that changes or does nothing", async () => {
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
});
