import { expect, it } from "vitest";
import { extendBatch as batchAct } from "../../src/acts/batch/extend.ts";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { extendBatch } from "../../src/acts/extend-batch.ts";
import { ENDS_SCHEMA } from "../../src/acts/extend-voucher.ts";
import { extendVoucher as voucherAct } from "../../src/acts/voucher/extend.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { connectClient } from "../../src/platform/db/client.ts";
import { findOlderSessions } from "../../src/platform/db/working-sessions.ts";
import { partnerClient } from "../support/client.ts";
import { makeOffer, newUser, signedIn } from "../support/marketplace.ts";
import {
  besideTransaction,
  bypassTriggers,
  lockRows,
  untilPast,
  untilWaiting,
  untilWaitingOr,
  whileLocked,
} from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { issueTestBatch, issueVoucher, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ users: true });
const { api, db, partner, till } = service;

const ctx = () => provisioning(db);
const later = (days: number) => new Date(Date.now() + days * 86_400_000);
const past = () => new Date(Date.now() - 1_000);
const extend = (id: string, validUntil: Date, reason: string | null = null) =>
  voucherAct.run(ctx(), id, { validUntil, reason });
const typesOf = async (id: string) =>
  (await readRecorded(db, id)).events.map(({ eventType }) => eventType.replace("voucher.instance.", ""));

it("an extension makes an expired voucher active again, and the voucher can be redeemed", async () => {
  const ended = past();
  const { id, code } = await issueVoucher(db, partner, { validUntil: ended });
  await recordExpiries(ctx(), 0);
  expect((await till.lookUp(code)).body.voucher).toMatchObject({ status: "Expired" });
  const validUntil = later(30);
  const answer = { id, validUntil: validUntil.toISOString(), extended: true };
  expect(await extend(id, validUntil, "she was ill")).toEqual(answer);
  expect((await till.lookUp(code)).body.voucher).toMatchObject({
    status: "Active",
    validUntil: validUntil.toISOString(),
  });
  const { events } = (await till.events(code)).body;
  expect(events[2]).toMatchObject({ code: "VCH008", actorConnectedId: null, sealStatus: "Sealed" });
  expect(JSON.parse(events[2].payload).data).toMatchObject({
    validUntil: validUntil.toISOString(),
    previousValidUntil: ended.toISOString(),
    reason: "she was ill",
  });
  expect(await till.redeem({ code, externalRef: `extended ${id}` })).toMatchObject({ status: 200 });
  expect(await typesOf(id)).toEqual(["issued", "expired", "extended", "redeemed"]);
});

it("an extension to the voucher's present validUntil changes nothing, and returns the same result", async () => {
  const { id } = await issueVoucher(db, partner);
  const validUntil = later(30);
  const answers = [await extend(id, validUntil), await extend(id, validUntil)];
  expect(answers[1]).toEqual(answers[0]);
  expect(await typesOf(id)).toEqual(["issued", "extended"]);
  const { rows } = await db.query("SELECT before, after FROM audit_entries WHERE entity_id = $1", [id]);
  expect(rows).toMatchObject([{ after: { validUntil: validUntil.toISOString() } }]);
});

it("a reservation stays live while its voucher is extended", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const { ticket, expiresAt } = (await till.reserve(code)).body;
  await extend(id, later(30));
  expect((await till.lookUp(code)).body.reservation).toMatchObject({ ticket, expiresAt });
  expect(await till.redeem({ ticket, externalRef: `reserved ${id}` })).toMatchObject({ status: 200 });
});

it("an extension to an earlier or past time is refused with the name of the wrong field", async () => {
  const { id } = await issueVoucher(db, partner, { validUntil: later(30) });
  await expect(extend(id, later(29))).rejects.toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/^validUntil must be later than 2/),
  });
  await expect(extend(id, past())).rejects.toMatchObject({
    message: expect.stringMatching(/^validUntil is in the past/),
  });
  const { batchId } = await issueTestBatch(db, partner, 1, { validUntil: later(30) });
  const earlier = batchAct.run(ctx(), batchId, { validUntil: later(29), reason: null });
  await expect(earlier).rejects.toMatchObject({ message: expect.stringMatching(/^validUntil must be later than 2/) });
  expect(await typesOf(id)).toEqual(["issued"]);
});

it("an extension of a redeemed or voided voucher is refused, and Postgres keeps its validUntil", async () => {
  const { id, code } = await issueVoucher(db, partner);
  await till.redeem({ code, externalRef: `used ${id}` });
  await expect(extend(id, later(30))).rejects.toMatchObject({ code: "voucher_used" });
  const move = db.query("UPDATE vouchers SET valid_until = now() WHERE id = $1", [id]);
  await expect(move).rejects.toThrow("a redeemed or voided voucher keeps its status and its end");
});

it("the sweeper records an extended voucher's second expiry after the new validUntil", async () => {
  const { id, code } = await issueVoucher(db, partner, { validUntil: past() });
  await recordExpiries(ctx(), 0);
  await extend(id, later(1));
  await recordExpiries(ctx(), 0);
  expect(await typesOf(id)).toEqual(["issued", "expired", "extended"]);
  await bypassTriggers(db, "UPDATE vouchers SET valid_until = now() - interval '1 second' WHERE id = $1", [id]);
  expect((await till.lookUp(code)).body.voucher.status).toBe("Expired");
  expect(await recordExpiries(ctx(), 0)).toBe(1);
  expect(await recordExpiries(ctx(), 0)).toBe(0);
  expect(await typesOf(id)).toEqual(["issued", "expired", "extended", "expired"]);
});

it("the sweeper skips extended vouchers that were redeemed or are locked", async () => {
  const { vouchers } = await issueTestBatch(db, partner, 3);
  const [used, locked, free] = vouchers.map(({ id }) => id) as [string, string, string];
  for (const id of [used, locked, free]) await extend(id, later(30));
  await till.redeem({ code: vouchers[0]?.code ?? "", externalRef: `used ${used}` });
  const ended = "UPDATE vouchers SET valid_until = now() - interval '1 second' WHERE id = ANY ($1)";
  await bypassTriggers(db, ended, [[used, locked, free]]);
  expect(await whileLocked(db, [locked], () => recordExpiries(ctx(), 0))).toBe(1);
  expect(await recordExpiries(ctx(), 0)).toBe(1);
  expect(await typesOf(used)).toEqual(["issued", "extended", "redeemed"]);
  expect([await typesOf(locked), await typesOf(free)]).toEqual(Array(2).fill(["issued", "extended", "expired"]));
  const { rows } = await db.query("SELECT FROM vouchers WHERE id = ANY ($1) AND expiry_due", [[used, locked, free]]);
  expect(rows).toEqual([]);
});

it("an erasure of a voucher erases the reason of its extension in the history and the audit trail", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const reason = "Zoë Ötzi was ill";
  const audited = auditedCommand("voucher extend", { id, reason });
  await voucherAct.run({ ...ctx(), audited }, id, { validUntil: later(30), reason });
  await erasePerson(ctx(), { by: "voucher", voucherId: id }, null);
  expect((await till.events(code)).body.events[1]).toMatchObject({ code: "VCH008", payload: null, erasedBy: 3 });
  expect((await till.lookUp(code)).body.voucher).toMatchObject({ status: "Active" });
  const { rows } = await db.query("SELECT arguments->>'reason' AS reason FROM audit_entries WHERE entity_id = $1", [
    id,
  ]);
  expect(rows[0].reason).toMatch(/^erased:/);
});

it("an extension is refused while a process runs whose release has no extensions", async () => {
  const { id } = await issueVoucher(db, partner);
  const session = await connectClient(service.servers.databaseUrl, `worker (schema ${ENDS_SCHEMA - 1})`);
  await expect(extend(id, later(30))).rejects.toMatchObject({ code: "unavailable" });
  await session.end();
  await until(async () => (await findOlderSessions(db, ENDS_SCHEMA)) === null);
  await extend(id, later(30));
});

it("extendBatch extends active and expired vouchers and their batch, and a repeated call changes nothing", async () => {
  const windows = { claim: { opensAt: null, closesAt: null } };
  const { batchId, vouchers } = await issueTestBatch(db, partner, 4, { windows });
  const [used, alone] = vouchers;
  if (used === undefined || alone === undefined) throw new Error("no vouchers");
  await till.redeem({ code: used.code, externalRef: `used ${used.id}` });
  await extend(alone.id, later(60));
  const [before, validUntil] = [(await till.lookUp(used.code)).body.voucher.validUntil, later(30)];
  const run = () => batchAct.run(ctx(), batchId, { validUntil, reason: "closed for repairs" });
  expect(await run()).toEqual({ extended: 2, alreadyFinal: 2 });
  expect(await run()).toEqual({ extended: 0, alreadyFinal: 4 });
  const { rows } = await db.query("SELECT valid_until FROM batches WHERE id = $1", [batchId]);
  expect(rows).toEqual([{ valid_until: validUntil }]);
  expect((await till.lookUp(used.code)).body.voucher).toMatchObject({ status: "Redeemed", validUntil: before });
  const ends = await Promise.all(vouchers.slice(2).map(async ({ code }) => (await till.lookUp(code)).body.voucher));
  expect(ends.map(({ validUntil: end }) => end)).toEqual(Array(2).fill(validUntil.toISOString()));
  expect(await Promise.all(vouchers.map(({ id }) => typesOf(id)))).toEqual([
    ["issued", "redeemed"],
    ...Array(3).fill(["issued", "extended"]),
  ]);
});

it("an interrupted extendBatch leaves consistent data, and the next call completes it", async () => {
  const ended = past();
  const { batchId } = await issueTestBatch(db, partner, 1_010, { validUntil: ended });
  const validUntil = later(30);
  const interrupt = () => {
    throw new Error("interrupted");
  };
  await expect(extendBatch(ctx(), batchId, validUntil, null, interrupt)).rejects.toThrow("interrupted");
  const { rows } = await db.query(
    `SELECT b.valid_until, count(v.valid_until)::int AS extended,
            (SELECT count(*)::int FROM voucher_events AS e JOIN vouchers AS w ON w.id = e.voucher_id
              WHERE w.batch_id = b.id AND e.event_type = 'voucher.instance.extended') AS events
       FROM batches AS b JOIN vouchers AS v ON v.batch_id = b.id WHERE b.id = $1 GROUP BY b.id`,
    [batchId],
  );
  expect(rows).toEqual([{ valid_until: ended, extended: 1_000, events: 1_000 }]);
  expect(await extendBatch(ctx(), batchId, validUntil, null)).toEqual({ extended: 10, alreadyFinal: 1_000 });
});

it("a redeem that waits for an extension uses the validUntil that it reads under the row lock", async () => {
  const { id, answers } = await until(async () => {
    const end = new Date(Date.now() + 1_500);
    const { id, code } = await issueVoucher(db, partner, { validUntil: end });
    const both = await whileLocked(db, [id], async () => {
      const pending = [extend(id, later(30)), till.redeem({ code, externalRef: `beside ${id}` })] as const;
      if (!(await untilWaitingOr(Promise.race(pending), db, 2))) return null;
      await untilPast(db, end);
      return { pending };
    });
    return both && { id, answers: await Promise.all(both.pending) };
  });
  const [extended, redeemed] = answers;
  expect(extended).toMatchObject({ extended: true });
  const outcome = redeemed.body.code ?? redeemed.status;
  expect(["voucher_expired", 200]).toContain(outcome);
  expect(await typesOf(id)).toEqual(["issued", "extended", ...(outcome === 200 ? ["redeemed"] : [])]);
});

it("an extension before a sweep prevents the expired event, and a later extension follows the event", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 2, { validUntil: past() });
  const [swept = "", extendedFirst = ""] = vouchers.map(({ id }) => id);
  // The sweeper leaves a locked voucher to a later pass. By then, the voucher is extended.
  const { waiting } = await besideTransaction(db, async (outside) => {
    await lockRows(outside, [extendedFirst]);
    const waiting = extend(extendedFirst, later(30));
    await untilWaiting(db, 1);
    await recordExpiries(ctx(), 0);
    return { waiting };
  });
  await waiting;
  await recordExpiries(ctx(), 0);
  // The sweeper has finished the batch. It finds the extended voucher by the voucher's own expiry time.
  const { rows } = await db.query("SELECT expiry_recorded_to AS serial FROM batches WHERE id = $1", [batchId]);
  expect(rows).toEqual([{ serial: 2 }]);
  await extend(swept, later(30));
  expect(await typesOf(extendedFirst)).toEqual(["issued", "extended"]);
  expect(await typesOf(swept)).toEqual(["issued", "expired", "extended"]);
});

it("a claim during an extension succeeds, and the voucher's history has the claim and the extension", async () => {
  const user = await signedIn(api.url, service.issuer, newUser());
  const offer = await makeOffer(db, 1);
  const { id = "" } = offer.vouchers[0] ?? {};
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [id]);
  const validUntil = later(3_000);
  const { pending } = await whileLocked(db, [id], async () => {
    const pending = [extendBatch(ctx(), rows[0].id, validUntil, null), user.claimProduct(offer.productId)] as const;
    await untilWaiting(db, 2);
    return { pending };
  });
  const [extended, claimed] = await Promise.all(pending);
  expect([extended, claimed.status]).toEqual([{ extended: 1, alreadyFinal: 0 }, 200]);
  expect((await typesOf(id)).toSorted()).toEqual(["claimed", "extended", "issued"]);
});

it("an advance of a sandbox's clock applies to extended vouchers, which then expire", async () => {
  const sandbox = await makePartner(db, { sandbox: true });
  const own = partnerClient(api.url, (await makeKey(db, sandbox.organizationId)).key);
  const { id, code } = await issueVoucher(db, sandbox);
  await extend(id, later(30));
  const { pending } = await whileLocked(db, [id], async () => {
    const pending = own.advance(2 * 86_400);
    await untilWaiting(db, 1);
    return { pending };
  });
  expect((await pending).body).toMatchObject({ vouchersExpired: 0 });
  expect((await own.lookUp(code)).body.voucher.status).toBe("Active");
  expect((await own.advance(28 * 86_400)).body).toMatchObject({ vouchersExpired: 1 });
  expect((await own.lookUp(code)).body.voucher.status).toBe("Expired");
  expect(await typesOf(id)).toEqual(["issued", "extended", "expired"]);
});
