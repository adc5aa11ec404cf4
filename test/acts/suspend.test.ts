import { expect, it } from "vitest";
import { suspendBatch as batchAct, resumeBatch as batchResume } from "../../src/acts/batch/suspend.ts";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { extendById } from "../../src/acts/extend-voucher.ts";
import type { IssuedVoucher } from "../../src/acts/issue-batch.ts";
import { suspendBatch } from "../../src/acts/suspend-batch.ts";
import { SUSPENSIONS_SCHEMA } from "../../src/acts/suspend-voucher.ts";
import { voidById } from "../../src/acts/void-voucher.ts";
import { resumeVoucher, suspendVoucher } from "../../src/acts/voucher/suspend.ts";
import { auditedCommand } from "../../src/acts/with-audit-entry.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { recordSuspensions } from "../../src/core/chain/record-suspensions.ts";
import { connectClient } from "../../src/platform/db/client.ts";
import { findOlderSessions } from "../../src/platform/db/working-sessions.ts";
import { partnerClient } from "../support/client.ts";
import { makeOffer, newUser, signedIn } from "../support/marketplace.ts";
import {
  besideTransaction,
  bypassTriggers,
  countWaiting,
  holdNextInsert,
  untilWaiting,
  whileLocked,
} from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { issueTestBatch, issueVoucher, makeKey, makePartner, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({ users: true });
const { api, db, partner, till } = service;

const STOLEN = "the parcel was stolen";
const ctx = () => provisioning(db);
const later = (days: number) => new Date(Date.now() + days * 86_400_000);
const suspend = (id: string) => suspendVoucher.run(ctx(), id, { reason: STOLEN });
const resume = (id: string) => resumeVoucher.run(ctx(), id, { reason: null });
const suspendAll = (batchId: string) => suspendBatch(ctx(), batchId, STOLEN);
const resumeAll = (batchId: string) => batchResume.run(ctx(), batchId, { reason: null }, () => undefined);
const statusOf = async (code: string) => (await till.lookUp(code)).body.voucher.status;
const typesOf = async (id: string) =>
  (await readRecorded(db, id)).events.map(({ eventType }) => eventType.replace("voucher.instance.", ""));
const ON_HOLD = {
  status: 409,
  body: {
    code: "voucher_suspended",
    error: "This voucher is on hold. Please contact the company that issued it.",
  },
};
/** Ends a run over a batch after its first range of vouchers, as a kill of the process would. */
const interrupt = () => {
  throw new Error("interrupted");
};
/** Lets the sweeper add the missing events of a batch now. */
const makeDue = (batchId: string) =>
  bypassTriggers(db, "UPDATE batches SET suspension_due_at = date_trunc('second', now()) WHERE id = $1", [batchId]);
const isSuspended = async (batchId: string) =>
  (await db.query("SELECT FROM batches WHERE id = $1 AND suspended_at IS NOT NULL", [batchId])).rowCount === 1;
const isDue = async (batchId: string) =>
  (await db.query("SELECT FROM batches WHERE id = $1 AND suspension_due_at IS NOT NULL", [batchId])).rowCount === 1;

it("a suspended voucher cannot be reserved or redeemed until it is resumed", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const { ticket, expiresAt } = (await till.reserve(code)).body;
  expect(await suspend(id)).toEqual({ id, suspended: true });
  const { voucher, reservation } = (await till.lookUp(code)).body;
  expect([voucher.status, reservation]).toMatchObject(["Suspended", { ticket, expiresAt }]);
  expect(await till.reserve(code)).toMatchObject(ON_HOLD);
  expect(await till.redeem({ ticket, externalRef: `held ${id}` })).toMatchObject(ON_HOLD);
  expect(await resume(id)).toEqual({ id, suspended: false });
  expect(await statusOf(code)).toBe("Active");
  expect(await till.redeem({ ticket, externalRef: `held ${id}` })).toMatchObject({ status: 200 });
  const { events } = (await till.events(code)).body;
  expect(events.slice(1, 3)).toMatchObject([
    { code: "VCH009", sealStatus: "Sealed" },
    { code: "VCH010", sealStatus: "Sealed" },
  ]);
  expect(JSON.parse(events[1].payload).data.reason).toBe(STOLEN);
  expect(await typesOf(id)).toEqual(["issued", "suspended", "resumed", "redeemed"]);
});

it("a repeated suspension changes nothing, and a retry of a finished redeem gets the first result", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 2);
  const [used, other] = vouchers as [IssuedVoucher, IssuedVoucher];
  const request = { code: used.code, externalRef: `used ${used.id}` };
  const first = await till.redeem(request);
  for (const each of [1, 2]) expect(await suspend(other.id), String(each)).toEqual({ id: other.id, suspended: true });
  expect(await typesOf(other.id)).toEqual(["issued", "suspended"]);
  await expect(suspend(used.id)).rejects.toMatchObject({ code: "voucher_used" });
  await suspendAll(batchId);
  expect((await till.redeem(request)).body).toEqual({ ...first.body, alreadyConfirmed: true });
  expect(await statusOf(used.code)).toBe("Redeemed");
  await resumeAll(batchId);
  for (const each of [1, 2]) expect(await resume(other.id), String(each)).toEqual({ id: other.id, suspended: false });
  expect(await typesOf(other.id)).toEqual(["issued", "suspended", "resumed"]);
});

it("a suspended voucher can expire, and stays suspended when its validUntil is extended", async () => {
  const { id, code } = await issueVoucher(db, partner, { validUntil: new Date(Date.now() - 1_000) });
  await suspend(id);
  expect(await statusOf(code)).toBe("Expired");
  await recordExpiries(ctx(), 0);
  await extendById(ctx(), id, later(30), null);
  expect(await statusOf(code)).toBe("Suspended");
  expect(await till.redeem({ code, externalRef: `late ${id}` })).toMatchObject(ON_HOLD);
  expect(await typesOf(id)).toEqual(["issued", "suspended", "expired", "extended"]);
});

it("a suspension of a batch takes effect before the vouchers' suspended events are added", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1_002);
  const [first, last] = [vouchers[0], vouchers.at(-1)] as [IssuedVoucher, IssuedVoucher];
  await expect(suspendBatch(ctx(), batchId, STOLEN, interrupt)).rejects.toThrow("interrupted");
  expect(await Promise.all([first, last].map(({ id }) => typesOf(id)))).toEqual([["issued", "suspended"], ["issued"]]);
  expect(await statusOf(last.code)).toBe("Suspended");
  expect(await till.redeem({ code: last.code, externalRef: `early ${last.id}` })).toMatchObject(ON_HOLD);
  await expect(resume(last.id)).rejects.toMatchObject({ code: "voucher_suspended" });
  // The void also adds the missing event, which explains the voucher's earlier refusals.
  await voidById(ctx(), vouchers[1_000]?.id ?? "", null);
  expect(await typesOf(vouchers[1_000]?.id ?? "")).toEqual(["issued", "suspended", "voided"]);
  expect(await resumeAll(batchId)).toEqual({ resumed: 1_001, alreadyFinal: 1 });
  expect(await typesOf(last.id)).toEqual(["issued", "suspended", "resumed"]);
  const { data } = JSON.parse((await till.events(last.code)).body.events[1].payload);
  expect(data).toMatchObject({ reason: STOLEN, since: expect.stringMatching(/^2.*Z$/) });
  expect(await till.redeem({ code: last.code, externalRef: `early ${last.id}` })).toMatchObject({ status: 200 });
});

it("the sweeper completes interrupted suspensions and resumptions, and skips locked vouchers", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1_003);
  const [first = "", last = ""] = [vouchers[0], vouchers.at(-1)].map((one) => one?.id);
  await expect(suspendBatch(ctx(), batchId, STOLEN, interrupt)).rejects.toThrow("interrupted");
  expect(await recordSuspensions(ctx(), Number.POSITIVE_INFINITY)).toBe(0);
  await makeDue(batchId);
  expect(await whileLocked(db, [last], () => recordSuspensions(ctx(), Number.POSITIVE_INFINITY))).toBe(2);
  expect([await typesOf(last), await isDue(batchId)]).toEqual([["issued"], true]);
  expect(await recordSuspensions(ctx(), Number.POSITIVE_INFINITY)).toBe(1);
  expect(await isDue(batchId)).toBe(false);
  const resuming = batchResume.run(ctx(), batchId, { reason: "found" }, interrupt);
  await expect(resuming).rejects.toThrow("interrupted");
  await makeDue(batchId);
  expect(await recordSuspensions(ctx(), Number.POSITIVE_INFINITY)).toBe(3);
  for (const id of [first, last]) expect(await typesOf(id)).toEqual(["issued", "suspended", "resumed"]);
  expect(await isDue(batchId)).toBe(false);
});

it("a resumption without time to add missing events leaves the batch suspended", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1);
  const { id = "", code = "" } = vouchers[0] ?? {};
  const hurried = { ...ctx(), endBy: 0 };
  expect(await suspendBatch(hurried, batchId, STOLEN)).toEqual({ suspended: 0, alreadyFinal: 0 });
  const run = batchResume.run(hurried, batchId, { reason: null }, () => undefined);
  expect(await run).toEqual({ resumed: 0, alreadyFinal: 0 });
  expect([await statusOf(code), await typesOf(id)]).toEqual(["Suspended", ["issued"]]);
  expect(await resumeAll(batchId)).toEqual({ resumed: 1, alreadyFinal: 0 });
  expect(await typesOf(id)).toEqual(["issued", "suspended", "resumed"]);
});

it("a voucher that was suspended individually stays suspended when its batch is resumed", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 3);
  const [before, during, other] = vouchers as [IssuedVoucher, IssuedVoucher, IssuedVoucher];
  await suspend(before.id);
  const run = () => batchAct.run(ctx(), batchId, { reason: STOLEN }, () => undefined);
  expect(await run()).toEqual({ suspended: 2, alreadyFinal: 1 });
  expect(await run()).toEqual({ suspended: 0, alreadyFinal: 3 });
  await suspend(during.id);
  expect(await resumeAll(batchId)).toEqual({ resumed: 1, alreadyFinal: 2 });
  const statuses = await Promise.all([before, during, other].map(({ code }) => statusOf(code)));
  expect(statuses).toEqual(["Suspended", "Suspended", "Active"]);
  for (const { id } of [before, during]) await resume(id);
  expect(await typesOf(during.id)).toEqual(["issued", "suspended", "suspended", "resumed"]);
});

it("a suspension of a batch waits for a redeem that began before the suspension", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1);
  const { code = "" } = vouchers[0] ?? {};
  const held = await holdNextInsert(db, "BEFORE", "redemptions");
  const redeeming = till.redeem({ code, externalRef: `beside ${batchId}` });
  await held.isHeld();
  // After the time `endBy`, a call begins no further range of vouchers.
  const hurried = suspendBatch({ ...ctx(), endBy: performance.now() + 100 }, batchId, STOLEN);
  await expect(hurried).rejects.toMatchObject({ code: "voucher_busy" });
  expect(await statusOf(code)).toBe("Suspended");
  await held.letGo();
  expect(await redeeming).toMatchObject({ status: 200 });
  expect(await suspendAll(batchId)).toEqual({ suspended: 0, alreadyFinal: 1 });
});

it("a constraint in Postgres refuses the redemption of a suspended voucher", async () => {
  const { id } = await issueVoucher(db, partner);
  await suspend(id);
  const redeem = db.query("UPDATE vouchers SET status = 'Redeemed', redeemed_at = now() WHERE id = $1", [id]);
  await expect(redeem).rejects.toThrow("vouchers_redeemed_unsuspended");
});

it.each([
  ["individually", async ({ id }: { id: string }) => suspend(id)],
  ["with its batch", async ({ batchId }: { batchId: string }) => suspendAll(batchId)],
])("a redeem and a suspension (%s) that wait for one voucher never both take effect", async (_how, change) => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1);
  const { id = "", code = "" } = vouchers[0] ?? {};
  const { pending } = await whileLocked(db, [id], async () => {
    const redeeming = till.redeem({ code, externalRef: `beside ${id}` });
    await untilWaiting(db, 1, "worker");
    const changing = change({ id, batchId }).catch(({ code }) => code);
    await until(async () => (await isSuspended(batchId)) || (await countWaiting(db)) > 1);
    return { pending: [redeeming, changing] as const };
  });
  const [redeemed] = await Promise.all(pending);
  const outcome = redeemed.body.code ?? redeemed.status;
  expect([await statusOf(code), outcome]).toEqual(
    outcome === 200 ? ["Redeemed", 200] : ["Suspended", "voucher_suspended"],
  );
  expect(await typesOf(id)).toEqual(["issued", outcome === 200 ? "redeemed" : "suspended"]);
});

it("a redeem is refused until a waiting resumption has committed", async () => {
  const { id, code } = await issueVoucher(db, partner);
  await suspend(id);
  const { pending } = await whileLocked(db, [id], async () => {
    const resuming = resume(id);
    await untilWaiting(db, 1);
    expect(await till.redeem({ code, externalRef: `before ${id}` })).toMatchObject(ON_HOLD);
    return { pending: resuming };
  });
  await pending;
  expect(await till.redeem({ code, externalRef: `before ${id}` })).toMatchObject({ status: 200 });
});

it("a claim never gets a voucher that was suspended, individually or with its batch", async () => {
  const user = await signedIn(api.url, service.issuer, newUser());
  const offer = await makeOffer(db, 1);
  const { id = "" } = offer.vouchers[0] ?? {};
  const { rows } = await db.query("SELECT batch_id AS id FROM vouchers WHERE id = $1", [id]);
  const batchId = rows[0].id;
  await suspend(id);
  expect(await user.claimProduct(offer.productId)).toMatchObject(ON_HOLD);
  await resume(id);
  await suspendAll(batchId);
  expect(await user.claimProduct(offer.productId)).toMatchObject(ON_HOLD);
  const { pending } = await whileLocked(db, [id], async () => {
    const resuming = resumeAll(batchId);
    await untilWaiting(db, 1);
    return { pending: resuming };
  });
  await pending;
  expect(await user.claimProduct(offer.productId)).toMatchObject({ status: 200 });
  expect(await typesOf(id)).toEqual(["issued", "suspended", "resumed", "suspended", "resumed", "claimed"]);
});

it("a simultaneous suspension and extension of one voucher both take effect", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, 1);
  const { id = "", code = "" } = vouchers[0] ?? {};
  const validUntil = later(90);
  const { pending } = await whileLocked(db, [id], async () => {
    const pending = [extendById(ctx(), id, validUntil, null), suspend(id), suspendAll(batchId)] as const;
    await untilWaiting(db, 2);
    return { pending };
  });
  await Promise.all(pending);
  const { voucher } = (await till.lookUp(code)).body;
  expect(voucher).toMatchObject({ status: "Suspended", validUntil: validUntil.toISOString() });
  expect((await typesOf(id)).slice(0, 1)).toEqual(["issued"]);
});

it("suspended vouchers expire when a sandbox's clock advances, and the sweeper records the expiry", async () => {
  const sandbox = await makePartner(db, { sandbox: true });
  const own = partnerClient(api.url, (await makeKey(db, sandbox.organizationId)).key);
  const { batchId, vouchers } = await issueTestBatch(db, sandbox, 1, { validUntil: later(1) });
  const { id = "", code = "" } = vouchers[0] ?? {};
  await Promise.all([suspendAll(batchId), own.advance(2 * 86_400)]);
  expect((await own.lookUp(code)).body.voucher.status).toBe("Expired");
  await recordExpiries(ctx(), Number.POSITIVE_INFINITY);
  expect((await typesOf(id)).toSorted()).toEqual(["expired", "issued", "suspended"]);
});

it("an erasure of a voucher erases the reasons of its suspension and its resumption", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const reason = "Zoë Ötzi lost it";
  await suspendVoucher.run({ ...ctx(), audited: auditedCommand("voucher suspend", { id, reason }) }, id, { reason });
  await resumeVoucher.run({ ...ctx(), audited: auditedCommand("voucher resume", { id, reason }) }, id, { reason });
  await erasePerson(ctx(), { by: "voucher", voucherId: id }, null);
  const { events } = (await till.events(code)).body;
  expect(events.slice(1, 3)).toMatchObject(Array(2).fill({ payload: null, erasedBy: 4 }));
  const { rows } = await db.query("SELECT arguments->>'reason' AS reason FROM audit_entries WHERE entity_id = $1", [
    id,
  ]);
  expect(rows.map((row) => row.reason?.slice(0, 7))).toEqual(["erased:", "erased:", undefined]);
});

it("a suspension is refused while a process runs whose release has no suspensions", async () => {
  const { id } = await issueVoucher(db, partner);
  const session = await connectClient(service.servers.databaseUrl, `worker (schema ${SUSPENSIONS_SCHEMA - 1})`);
  await expect(suspend(id)).rejects.toMatchObject({ code: "unavailable" });
  await session.end();
  await until(async () => (await findOlderSessions(db, SUSPENSIONS_SCHEMA)) === null);
  await suspend(id);
});

it("the sweeper skips a batch that a running call suspends or resumes", async () => {
  const { batchId } = await issueTestBatch(db, partner, 1);
  await suspendAll(batchId);
  await makeDue(batchId);
  await besideTransaction(db, async (outside) => {
    await outside.query("SELECT FROM batches WHERE id = $1 FOR NO KEY UPDATE", [batchId]);
    expect(await recordSuspensions(ctx(), Number.POSITIVE_INFINITY)).toBe(0);
    expect(await isDue(batchId)).toBe(true);
  });
});
