import { createHmac } from "node:crypto";
import { expect, it } from "vitest";
import { newId } from "../../../src/core/voucher/ids.ts";
import { partnerClient, type Reply } from "../../support/client.ts";
import { findBatchOf } from "../../support/recorded.ts";
import { dumpRows } from "../../support/row-dump.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";
import { voidVoucher } from "../../support/void-voucher.ts";

/** The default secret of the tests' processes. */
const SECRET = "test-reservation-token-secret";

// Reservations of the second API end after one second.
const service = useService({ apis: [{}, { RESERVATION_SECONDS: "1" }] });
const { servers, partner, keys, issue, rival: till, till: shop } = service;
const hasty = service.apis[1];

const readLease = (voucherId: string) => servers.redis.get(servers.leaseKey(voucherId));
const hasLease = async (voucherId: string) => (await servers.redis.exists(servers.leaseKey(voucherId))) === 1;

it("reserve holds a voucher for 15 minutes, with a ticket, a lease and a token that is not stored", async () => {
  const voucher = await issue();
  const tables = ["vouchers", "voucher_events", "redemptions"] as const;
  const before = await dumpRows(servers.db, tables);
  const { status, body } = await shop.reserve(voucher.code);
  expect(await dumpRows(servers.db, tables)).toEqual(before);
  expect(status).toBe(200);
  expect(body).toStrictEqual({
    ticket: expect.stringMatching(/^rsv_[0-9a-z]{26}$/),
    token: createHmac("sha256", SECRET).update(body.ticket).digest("base64url"),
    expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    voucher: voucher.id,
  });
  const row = await readReservation(body.ticket);
  expect(row).toMatchObject({
    voucher_id: voucher.id,
    organization_id: partner.organizationId,
    key_id: keys.till.id,
    state: "Live",
    ended_at: null,
    end_reason: null,
  });
  const lease = await readLease(voucher.id);
  expect(lease).toBe(`${body.ticket} ${keys.till.id}`);
  const leftMs = await servers.redis.pttl(`lease:{${voucher.id}}:${servers.deploymentId}`);
  expect(leftMs).toBeLessThanOrEqual(900_000);
  expect(leftMs).toBeGreaterThan(900_000 - 20_000);
  expect(JSON.stringify([row, lease])).not.toContain(body.token);
  expect(row.expires_at.toISOString()).toBe(body.expiresAt);
  expect(row.expires_at.getTime() - row.started_at.getTime()).toBe(15 * 60 * 1_000);
  const { rows } = await servers.db.query("SELECT clock_timestamp() - $1::timestamptz AS age", [row.started_at]);
  expect(rows[0].age.minutes ?? 0).toBe(0);
});

it("reserve writes no reservation and no lease if no secret for tokens is configured", async () => {
  const voucher = await issue();
  const bare = await startApi(servers);
  bare.ctx.tokenSecrets.length = 0;
  const { status, body } = await partnerClient(bare.url, keys.till.key).reserve(voucher.code);
  await bare.close();
  expect({ status, code: body.code }).toEqual({ status: 500, code: "internal_error" });
  expect(await countReservations(voucher.id)).toBe(0);
  expect(await hasLease(voucher.id)).toBe(false);
});

it("reserve answers simultaneous calls of one key with the same ticket, token and end", async () => {
  const voucher = await issue();
  const first = (await shop.reserve(voucher.code)).body;
  const lease = await readLease(voucher.id);
  await servers.redis.pexpire(servers.leaseKey(voucher.id), 500_000);
  const names = [first.ticket, ...Array(12).fill(voucher.code.toLowerCase())];
  for (const { status, body } of await Promise.all(names.map((name) => shop.reserve(name)))) {
    expect({ status, body }).toEqual({ status: 200, body: first });
  }
  expect(await countReservations(voucher.id)).toBe(1);
  expect(await readLease(voucher.id)).toEqual(lease);
  expect(await servers.redis.pttl(servers.leaseKey(voucher.id))).toBeLessThanOrEqual(500_000);
});

it("reserve refuses another key of the organization with 409 voucher_reserved and changes nothing", async () => {
  const voucher = await issue();
  const { ticket } = (await shop.reserve(voucher.code)).body;
  const before = await dumpRows(servers.db);
  const lease = await readLease(voucher.id);
  expectRefused(await till.reserve(voucher.code), "voucher_reserved");
  expectRefused(await till.reserve(ticket), "voucher_reserved");
  expect(await dumpRows(servers.db)).toEqual(before);
  expect(await readLease(voucher.id)).toEqual(lease);
});

it("reserve refuses used, voided and expired vouchers with their own error codes, and writes no lease", async () => {
  const [used, voided] = [await issue(), await issue()];
  const [expired, held] = [await issue({ validUntil: new Date(Date.now() - 1_000) }), await issue()];
  expect((await till.redeem({ code: used.code, externalRef: "used-before-reserve" })).status).toBe(200);
  await voidVoucher(provisioning(servers.db), partner.organizationId, voided.code, null);
  await shop.reserve(held.code);
  const batchId = await findBatchOf(servers.db, held.id);
  await servers.db.query("UPDATE batches SET valid_until = now() WHERE id = $1", [batchId]);
  const before = await dumpRows(servers.db);
  expectRefused(await shop.reserve(used.code), "voucher_used");
  expectRefused(await shop.reserve(voided.code), "voucher_voided");
  for (const { code } of [expired, held]) expectRefused(await shop.reserve(code), "voucher_expired");
  expect(await dumpRows(servers.db)).toEqual(before);
  for (const { id } of [used, voided, expired]) expect(await hasLease(id)).toBe(false);
});

it("reserve refuses an ended reservation's ticket: reservation_ended, or voucher_used if it redeemed", async () => {
  const [released, consumed, overdue] = [await issue(), await issue(), await issue()];
  const releasedTicket = (await shop.reserve(released.code)).body.ticket;
  await shop.release(releasedTicket);
  const consumedTicket = (await shop.reserve(consumed.code)).body.ticket;
  await shop.redeem({ ticket: consumedTicket, externalRef: "consumed-before-reserve" });
  const overdueTicket = (await partnerClient(hasty.url, keys.till.key).reserve(overdue.code)).body.ticket;
  await until(async () => (await shop.lookUp(overdue.code)).body.reservation === null);

  expectRefused(await shop.reserve(releasedTicket), "reservation_ended");
  expectRefused(await till.reserve(releasedTicket), "reservation_ended");
  expectRefused(await shop.reserve(overdueTicket), "reservation_ended");
  expectRefused(await shop.reserve(consumedTicket), "voucher_used");
  expect(await countReservations(released.id)).toBe(1);
});

it("reserve after a release opens a new reservation with a new ticket, for any key", async () => {
  const voucher = await issue();
  const first = (await shop.reserve(voucher.code)).body;
  await shop.release(first.ticket);
  const second = await till.reserve(voucher.code);
  expect(second.status).toBe(200);
  expectRefused(await till.reserve(first.ticket), "reservation_ended");
  await till.release(second.body.ticket);
  const third = await shop.reserve(voucher.code);
  expect(third.status).toBe(200);
  const all = [first, second.body, third.body];
  expect(new Set(all.map(({ ticket }) => ticket)).size).toBe(3);
  expect(new Set(all.map(({ token }) => token)).size).toBe(3);
});

it("reserve after a reservation's end succeeds for another key, and records the first as Expired", async () => {
  const voucher = await issue();
  const first = (await partnerClient(hasty.url, keys.till.key).reserve(voucher.code)).body;
  expect(await servers.redis.pttl(servers.leaseKey(voucher.id))).toBeLessThanOrEqual(1_000);
  const second = await until(async () => {
    const reply = await till.reserve(voucher.code);
    return reply.status === 200 ? reply : null;
  });
  expect(second.body.ticket).not.toBe(first.ticket);
  const old = await readReservation(first.ticket);
  expect(old.state).toBe("Expired");
  // The row has the reservation's end, not the time at which the end was recorded.
  expect(old.ended_at).toEqual(old.expires_at);
  const fresh = await readReservation(second.body.ticket);
  expect(fresh).toMatchObject({ state: "Live", key_id: keys.rival.id });
  expect(fresh.started_at.getTime()).toBeGreaterThanOrEqual(old.expires_at.getTime());
});

it("reserve by the same key after a reservation's end makes a new one, and never extends the first", async () => {
  const voucher = await issue();
  const client = partnerClient(hasty.url, keys.till.key);
  const first = (await client.reserve(voucher.code)).body;
  const second = await until(async () => {
    const { body } = await client.reserve(voucher.code);
    if (body.ticket === first.ticket) expect(body).toEqual(first);
    return body.ticket === first.ticket ? null : body;
  });
  expect(new Date(second.expiresAt).getTime()).toBeGreaterThanOrEqual(new Date(first.expiresAt).getTime() + 1_000);
});

it("reserve deletes its lease in Redis if the reservation's row cannot be written", async () => {
  const voucher = await issue();
  await servers.db.query(`
      CREATE FUNCTION refuse_this_reservation() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'not this one'; END $$`);
  await servers.db.query(`
      CREATE TRIGGER refuse_this_reservation BEFORE INSERT ON reservations
        FOR EACH ROW WHEN (NEW.voucher_id = '${voucher.id}') EXECUTE FUNCTION refuse_this_reservation()`);
  const { status, body } = await shop.reserve(voucher.code);
  expect({ status, code: body.code }).toEqual({ status: 500, code: "internal_error" });
  expect(JSON.stringify(body)).not.toContain("not this one");
  expect(await hasLease(voucher.id)).toBe(false);
  await servers.db.query("DROP TRIGGER refuse_this_reservation ON reservations");
  expect((await till.reserve(voucher.code)).status).toBe(200);
});

it("a lease in Redis without a reservation does not refuse its own key", async () => {
  const voucher = await issue();
  await servers.redis.set(servers.leaseKey(voucher.id), `${newId("rsv")} ${keys.till.id}`, "PX", 900_000);
  const { status, body } = await shop.reserve(voucher.code);
  expect(status).toBe(200);
  expect(await readReservation(body.ticket)).toMatchObject({ state: "Live", key_id: keys.till.id });
});

it("a reservation stays valid for its key, and refuses other keys, after Redis has lost all data", async () => {
  const voucher = await issue();
  const held = (await shop.reserve(voucher.code)).body;
  await servers.redis.flushdb();
  expectRefused(await till.reserve(voucher.code), "voucher_reserved");
  expectRefused(await till.redeem({ code: voucher.code, externalRef: "after-flush" }), "voucher_reserved");
  expect((await shop.lookUp(voucher.code)).body.reservation).toMatchObject({ ticket: held.ticket });
  const { status, body } = await shop.reserve(voucher.code);
  expect({ status, body }).toEqual({ status: 200, body: held });
  expect(await countReservations(voucher.id)).toBe(1);
  expect((await shop.redeem({ ticket: held.ticket, externalRef: "after-flush" })).status).toBe(200);
});

it("a reservation keeps its token after the secrets are rotated, and new reservations use the new secret", async () => {
  const NEXT = "the-next-reservation-token-secret";
  const [held, fresh] = [await issue(), await issue()];
  const before = (await shop.reserve(held.code)).body;
  // First every process learns the new secret, then the secret moves to the front.
  for (const secrets of [`${SECRET},${NEXT}`, `${NEXT},${SECRET}`]) {
    const rotated = await startApi(servers, { RESERVATION_TOKEN_SECRET: secrets });
    const client = partnerClient(rotated.url, keys.till.key);
    expect(await client.reserve(held.code)).toMatchObject({ status: 200, body: before });
    const { ticket, token } = (await client.reserve(fresh.code)).body;
    const [signing = ""] = secrets.split(",");
    expect(token).toBe(createHmac("sha256", signing).update(ticket).digest("base64url"));
    await client.release(ticket);
    await rotated.close();
  }
  // Replaces this file's worker, so that a worker with the rotated secrets processes the job.
  await service.worker.close();
  await startWorkers(servers, { RESERVATION_TOKEN_SECRET: `${NEXT},${SECRET}` });
  const { ticket, token } = before;
  const { status, body } = await till.redeem({ ticket, token, externalRef: "after-rotation" });
  expect({ status, confirmed: body.alreadyConfirmed }).toEqual({ status: 200, confirmed: false });
});

const readReservation = async (ticket: string) =>
  (await servers.db.query("SELECT * FROM reservations WHERE ticket = $1", [ticket])).rows[0];

const countReservations = async (voucherId: string) =>
  (await servers.db.query("SELECT FROM reservations WHERE voucher_id = $1", [voucherId])).rowCount;

function expectRefused({ status, body }: Reply, code: string): void {
  expect({ status, body }).toEqual({
    status: 409,
    body: { error: expect.any(String), code, requestId: expect.any(String) },
  });
}
