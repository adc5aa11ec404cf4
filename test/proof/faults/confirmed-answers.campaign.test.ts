import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { acquireVoucher } from "../../../src/marketplace/acquire-voucher.ts";
import type { AcquisitionRequest } from "../../../src/marketplace/decide-acquisitions.ts";
import { ERRORS } from "../../../src/platform/api/errors.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { deliverToTarget } from "../../../src/webhooks/deliver.ts";
import { basic, browse } from "../../support/browse.ts";
import { partnerClient, send } from "../../support/client.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { makeReferral, offerBatch } from "../../support/marketplace.ts";
import { openTestServers } from "../../support/servers.ts";
import { startApi, startWorkers, type TestApi } from "../../support/service.ts";
import { whileWaitsEnd } from "../../support/standby-waits.ts";
import { findSteadyPort } from "../../support/steady-port.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { startReceiver, WEBHOOK_ENV } from "../../support/webhook-receiver.ts";
import { FaultPostgres } from "./fault-postgres.ts";

// Tests each answer in the list "What is told as final is confirmed" of docs/design/final-answers.md.

/** The answers that need a confirmation, by the table in docs/design/final-answers.md. */
const [, TABLE = ""] = /\n## What is told as final is confirmed\n([\s\S]*?)\n## /.exec(
  readFileSync("docs/design/final-answers.md", "utf8"),
) ?? [""];
const CONFIRMED = Array.from(TABLE.matchAll(/^\| (.*?) \| [^|]*\bconfirmation\b/gm), ([, names = ""]) =>
  names.split(", ").map((name) => name.replaceAll("`", "")),
).flat();

type Answer = { status: number; text: string };

/** Finds the session of a redeem whose COMMIT waits, by the lock that the trigger on redemptions acquires. */
const WAITING_REDEEM = `
  SELECT FROM pg_stat_activity AS a JOIN pg_locks AS l USING (pid)
   WHERE a.wait_event = 'SyncRep' AND l.locktype = 'advisory' AND l.classid::bigint >> 16 = 21092`;

/** Ways to end a COMMIT's wait for the standby without the standby. */
const CUT_OFF: Record<string, (started: Started) => Promise<unknown>> = {
  "its session is terminated": ({ db }) => whileWaitsEnd(db, () => until(async () => (await countRedeemed(db)) === 1)),
  "the primary restarts": async ({ postgres, db }) => {
    await until(async () => (await db.query(WAITING_REDEEM)).rowCount);
    await postgres.kill();
    await postgres.start();
    await until(() => countRedeemed(db).catch(() => null));
  },
};

it.each(
  Object.keys(CUT_OFF),
)("a redemption whose COMMIT waits for a standby is in no answer and no webhook, even if %s", async (how) => {
  const started = await start();
  const { postgres, db, api, receiver } = started;
  const { till, id, code, order, calls, active } = await makeCalls(started);
  expect(Object.keys(calls).toSorted()).toEqual(CONFIRMED.toSorted());

  postgres.cutOffStandby();
  const redeeming = till.redeem(order);
  await CUT_OFF[how]?.(started);
  expect((await whileWaitsEnd(db, () => redeeming)).result?.status).toBe(503);
  const { rows } = await db.query("SELECT status, redeem_code FROM vouchers JOIN redemptions ON voucher_id = id");
  expect(rows).toEqual([{ status: "Redeemed", redeem_code: expect.any(String) }]);

  // Waits until the sweeper and the fan-out have created the event's deliveries.
  await whileWaitsEnd(db, () => until(async () => (await db.query("SELECT FROM webhook_deliveries")).rowCount));
  const told: Record<string, unknown> = {};
  for (const [name, call] of Object.entries(calls)) {
    const { result } = await whileWaitsEnd(db, () => call().catch(() => ({ status: 503 })));
    told[name] = result?.status;
  }
  expect(told).toEqual(Object.fromEntries(CONFIRMED.map((name) => [name, 503])));
  expect(await till.lookUp(active.code)).toMatchObject({ status: 200, body: { voucher: { status: "Active" } } });
  // An act gives up by itself, even if its wait never ends.
  expect(await calls.renameBrand?.()).toMatchObject({ status: 503 });

  await postgres.promoteStandby();
  await until(async () => (await fetch(`${api.url}/readyz`)).status === 200);
  await until(async () => (await till.lookUp(code)).status === 200);
  expect(await countRedeemed(db)).toBe(0);
  expect(await till.lookUp(code)).toMatchObject({ body: { voucher: { status: "Active" } } });
  await untilRedeemed(started);
  expect(await till.redeem({ code, externalRef: "order-2" })).toMatchObject({
    status: 200,
    body: { alreadyConfirmed: false },
  });
  await until(() => receiver.received.length > 0);
  expect(receiver.received.map(({ voucherId, body }) => [voucherId, body.data.externalRef])).toEqual([[id, "order-2"]]);
  const lost = rows[0].redeem_code;
  for (const [name, call] of Object.entries(calls)) {
    if (name === "redeemVoucher") continue;
    const { status, text } = await call();
    expect([200, 303, 404, 409], `${name}: ${text}`).toContain(status);
    expect(text, name).not.toContain(lost);
  }
});

/** Starts a primary whose commits wait for a standby, a service with its own Redis, and a receiver of webhooks. */
async function start() {
  const directory = mkdtempSync(join(tmpdir(), "voucher-confirmed-"));
  // Under root, Postgres runs as another user, who must read this folder.
  chmodSync(directory, 0o755);
  const postgres = new FaultPostgres(join(directory, "postgres"), await findSteadyPort(), { standby: true });
  await postgres.start();
  const [servers, receiver] = [await openTestServers(), await startReceiver()];
  await migrateDatabase(postgres.url);
  /** Commits of this pool wait for no standby. */
  const db = openLastingPool({ connectionString: postgres.url, options: "-c synchronous_commit=local" });
  onTestFinished(async () => {
    await servers.closeOpened();
    await Promise.all([servers.close(), receiver.close(), db.end()]);
    await postgres.close();
    rmSync(directory, { recursive: true, force: true });
  });
  const reached = { ...servers, databaseUrl: postgres.url, adminUrl: postgres.url };
  const env = { ...WEBHOOK_ENV, REDEEM_WAIT_MS: "5000", ISSUER_API: "true" };
  const [api, worker] = await Promise.all([
    startApi(reached, env),
    startWorkers(reached, { ...env, WORKER_QUEUES: "redeem,seal,sweep,webhook", SWEEP_INTERVAL_MS: "500" }),
  ]);
  return { postgres, db, api, worker, receiver };
}

type Started = Awaited<ReturnType<typeof start>>;

/** Waits until the worker redeems again, for another organization than the one whose webhooks the test counts. */
async function untilRedeemed({ db, api }: Started): Promise<void> {
  const other = await makePartner(db);
  const { code } = await issueVoucher(db, other);
  const till = partnerClient(api.url, (await makeKey(db, other.organizationId)).key);
  await untilStarted(async () => (await till.redeem({ code, externalRef: "first" })).status === 200);
}

/** Makes every call that acquires one of the partner's vouchers, each for a new user. */
async function makeAcquisitions(api: TestApi, db: pg.Pool, own: TestPartner) {
  const { listingId } = await offerBatch(db, own, 4);
  const link = await makeReferral(db, own);
  const acquire = (request: Omit<AcquisitionRequest, "userId">, userId: string) =>
    acquireVoucher(api.ctx, { userId, ...request } as AcquisitionRequest).then(
      (found) => ({ status: 200, text: JSON.stringify(found) }),
      ({ code, status = ERRORS[code as keyof typeof ERRORS].status }) => ({ status, text: String(code) }),
    );
  const acquisitions: Record<string, () => Promise<Answer>> = {
    claimProduct: () => acquire({ way: "product", id: own.productId, paymentRef: null }, "a"),
    claimByLink: () => acquire({ way: "link", id: link.code, paymentRef: null }, "b"),
    buyProduct: () => acquire({ way: "product", id: own.productId, paymentRef: "payment-1" }, "c"),
    buyListing: () => acquire({ way: "listing", id: listingId, paymentRef: "payment-2" }, "d"),
  };
  return acquisitions;
}

/** Makes each change of the issuer API. Returns calls that repeat the changes, and a call that voids the voucher. */
async function makeIssuerCalls(api: TestApi, db: pg.Pool, own: TestPartner, voucherId: string) {
  const { key } = await makeKey(db, own.organizationId, { scopes: ["voucher.issue"] });
  const call = async (method: "GET" | "POST", path: string, body?: object): Promise<Answer> => {
    const answer = await send(method, `${api.url}/issuer/${path}`, { key, ...(body && { body }) });
    return { status: answer.status, text: JSON.stringify(answer.body) };
  };
  const get = (path: string) => call("GET", path);
  const post = (path: string, body: object = {}) => call("POST", path, body);
  const make = async (path: string, body: object = {}): Promise<string> => {
    const answer = await post(path, body);
    expect(answer).toMatchObject({ status: 200 });
    return JSON.parse(answer.text).id;
  };
  const { brandId, productId } = own;
  const issued = { issueRef: "batch-1", count: 1, validUntil: "2099-12-31" };
  const product = { name: "Pass", key: "again", type: "Service", retailPriceUsd: 1, priceUsd: 1 };
  const batchId = await make(`products/${productId}/batches`, issued);
  const [accepted, declined, ended] = await Promise.all(
    ["accepted", "declined", "ended"].map((user) => make(`brands/${brandId}/contracts`, { user })),
  );
  await make(`brands/${brandId}/products`, product);
  await make(`batches/${batchId}/listings`);
  await make(`contracts/${accepted}/accept`);
  await make(`contracts/${declined}/decline`);
  await make(`contracts/${ended}/accept`);
  await make(`contracts/${ended}/end`);
  const issuedCode = JSON.parse((await get(`batches/${batchId}/vouchers`)).text).items[0].code;
  const validUntil = "2100-12-31";
  const extendVoucher = () => post("vouchers/extend", { id: voucherId, validUntil });
  const extendBatch = () => post(`batches/${batchId}/extend`, { validUntil });
  expect([await extendVoucher(), await extendBatch()]).toMatchObject([{ status: 200 }, { status: 200 }]);
  return {
    extendVoucher,
    extendBatch,
    suspendVoucher: () => post("vouchers/suspend", { id: voucherId, reason: "stolen" }),
    resumeVoucher: () => post("vouchers/resume", { id: voucherId }),
    suspendBatch: () => post(`batches/${batchId}/suspend`, { reason: "stolen" }),
    resumeBatch: () => post(`batches/${batchId}/resume`),
    issueBatch: () => post(`products/${productId}/batches`, issued),
    voidVoucher: () => post("vouchers/void", { id: voucherId }),
    renameBrand: () => post(`brands/${brandId}/rename`, { name: "Brand" }),
    changeBrand: () => post(`brands/${brandId}/change`, { colour: "#0a7f5a" }),
    createProduct: () => post(`brands/${brandId}/products`, product),
    createListing: () => post(`batches/${batchId}/listings`),
    voidBatch: () => post(`batches/${batchId}/void`),
    offerContract: () => post(`brands/${brandId}/contracts`, { user: "accepted" }),
    acceptContract: () => post(`contracts/${accepted}/accept`),
    declineContract: () => post(`contracts/${declined}/decline`),
    endContract: () => post(`contracts/${ended}/end`),
    createLink: () => post(`contracts/${accepted}/links`, { product: productId }),
    listBrands: () => get("brands"),
    listProducts: () => get("products"),
    listBatches: () => get("batches"),
    readBatch: () => get(`batches/${batchId}`),
    findVouchers: () => get(`vouchers?code=${issuedCode}`),
    listListings: () => get("listings"),
    listContracts: () => get("contracts"),
    listLinks: () => get("links"),
  };
}

/** Creates a voucher that a user has claimed, and every call whose answer would show its redemption under `order`. */
async function makeCalls({ db, api, worker, receiver }: Started) {
  const own = await makePartner(db);
  const { key } = await makeKey(db, own.organizationId);
  const { key: reader } = await makeKey(db, own.organizationId, { scopes: ["voucher.read", "voucher.webhook"] });
  const till = partnerClient(api.url, key);
  const endpoint = await receiver.addEndpoint(db, own.organizationId, ["voucher.instance.redeemed"]);
  const acquisitions = await makeAcquisitions(api, db, own);
  const [claimed] = await Promise.all(Object.values(acquisitions).map((call) => call()));
  const { id, code } = JSON.parse(claimed?.text ?? "").voucher as { id: string; code: string };
  const order = { code, externalRef: "order-1" };
  const get = (path: string, headers: Record<string, string>) => browse(`${api.url}${path}`, { headers });
  const json = (path: string) => get(path, { "x-api-key": reader, accept: "application/json" });
  const portal = (path: string) => get(`/portal${path}`, basic(reader));
  const till200 = (call: Promise<{ status: number; body: unknown }>) =>
    call.then(({ status, body }) => ({ status, text: JSON.stringify(body) }));
  const events = `/integrity/events/VoucherInstance/${id}`;
  const last = 3;
  const calls: Record<string, () => Promise<Answer>> = {
    ...acquisitions,
    lookUpVoucher: () => json(`/partner/vouchers/${code}`),
    reserveVoucher: () => till200(till.reserve(code)),
    redeemVoucher: () => till200(till.redeem(order)),
    releaseReservation: () => till200(till.release(newId("rsv"))),
    ...(await makeIssuerCalls(api, db, own, id)),
    readVoucherEvents: () => json(`/partner/vouchers/${code}/events`),
    readPublicEvents: () => get(events, { accept: "application/json" }),
    "/integrity/events": () => get(events, {}),
    readRedemptionReceipt: () => json(`/partner/redemptions/${order.externalRef}/receipt`),
    readReceiptByReference: () => json(`/partner/redemptions/receipt?externalRef=${order.externalRef}`),
    readEventReceipt: () => json(`/partner/vouchers/${code}/events/${last}/receipt`),
    readEventProof: () => get(`${events}/${last}/proof`, {}),
    readRedemption: () => json(`/partner/redemptions/${order.externalRef}`),
    listRedemptions: () => json("/partner/redemptions"),
    readStatement: () => json("/partner/statements/2026-11"),
    readEvents: () => json("/partner/events"),
    listWebhookDeliveries: () => json(`/partner/webhooks/${endpoint}/deliveries`),
    "/portal": () => portal(""),
    "POST /portal": () => browse(`${api.url}/portal`, { form: { words: order.externalRef }, headers: basic(reader) }),
    "/portal/redemptions": () => portal("/redemptions"),
    "/portal/redemptions.csv": () => portal("/redemptions.csv?from=2026-01-01T00:00:00Z&to=2099-01-01T00:00:00Z"),
    "/portal/statement": () => portal("/statement?month=2026-11"),
    "/portal/statement.csv": () => portal("/statement.csv?month=2026-11"),
    "/portal/activity": () => portal("/activity"),
    "/portal/orders": () => portal(`/orders/${order.externalRef}`),
    "/portal/receipt": () => portal(`/orders/${order.externalRef}/receipt`),
    "/portal/webhooks": () => portal("/webhooks"),
    Webhooks: async () => {
      const sent = await deliverToTarget(worker.ctx as Parameters<typeof deliverToTarget>[0], endpoint).catch(
        () => null,
      );
      return { status: sent === null ? 503 : 200, text: "" };
    },
  };
  const active = await issueVoucher(db, own);
  return { own, till, id, code, order, calls, active };
}

async function countRedeemed(db: pg.Pool): Promise<number> {
  return (await db.query("SELECT FROM redemptions")).rowCount ?? 0;
}
