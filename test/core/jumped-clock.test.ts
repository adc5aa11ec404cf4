import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { hashSecret } from "../../src/core/keys/api-keys.ts";
import { findKeysBySecret } from "../../src/core/keys/db/api-keys.ts";
import { openRedeemCommitter, runRedeemJob } from "../../src/core/redeem/redeem-committer.ts";
import { openReservationCommitter } from "../../src/core/reserve/reservation-committer.ts";
import { resolveVouchers } from "../../src/core/voucher/db/vouchers.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { pickFreeVouchers, pickVoucher } from "../../src/marketplace/db/acquisitions.ts";
import { answerFromRead } from "../../src/marketplace/decide-acquisitions.ts";
import { openSweepTasks, sweep } from "../../src/open/open-sweep.ts";
import { DatabaseClock } from "../../src/platform/db/database-clock.ts";
import { openPool } from "../../src/platform/db/pool.ts";
import { openLogger } from "../../src/platform/logger.ts";
import { findTarget } from "../../src/webhooks/db/webhook-deliveries.ts";
import { makeContract, newUser, OPEN, offerBatch } from "../support/marketplace.ts";
import { bypassTriggers, databaseTime } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { openWorkerContext, testConfig, type WorkerContext } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

// The processes wrongly believe that the database's clock has jumped ahead by 400 days. For them, what ended in the
// last 400 days has not ended yet.

const JUMP_MS = 400 * 86_400_000;
/** How far a decision's time may be ahead of the process's own time, plus a test's duration. Milliseconds. */
const SLACK_MS = 120_000;

let servers: TestServers;
let partner: TestPartner;
let right: WorkerContext;
/** A worker that has seen the clock jump ahead by 400 days. */
let jumped: WorkerContext;

beforeAll(async () => {
  servers = await openTestServers();
  right = openWorkerContext(testConfig(servers));
  servers.onClose(() => right.close());
  await right.deployment.ready();
  const clock = new DatabaseClock(undefined, () => Date.now() - JUMP_MS);
  clock.observe({ now: await databaseTime(servers.db), trustedAt: null, closedUntil: new Date(0) });
  expect(Math.abs(clock.aheadMs - JUMP_MS)).toBeLessThan(SLACK_MS);
  const pool = openPool({
    databaseUrl: servers.databaseUrl,
    max: 4,
    applicationName: "jumped",
    use: "service",
    deployment: { admit: async () => undefined, clock },
    log: openLogger("silent", "jumped"),
  });
  servers.onClose(() => pool.end());
  const deployment = Object.create(right.deployment, {
    clock: { value: clock },
    serverIdOf: { value: () => right.deployment.serverId },
    serverId: { value: right.deployment.serverId },
    id: { value: right.deployment.id },
  });
  const service = { ...right, pool, deployment };
  const queueLinks = { ...service, shards: service.config.queueShards[0] };
  jumped = { ...service, sweepTasks: openSweepTasks({ ...service, queueLinks }) };
});

afterAll(() => servers.close());

beforeEach(async () => {
  await close("timestamptz 'epoch'");
  partner = await makePartner(servers.db);
});

it("a sweep expires, ends and deletes nothing because of a jump of the database's clock", async () => {
  const { db } = servers;
  const { id } = await issueExpired();
  const reserved = await issueVoucher(db, partner);
  await insertOverdue(reserved.id);
  const contractId = await makeContract(db, partner.brandId, newUser(), "Active", await hoursAgo(1));
  await bypassTriggers(db, "UPDATE reference_generation SET started_at = now() - interval '2 hours'");
  const endpointId = await insertEndpoint();
  await insertDelivery(endpointId, "31 days", "'Failed', NULL, now()");
  await insertDelivery(endpointId, "1 hour", "'Pending', now() - interval '1 hour', NULL");
  const done = async (ctx: WorkerContext) => {
    const { items, failures } = await sweep(ctx as Parameters<typeof sweep>[0]);
    const { rows } = await db.query("SELECT generation::int AS n FROM reference_generation");
    const { expireReservations, recordExpiries, endContracts, requestWebhooks, removeDeliveries } = items;
    const [{ status }] = (await db.query("SELECT status FROM referrer_contracts WHERE id = $1", [contractId])).rows;
    return {
      failures,
      items: { expireReservations, recordExpiries, endContracts, requestWebhooks, removeDeliveries },
      status,
      generation: rows[0].n,
      events: (await readRecorded(db, id)).events.length,
    };
  };
  const nothing = {
    expireReservations: 0,
    recordExpiries: 0,
    endContracts: 0,
    requestWebhooks: 0,
    removeDeliveries: 0,
  };
  const before = await done(jumped);
  expect(before).toMatchObject({ failures: {}, items: nothing, status: "Active", events: 1 });
  const all = { expireReservations: 1, recordExpiries: 1, endContracts: 1, requestWebhooks: 1, removeDeliveries: 1 };
  const after = { failures: {}, items: all, status: "Ended", generation: before.generation + 1, events: 2 };
  expect(await done(right)).toEqual(after);
});

it("a voucher that is expired only by a clock jump is redeemed, with the time before the jump", async () => {
  const { id } = await issueExpired();
  const committer = openRedeemCommitter({ ...jumped, onAnnounced: () => undefined });
  const job = redeemJob(partner, newId("key"), id, "order-1");
  const deadlineMs = Date.now() - JUMP_MS + SLACK_MS;
  const reply = await runRedeemJob({ ...jumped, redeemCommitter: committer }, newAttempt(id), { ...job, deadlineMs });
  expect(reply).toMatchObject({ kind: "redeemed" });
  expectBeforeJump((await readRecorded(servers.db, id)).redemption?.redeemedAt as Date);
  const { rows } = await servers.db.query("SELECT max(occurred_at) AS at FROM voucher_events WHERE voucher_id = $1", [
    id,
  ]);
  expect(rows[0].at.getTime()).toBeGreaterThan(0);
});

it("a reservation made during a clock jump starts at the time before the jump", async () => {
  const { id } = await issueExpired();
  const committer = openReservationCommitter({ ...jumped });
  const { organizationId } = partner;
  const outcome = await committer.submit({
    kind: "open",
    voucherId: id,
    organizationId,
    namedTicket: null,
    ticket: newId("rsv"),
    keyId: "key",
    tokenSecretId: "none",
    seconds: 900,
  });
  if (outcome.kind !== "opened") throw new Error(`the outcome is ${outcome.kind}`);
  expectBeforeJump(outcome.reservation.startedAt);
});

it("keys, look-ups, offers and webhook signatures are judged by the time before a clock jump", async () => {
  const { db } = servers;
  const { id, code } = await issueExpired();
  const codeKey = (await db.query("SELECT code_key FROM vouchers WHERE id = $1", [id])).rows[0].code_key;
  const named = { organizationId: partner.organizationId, codeKey, ticket: null, externalRef: null };
  expect(code).not.toBe("");
  expectBeforeJump((await resolveVouchers(jumped.pool, [named]))[0]?.now as Date);
  const { key } = await makeKey(db, partner.organizationId, { expiresAt: await hoursAgo(1) });
  expect((await findKeysBySecret(right.pool, [hashSecret(key)])).size).toBe(0);
  expect((await findKeysBySecret(jumped.pool, [hashSecret(key)])).size).toBe(1);
  const { batchId } = await offerBatch(db, partner, 1, { windows: OPEN });
  await expireBatch(batchId);
  const request = { userId: newUser(), way: "product" as const, id: partner.productId, paymentRef: null };
  const windowOpen = "UPDATE batch_windows SET opens_at = NULL, closes_at = NULL WHERE batch_id = $1";
  await bypassTriggers(db, windowOpen, [batchId]);
  expect((await answerFromRead(right.pool, [request]))[0]).toMatchObject({ kind: "refused" });
  expect((await answerFromRead(jumped.pool, [request]))[0]).toMatchObject({ batchIds: [batchId] });
  expectBeforeJump((await findTarget(jumped.pool, await insertEndpoint()))?.now as Date);
});

it("users get no voucher whose reservation has ended only by a clock jump", async () => {
  const { db } = servers;
  const { batchId } = await offerBatch(db, partner, 1, { windows: OPEN });
  await insertOverdue((await db.query("SELECT id FROM vouchers WHERE batch_id = $1", [batchId])).rows[0].id);
  const request = { userId: newUser(), way: "product" as const, id: partner.productId, paymentRef: null };
  expect((await answerFromRead(jumped.pool, [request]))[0]).toEqual({ kind: "refused", code: "sold_out" });
  const free = { batchId, except: [], limit: 2 };
  expect([await pickFreeVouchers(jumped.pool, free), await pickVoucher(jumped.pool, free)]).toEqual([[], null]);
  expect((await answerFromRead(right.pool, [request]))[0]).toMatchObject({ batchIds: [batchId] });
  expect(await pickFreeVouchers(right.pool, free)).toEqual([await pickVoucher(right.pool, free)]);
});

it("nothing is redeemed while the database's clock is days behind closed_until", async () => {
  const { id } = await issueExpired();
  await close("now()");
  const committer = openRedeemCommitter({ ...jumped, onAnnounced: () => undefined });
  const job = redeemJob(partner, newId("key"), id, "order-2");
  const reply = runRedeemJob({ ...jumped, redeemCommitter: committer }, newAttempt(id), job);
  await expect(reply).rejects.toThrow("trust-clock");
  expect((await readRecorded(servers.db, id)).redemption).toBeNull();
});

it("after a clock is set back, a voucher that expired before closed_until is not redeemed", async () => {
  const { db } = servers;
  const { id, batchId } = await issueExpired();
  // This update has the effect of a clock that was set back by an hour.
  await bypassTriggers(db, "UPDATE batches SET valid_until = now() + interval '30 minutes' WHERE id = $1", [batchId]);
  await close("now() + interval '1 hour'");
  const committer = openRedeemCommitter({ ...right, onAnnounced: () => undefined });
  const job = redeemJob(partner, newId("key"), id, "order-3");
  const deadlineMs = Date.now() + 2 * 3_600_000;
  const reply = await runRedeemJob({ ...right, redeemCommitter: committer }, newAttempt(id), { ...job, deadlineMs });
  expect(reply).toEqual({ kind: "refused", code: "voucher_expired" });
});

/** Sets the closed time. */
const close = (until: string) =>
  bypassTriggers(
    servers.db,
    `UPDATE redemptions_closed SET closed_until = date_trunc('second', ${until}), complete_until = 'epoch'`,
  );

function expectBeforeJump(time: Date): void {
  expect(Math.abs(time.getTime() - (Date.now() - JUMP_MS))).toBeLessThan(SLACK_MS);
}

/** Issues a voucher that expired an hour ago. */
async function issueExpired(): Promise<{ id: string; code: string; batchId: string }> {
  const { id, code } = await issueVoucher(servers.db, partner);
  const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [id]);
  await expireBatch(rows[0].batch_id);
  return { id, code, batchId: rows[0].batch_id };
}

const expireBatch = (batchId: string) =>
  bypassTriggers(servers.db, "UPDATE batches SET valid_until = now() - interval '1 hour' WHERE id = $1", [batchId]);

const hoursAgo = async (hours: number) => new Date((await databaseTime(servers.db)).getTime() - hours * 3_600_000);

async function insertEndpoint(): Promise<string> {
  const id = newId("whk");
  await servers.db.query(
    "INSERT INTO webhook_endpoints (id, organization_id, place, url, event_types) VALUES ($1, $2, 1, $3, '{}')",
    [id, partner.organizationId, "https://receiver.test/"],
  );
  return id;
}

/** Inserts a Live reservation that ended an hour ago. */
const insertOverdue = (voucherId: string) =>
  servers.db.query(
    `INSERT INTO reservations
       (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
     SELECT date_trunc('second', now()) - interval '2 hours', date_trunc('second', now()) - interval '1 hour', $1, $2,
            $3, 'key', 'Live', 'none'`,
    [newId("rsv"), voucherId, partner.organizationId],
  );

const insertDelivery = (endpointId: string, age: string, state: string) =>
  servers.db.query(
    `INSERT INTO webhook_deliveries
       (position, created_at, sequence, endpoint_id, event_id, voucher_id, event_type, state, next_attempt_at,
        finished_at)
     SELECT 1, now() - $3::interval, 1, $1, $2, $2, 'voucher.instance.voided', ${state}`,
    [endpointId, crypto.randomUUID(), age],
  );
