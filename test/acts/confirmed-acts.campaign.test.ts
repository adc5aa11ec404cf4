import type pg from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ACTS, type AnyAct } from "../../src/acts/acts.ts";
import { openAdminContext } from "../../src/acts/open-acts.ts";
import { queueActs } from "../../src/acts/queue/acts.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { acceptContract, offerContract } from "../../src/marketplace/acts.ts";
import { WING_ACTS } from "../../src/open/wing-acts.ts";
import { confirmed } from "../../src/platform/db/durability.ts";
import { migrateDatabase } from "../../src/platform/db/migrate.ts";
import { UnusableDatabase } from "../../src/platform/db/schema.ts";
import { isDatabaseUnavailable } from "../../src/platform/db/transaction.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { send } from "../support/client.ts";
import { openLastingPool } from "../support/lasting-pool.ts";
import { type OwnPostgres, openOwnPostgres } from "../support/own-postgres.ts";
import { openTestServers } from "../support/servers.ts";
import { startApi } from "../support/service.ts";
import { whileWaitsEnd } from "../support/standby-waits.ts";
import { issueTestBatch, makeKey, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

// The server's commits wait for a standby that does not exist. The tests end each wait.

const ALL = [ACTS, WING_ACTS, queueActs({ whilePaused: "" })].flat() as AnyAct[];

let opened: Awaited<ReturnType<typeof open>>;
beforeAll(async () => {
  opened = await open();
});
afterAll(() => opened?.close());

async function open() {
  const [postgres, servers] = [await openOwnPostgres(), await openTestServers()];
  // The acts have their own database, because they leave that database in a state that the other test cannot use.
  const [acts, faces] = [await openDatabase(postgres, "acts"), await openDatabase(postgres, "faces")];
  const admin = openAdminContext(acts.url, openLogger("silent", "test"));
  const reached = { ...servers, databaseUrl: faces.url, adminUrl: faces.url };
  const api = await startApi(reached, { OPS_TOKEN, OPS_WRITABLE: "true", ISSUER_API: "true", METRICS_PORT: "0" });
  await postgres.superuser.query("ALTER SYSTEM SET synchronous_standby_names = 'missing'");
  await postgres.superuser.query("SELECT pg_reload_conf()");
  await until(async () => (await faces.db.query("SHOW synchronous_standby_names")).rows[0].synchronous_standby_names);
  const close = async () => {
    await whileWaitsEnd(faces.db, () => servers.closeOpened());
    await Promise.all([servers.close(), admin.close(), acts.db.end(), faces.db.end()]);
    await postgres.close();
  };
  return {
    postgres,
    acts: { db: acts.db, admin },
    faces: { db: faces.db, api, voucherctl: openVoucherctl(reached) },
    close,
  };
}

/** Runs an act, and ends each of its waits for the standby. Returns the act's result, or `NOTHING_TOLD`. */
async function tell(act: AnyAct, id: string, values: object, end?: "pg_cancel_backend"): Promise<unknown> {
  const { admin, db } = opened.acts;
  const ctx = { ...admin, ...DEPS, audited: auditedCommand(act.name, {}) };
  const run = () =>
    act.run(ctx as never, id, values as never).catch((error: Error) => ({
      failed: isDatabaseUnavailable(error) ? "unavailable" : error.message,
    }));
  return (await whileWaitsEnd(db, run, end)).result;
}

it("no administrative act returns a result or a refusal before a standby has confirmed the data", async () => {
  for (const act of ALL) expect(await tell(act, "none", {}), act.name).toEqual(NOTHING_TOLD);
});

/** Stubs of the context's fields that acts read before they reach the database. */
const DEPS = {
  passwords: {},
  grants: [],
  codes: null,
  onChunk: () => undefined,
  queueViews: { open: async () => [] },
  redis: null,
  testEndpoint: async () => ({ delivered: true, status: 200, failure: null, durationMs: 1 }),
};

const NOTHING_TOLD = { failed: "unavailable" };

/** Makes a database, and a pool whose own commits wait for no standby. */
async function openDatabase(postgres: OwnPostgres, name: string) {
  await postgres.superuser.query(`CREATE DATABASE ${name}`);
  const url = postgres.url(name);
  await migrateDatabase(url);
  const db = openLastingPool({ connectionString: url, options: "-c synchronous_commit=local" });
  return { url, db };
}

/** Changes entities. Returns acts that repeat these changes and so have no effect, each with its entity and fields. */
async function makeRepeated(db: pg.Pool, partner: TestPartner) {
  const { organizationId, brandId, productId } = partner;
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  const [used, one] = vouchers;
  const act = (name: string) => ALL.find((each) => each.name === name) as AnyAct;
  const create = async (name: string, id: string, values: object) => {
    const ctx = { ...provisioning(db), ...DEPS };
    return ((await act(name).run(ctx as never, id, values as never)) as { id: string }).id;
  };
  const offered = await create("contract offer", brandId, { user: "referrer", endsAt: null });
  const product = { key: "again", name: "Again", type: "Service", retailPriceUsd: 1, priceUsd: 1, benefitMonths: 0 };
  const issued = { count: 2, validUntil: new Date("2099-12-31"), audience: "OpenToAll", issueRef: "batch-1" };
  const operator = await create("operator create", "", { name: "Ann", role: "viewer", expires: null });
  const { id: keyId } = await makeKey(db, organizationId);
  const repeated: [AnyAct["name"], string, object][] = [
    ["brand rename", brandId, { name: "Renamed" }],
    ["product create", brandId, { ...product, usageUnitLabel: null }],
    ["batch issue", productId, { ...issued, windows: {}, mayBePast: false }],
    ["listing create", batchId, {}],
    ["contract offer", brandId, { user: "other", endsAt: null }],
    ["contract accept", offered, {}],
    ["contract end", offered, {}],
    ["member add", organizationId, { user: "member", role: "owner" }],
    ["key revoke", keyId, {}],
    ["operator revoke", operator, {}],
    ["voucher void", String(one?.id), { reason: null }],
    ["person erase", String(used?.id), { user: null, ref: null, org: null, reason: null }],
    ["person erase", "", { user: "member", ref: null, org: null, reason: null }],
    ["person erase", "", { user: null, ref: "batch-1", org: organizationId, reason: null }],
    ["batch void", batchId, { reason: null }],
  ];
  return repeated.map(([name, id, values]) => ({ act: act(name), id, values }));
}

const ENDS = ["pg_cancel_backend", "pg_terminate_backend"] as const;

it.each(
  ENDS,
)("neither an administrative act nor its repeat returns a result if %s ends the wait for a standby", async (end) => {
  const cancels = end === "pg_cancel_backend" ? end : undefined;
  const { db } = opened.acts;
  const partner = await makePartner(db);
  for (const { act, id, values } of await makeRepeated(db, partner)) {
    // A long act stops after each transaction that no standby confirmed, so a repeat runs the next transaction.
    for (let run = 1; run <= 4; run++)
      expect(await tell(act, id, values, cancels), `${act.name}, run ${run}`).toEqual(NOTHING_TOLD);
  }
  const { rows } = await db.query(
    "SELECT b.name, (SELECT count(*)::int FROM vouchers WHERE organization_id = $2 AND status = 'Voided') AS voided, " +
      "ARRAY(SELECT r.status FROM referrer_contracts AS r WHERE r.brand_id = b.id ORDER BY r.id) AS contracts, " +
      "ARRAY(SELECT left(m.user_id, 7) FROM members AS m WHERE m.organization_id = $2) AS members " +
      "FROM brands AS b WHERE b.id = $1",
    [partner.brandId, partner.organizationId],
  );
  expect(rows).toEqual([{ name: "Renamed", voided: 3, contracts: ["Ended", "Offered"], members: ["erased:"] }]);
});

/** Returns calls of each interface that only read an earlier change or repeat it. */
async function makeCalls({ db, api, voucherctl }: (typeof opened)["faces"], partner: TestPartner) {
  const { brandId, organizationId } = partner;
  const { key } = await makeKey(db, organizationId, { scopes: ["voucher.issue"] });
  const { batchId, vouchers } = await issueTestBatch(db, partner, 2);
  const [one] = vouchers;
  const issuer = async (method: "GET" | "POST", path: string, body: object = {}) =>
    (await send(method, `${api.url}/issuer/${path}`, { key, ...(method === "POST" && { body }) })).status;
  const form = async (path: string, fields: Record<string, string>) =>
    (await browse(`${api.url}/ops${path}`, { form: fields, headers: basic(OPS_TOKEN) })).status;
  const command = async (line: string) => (await voucherctl.run(line)).exitCode;
  const contracts = ["first", "second", "third"].map(async (user) => {
    const { id } = await offerContract.run(provisioning(db), brandId, { user, endsAt: null });
    return (await acceptContract.run(provisioning(db), id, {})).id;
  });
  const [first, second, third] = await Promise.all(contracts);
  return {
    "a batch is voided": () => issuer("POST", `batches/${batchId}/void`),
    "a batch is voided again": () => issuer("POST", `batches/${batchId}/void`),
    "a contract is ended": () => issuer("POST", `contracts/${first}/end`),
    "a contract is ended again": () => issuer("POST", `contracts/${first}/end`),
    "a brand is renamed": () => issuer("POST", `brands/${brandId}/rename`, { name: "Once" }),
    "a brand is renamed again": () => issuer("POST", `brands/${brandId}/rename`, { name: "Once" }),
    "a voucher is voided again": () => issuer("POST", "vouchers/void", { id: one?.id }),
    "a batch is counted": () => issuer("GET", `batches/${batchId}`),
    "brands are listed": () => issuer("GET", "brands"),
    "products are listed": () => issuer("GET", "products"),
    "batches are listed": () => issuer("GET", "batches"),
    "a form ends a contract": () => form(`/contracts/${second}/end`, {}),
    "a form ends a contract again": () => form(`/contracts/${second}/end`, {}),
    "a form renames a brand to its name": () => form(`/brands/${brandId}/rename`, { name: "Once" }),
    "a form erases a person": () => form(`/vouchers/${one?.id}/erase`, { confirmation: String(one?.id) }),
    "a command ends a contract": () => command(`contract end ${third} --yes`),
    "a command ends a contract again": () => command(`contract end ${third} --yes`),
    "a command voids a batch again": () => command(`batch void ${batchId} --yes`),
    "a command erases nothing": () => command(`person erase --org ${organizationId} --ref none --yes`),
  };
}

it("the issuer API and console forms answer 503, and voucherctl exits 69, while no standby confirms", async () => {
  const { faces } = opened;
  const partner = await makePartner(faces.db);
  const calls = Object.entries(await makeCalls(faces, partner));
  const answers: [string, unknown][] = [];
  for (const [what, call] of calls) answers.push([what, (await whileWaitsEnd(faces.db, call)).result]);
  expect(answers).toEqual(calls.map(([what]) => [what, what.startsWith("a command") ? 69 : 503]));
  const { rows } = await faces.db.query("SELECT status FROM referrer_contracts UNION ALL SELECT status FROM vouchers");
  expect(rows.map(({ status }) => status)).toEqual(["Ended", "Ended", "Ended", "Voided", "Voided"]);
  // Reads that need no confirmation work without a standby.
  expect((await faces.voucherctl.run(`contract list --brand ${partner.brandId}`)).exitCode).toBe(0);
  const page = await browse(`${faces.api.url}/ops/organizations`, { headers: basic(OPS_TOKEN) });
  expect(page.status).toBe(200);
});

it("a read is not confirmed if Postgres restarts during the read", async () => {
  const { postgres, acts } = opened;
  // This pool's commits do not wait for a standby, so a read is confirmed.
  await expect(confirmed(acts.db, async () => "as before")).resolves.toBe("as before");
  await expect(confirmed(acts.db, () => postgres.restart())).rejects.toBeInstanceOf(UnusableDatabase);
});
