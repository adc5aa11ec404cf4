import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { extendById } from "../../src/acts/extend-voucher.ts";
import type { IssuedVoucher } from "../../src/acts/issue-batch.ts";
import { resumeById, suspendById } from "../../src/acts/suspend-voucher.ts";
import { voidBatch } from "../../src/acts/void-batch.ts";
import { recordExpiries } from "../../src/core/chain/record-expiries.ts";
import { runRedeemJob } from "../../src/core/redeem/redeem-committer.ts";
import { expireReservations } from "../../src/core/sweep/expire-reservations.ts";
import { FairSlots } from "../../src/platform/batching/fair-slots.ts";
import { openWebhookSender } from "../../src/platform/outgoing/send-webhook.ts";
import type { ReplayRequest } from "../../src/webhooks/api/webhook-deliveries.ts";
import { webhookEvent } from "../../src/webhooks/api/webhooks.ts";
import { selectDueDeliveries } from "../../src/webhooks/db/webhook-deliveries.ts";
import { deliverToTarget, FAILING_MAX, READ_AGE_MAX_MS, REQUESTS_MAX } from "../../src/webhooks/deliver.ts";
import { listDeliveries, replayWebhook } from "../../src/webhooks/deliveries.ts";
import { type Attempt, AttemptRecorder } from "../../src/webhooks/record-attempts.ts";
import { removeDeliveries, requestWebhooks } from "../../src/webhooks/sweep-tasks.ts";
import { besideTransaction, untilWaiting, waitLongForLocks } from "../support/outside-transaction.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { scrape } from "../support/scrape.ts";
import { sealVoucher } from "../support/seal-voucher.ts";
import { openServicePool, openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startWorkers, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makePartner, provisioning, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { voidVoucher } from "../support/void-voucher.ts";
import { startReceiver, WEBHOOK_ENV, type WebhookReceiver } from "../support/webhook-receiver.ts";

let servers: TestServers;
let worker: TestWorker;
let receiver: WebhookReceiver;
let answer: NonNullable<Parameters<typeof startReceiver>[0]>;
let partner: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  receiver = await startReceiver((request) => answer(request));
  servers.onClose(() => receiver.close());
  worker = await startWorkers(servers, { ...WEBHOOK_ENV, METRICS_PORT: "0" });
});

beforeEach(async () => {
  answer = () => 204;
  // Removes the deliveries of earlier tests, because the worker tries only a few failing endpoints at a time.
  await servers.db.query("DELETE FROM webhook_deliveries");
  partner = await makePartner(servers.db);
});

afterAll(() => endService(servers));

it("a webhook is delivered, signed and without texts, to each subscribed endpoint of the organization", async () => {
  const stranger = await makePartner(servers.db);
  const all = await addEndpoint();
  const other = await addEndpoint(["voucher.instance.voided"]);
  const foreign = await addEndpoint([], stranger);
  const [voucher] = await issue();
  const reply = await redeem(voucher.id, "Bestellung № 1");
  expect(await finished(all, 1)).toMatchObject([
    { state: "Delivered", attempts: 1, lastStatus: 204, lastFailure: null },
  ]);
  const [request] = receiver.of(all);
  expect(request).toMatchObject({ isSigned: true, id: `${voucher.id}-2` });
  expect(webhookEvent.parse(request?.body)).toEqual(request?.body);
  const { redeemCode } = reply as { redeemCode: string };
  expect(request?.body.data).toMatchObject({ sequence: 2, externalRef: "Bestellung № 1", redeemCode });
  expect(request?.text).not.toMatch(new RegExp(`${voucher.code}|sandbox`));
  expect([...receiver.of(other), ...receiver.of(foreign)]).toEqual([]);
});

it("a replayed webhook delivery of an erased event ends as Erased without a request", async () => {
  const endpoint = await addEndpoint();
  const [sent] = await issue();
  await redeem(sent.id, "an order that was sent");
  await finished(endpoint, 1);
  await erasePerson(provisioning(servers.db), { by: "voucher", voucherId: sent.id }, null);
  await replayWebhook(worker.ctx, partner.organizationId, endpoint, { eventIds: [`${sent.id}-2`] });
  expect(await finished(endpoint, 1)).toMatchObject([{ state: "Erased", attempts: 0 }]);
  expect(receiver.of(endpoint)).toHaveLength(1);
});

it("a scheduled webhook delivery ends as Erased as soon as its event is erased", async () => {
  answer = () => 500;
  const endpoint = await addEndpoint();
  const [{ id }] = await issue();
  await redeem(id, "an order that is sent once");
  await waitAfter(endpoint, 1);
  await query(
    "UPDATE webhook_deliveries SET next_attempt_at = now() + interval '1 day' WHERE endpoint_id = $1",
    endpoint,
  );
  await erasePerson(provisioning(servers.db), { by: "voucher", voucherId: id }, null);
  await requestWebhooks(worker.ctx);
  expect(await finished(endpoint, 1)).toMatchObject([{ state: "Erased", attempts: 1 }]);
  expect(receiver.of(endpoint)).toHaveLength(1);
});

it("a webhook delivery whose event is erased during an attempt is not attempted again", async () => {
  answer = () => 500;
  const endpoint = await addEndpoint();
  const [{ id }] = await issue();
  await redeem(id, "an order that is sent twice");
  await waitAfter(endpoint, 1);
  await besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE", [endpoint]);
    await skipWait(endpoint);
    // The receiver has answered the second request, and the worker waits to record the attempt.
    await until(() => receiver.of(endpoint).length === 2);
    await untilWaiting(servers.db, 1, "worker");
    await erasePerson(provisioning(servers.db), { by: "voucher", voucherId: id }, null);
  });
  expect(await finished(endpoint, 1)).toMatchObject([{ state: "Erased", attempts: 2 }]);
  expect(receiver.of(endpoint)).toHaveLength(2);
});

it("a worker sends no webhook if the event is erased or the endpoint disabled after the worker's read", async () => {
  for (const ending of ["erased", "disabled"]) {
    const held = Promise.withResolvers<number>();
    answer = () => held.promise;
    const [endpoint = ""] = await addTargetsWithDue(1, 6, { redeemed: true });
    const run = deliverToTarget(openDeliveries(), endpoint);
    // The run has read six deliveries and sends four at a time.
    await until(() => receiver.of(endpoint).length === 4);
    const sent = receiver.of(endpoint).map(({ voucherId }) => voucherId);
    const waiting = (await deliveries(endpoint)).filter(({ voucherId }) => !sent.includes(voucherId));
    if (ending === "disabled")
      await query(
        "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'partner', disabled_at = now() WHERE id = $1",
        endpoint,
      );
    else
      for (const { voucherId } of waiting)
        await erasePerson(provisioning(servers.db), { by: "voucher", voucherId }, null);
    await sleep(READ_AGE_MAX_MS);
    held.resolve(204);
    expect(await run).toEqual({ delivered: 4, retried: 0, failed: 0 });
    expect(receiver.of(endpoint)).toHaveLength(4);
    const state = ending === "erased" ? "Erased" : "Pending";
    const ids = waiting.map(({ eventId }) => eventId);
    expect((await deliveries(endpoint)).filter(({ eventId }) => ids.includes(eventId))).toMatchObject([
      { state },
      { state },
    ]);
  }
});

it('a webhook has "sandbox": true in its data if its organization is a sandbox', async () => {
  partner = await makePartner(servers.db, { sandbox: true });
  const endpoint = await addEndpoint();
  const [redeemed, held] = await issue(2);
  await redeem(redeemed.id);
  await endReservation(held.id);
  await finished(endpoint, 2);
  for (const { body } of receiver.of(endpoint)) {
    expect(webhookEvent.parse(body)).toEqual(body);
    expect(body.data.sandbox).toBe(true);
  }
});

it("every transaction that writes an event notifies the webhook workers", async () => {
  const endpoint = await addEndpoint();
  const [voided, held] = await issue(2);
  await voidVoucher(provisioning(servers.db), partner.organizationId, voided.code, null);
  await sealVoucher(worker.ctx, voided.id);
  await endReservation(held.id);
  await finished(endpoint, 2);
  const [batch] = await query("SELECT batch_id AS id FROM vouchers WHERE id = $1", held.id);
  await voidBatch(provisioning(servers.db), batch.id, null);
  const past = await issueVoucher(servers.db, partner, { validUntil: new Date(Date.now() - 1_000) });
  await recordExpiries(worker.ctx, performance.now() + 2_000);
  await finished(endpoint, 4);
  const validUntil = new Date(Date.now() + 86_400_000);
  await extendById(provisioning(servers.db), past.id, validUntil, null);
  await sealVoucher(worker.ctx, past.id);
  await suspendById(provisioning(servers.db), past.id, "stolen");
  await resumeById(provisioning(servers.db), past.id, null);
  await sealVoucher(worker.ctx, past.id);
  await finished(endpoint, 7);
  const seen = receiver.of(endpoint);
  for (const { body, isSigned } of seen)
    expect({ isSigned, body }).toEqual({ isSigned: true, body: webhookEvent.parse(body) });
  expect(seen.map(({ type, voucherId }) => [type, voucherId]).sort()).toEqual(
    [
      ["voucher.instance.voided", voided.id],
      ["reservation.expired", held.id],
      ["voucher.instance.voided", held.id],
      ["voucher.instance.expired", past.id],
      ["voucher.extended", past.id],
      ["voucher.suspended", past.id],
      ["voucher.resumed", past.id],
    ].sort(),
  );
  expect(seen.find(({ type }) => type === "voucher.extended")?.body.data.validUntil).toBe(validUntil.toISOString());
  expect(seen.map((request) => request.text).join("")).not.toMatch(/rsv_/);
});

it("an event is written to the webhook outbox only for an organization with an enabled endpoint", async () => {
  const [voucher] = await issue();
  await worker.ctx.fanOut?.close();
  await redeem(voucher.id);
  expect(await query("SELECT FROM webhook_outbox")).toHaveLength(0);
  await addEndpoint();
  const [next] = await issue();
  await redeem(next.id);
  expect(await query("SELECT FROM webhook_outbox")).toHaveLength(1);
  await worker.close();
  worker = await startWorkers(servers, { ...WEBHOOK_ENV, METRICS_PORT: "0" });
  await until(async () => (await query("SELECT FROM webhook_outbox")).length === 0);
});

it("a webhook worker sends an event that becomes due right after the worker found nothing due", async () => {
  const webhooks = openDeliveries();
  const endpoint = await addEndpoint();
  const [voucher] = await issue();
  await servers.db.query(
    `INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, sequence, endpoint_id, event_id,
                                     voucher_id, event_type)
     VALUES (1, now(), now(), 1, $1, $2 || '-1', $2, 'voucher.instance.voided'),
            (2, now(), NULL, 1, $1, $2 || '-2', $2, 'voucher.instance.voided')`,
    [endpoint, voucher.id],
  );
  const read = Promise.withResolvers<void>();
  const recorded = Promise.withResolvers<void>();
  let reads = 0;
  const query = async (statement: pg.QueryConfig) => {
    const result = await webhooks.pool.query(statement);
    if (statement.name === "select_due_deliveries" && ++reads === 2) {
      read.resolve();
      await recorded.promise;
    }
    return result;
  };
  const submit = async (attempt: Attempt) => {
    await read.promise;
    const state = await webhooks.attempts.submit(attempt);
    // Resolves `recorded` after the run of deliveries has noticed the end of the attempt.
    setImmediate(recorded.resolve);
    return state;
  };
  const ctx = { ...webhooks, pool: { query } as unknown as pg.Pool, attempts: { submit } as AttemptRecorder };
  expect(await deliverToTarget(ctx, endpoint)).toEqual({ delivered: 2, retried: 0, failed: 0 });
});

it("deliverToTarget ends only after its requests have ended and are recorded, even if a read fails", async () => {
  const held = Promise.withResolvers<number>();
  const [endpoint = ""] = await addTargetsWithDue(1, 6);
  answer = () => (receiver.of(endpoint).length > 3 ? held.promise : 204);
  const webhooks = openDeliveries();
  const isUnread = Promise.withResolvers<void>();
  let reads = 0;
  const query = (statement: pg.QueryConfig) => {
    if (statement.name !== "select_due_deliveries" || ++reads === 1) return webhooks.pool.query(statement);
    isUnread.resolve();
    return Promise.reject(new Error("the read failed"));
  };
  let hasEnded = false;
  const ctx = { ...webhooks, pool: { query } as unknown as pg.Pool };
  const run = deliverToTarget(ctx, endpoint)
    .catch((error: Error) => error.message)
    .finally(() => {
      hasEnded = true;
    });
  // When three of six requests are running, the run reads more.
  await isUnread.promise;
  await new Promise(setImmediate);
  expect({ hasEnded, sent: receiver.of(endpoint).length }).toEqual({ hasEnded: false, sent: 6 });
  held.resolve(204);
  expect(await run).toBe("the read failed");
  expect((await deliveries(endpoint)).map(({ state }) => state)).toEqual(Array(6).fill("Delivered"));
  expect(receiver.of(endpoint)).toHaveLength(6);
});

it("a failed webhook delivery is repeated with the same id and body, no earlier than Retry-After", async () => {
  const endpoint = await addEndpoint();
  answer = () => 500;
  await redeem((await issue())[0].id);
  const first = (await waitAfter(endpoint, 1)).s;
  expect(first).toBeGreaterThan(1);
  expect(first).toBeLessThanOrEqual(6);
  answer = () => ({ status: 503, headers: { "retry-after": "86400" } });
  await skipWait(endpoint);
  const second = (await waitAfter(endpoint, 2)).s;
  expect(second).toBeGreaterThan(590);
  expect(second).toBeLessThanOrEqual(600);
  expect(await deliveries(endpoint)).toMatchObject([{ lastStatus: 503, lastFailure: "status", state: "Pending" }]);
  answer = () => 200;
  await skipWait(endpoint);
  await finished(endpoint, 1);
  const requests = receiver.of(endpoint);
  expect(requests).toHaveLength(3);
  expect(new Set(requests.map(({ id, text }) => id + text)).size).toBe(1);
  const [row] = await query("SELECT failing_since FROM webhook_endpoints WHERE id = $1", endpoint);
  expect(row).toEqual({ failing_since: null });
});

it("two processes that send the same webhook delivery at the same time record only one attempt", async () => {
  const [endpoint = ""] = await addTargetsWithDue(1, 1);
  const [delivery] = await selectDueDeliveries(servers.db, { endpointId: endpoint, except: [], limit: 1 });
  if (delivery === undefined) throw new Error("nothing is due");
  const ctx = { ...worker.ctx, metrics: null };
  const failed = { status: 500, failure: "status", retryAfterMs: null } as const;
  const delivered = { status: 204, failure: null, retryAfterMs: null };
  for (const result of [failed, delivered]) {
    await new AttemptRecorder(ctx).submit({ endpointId: endpoint, delivery, result });
  }
  const [row] = await query(
    "SELECT attempts, state, last_status FROM webhook_deliveries WHERE endpoint_id = $1",
    endpoint,
  );
  expect(row).toEqual({ attempts: 1, state: "Pending", last_status: 500 });
});

it("a webhook delivery is given up after ten attempts, and then the voucher's next event is sent", async () => {
  const endpoint = await addEndpoint();
  const [voucher, other] = await issue(2);
  answer = ({ voucherId, type }) => (voucherId === voucher.id && type === "reservation.expired" ? 500 : 204);
  await endReservation(voucher.id);
  await redeem(voucher.id);
  await redeem(other.id);
  await until(() => receiver.of(endpoint).some(({ voucherId }) => voucherId === other.id));
  for (let attempts = 1; attempts < 10; attempts++) {
    await waitAfter(endpoint, attempts);
    await skipWait(endpoint);
  }
  await finished(endpoint, 3);
  const ofVoucher = receiver.of(endpoint).filter(({ voucherId }) => voucherId === voucher.id);
  expect(ofVoucher.map(({ type }) => type)).toEqual([
    ...Array(10).fill("reservation.expired"),
    "voucher.instance.redeemed",
  ]);
  const failed = (await deliveries(endpoint)).find(({ eventType }) => eventType === "reservation.expired");
  expect(failed).toMatchObject({ state: "Failed", attempts: 10, sequence: null, nextAttemptAt: null });
});

it("a webhook endpoint is disabled at once after 410, or after five days of failures", async () => {
  const [gone, failing] = [await addEndpoint(), await addEndpoint()];
  const warned: unknown[] = [];
  worker.ctx.log.warn = ((fields: unknown) => warned.push(fields)) as typeof worker.ctx.log.warn;
  answer = ({ path }) => (path === `/${gone}` ? 410 : 500);
  const disabled = async (id: string) =>
    (await query("SELECT disabled_reason AS reason FROM webhook_endpoints WHERE id = $1 AND NOT enabled", id))[0]
      ?.reason;
  const failFor = (time: string) =>
    query("UPDATE webhook_endpoints SET failing_since = now() - $2::interval WHERE id = $1", failing, time);
  await redeem((await issue())[0].id);
  await until(() => disabled(gone));
  await waitAfter(failing, 1);
  await failFor("119 hours 59 minutes");
  await skipWait(failing);
  await waitAfter(failing, 2);
  expect(await disabled(failing)).toBeUndefined();
  await failFor("120 hours");
  await skipWait(failing);
  await until(() => disabled(failing));
  expect([await disabled(gone), await disabled(failing)]).toEqual(["gone", "failing"]);
  expect(warned).toMatchObject([
    { reason: "gone", endpointId: gone },
    { reason: "failing", endpointId: failing },
  ]);
  const report = await scrape(worker.metricsUrl);
  for (const reason of ["gone", "failing"]) {
    expect(report.value("voucher_webhook_endpoints_disabled_total", { reason })).toBeGreaterThanOrEqual(1);
  }
  await removeDeliveries(worker.ctx, performance.now() + 2_000);
  for (const id of [gone, failing]) expect(await deliveries(id)).toMatchObject([{ state: "Failed" }]);
  const before = receiver.received.length;
  await redeem((await issue())[0].id);
  expect(await query("SELECT FROM webhook_outbox")).toHaveLength(0);
  expect(receiver.received).toHaveLength(before);
});

it("a worker sends at most four webhooks at once to an endpoint, and one to a failing endpoint", async () => {
  // The limits are longer than the test may take, so that no request ends by itself.
  const webhookSender = openWebhookSender({ allowPrivate: true, connectMaxMs: 200_000, attemptMaxMs: 200_000 });
  const requests = new FairSlots(REQUESTS_MAX);
  const ctx = { ...openDeliveries(), webhookSender, requests, failing: new FairSlots(FAILING_MAX) };
  const failing = await addTargetsWithDue(20, 6);
  const slow = await addTargetsWithDue(20, 6);
  const [prompt = ""] = await addTargetsWithDue(1, 6);
  await servers.db.query("UPDATE webhook_endpoints SET failing_since = now() WHERE id = ANY ($1)", [failing]);
  answer = ({ path }) => (path === `/${prompt}` ? 204 : null);
  let ended = 0;
  const start = (ids: readonly string[]) => ids.map((id) => deliverToTarget(ctx, id).finally(() => ended++));
  const runs = start(failing);
  // One organization may use half of the 32 requests for failing endpoints.
  await until(() => ended === 4 && requests.used === 16);
  runs.push(...start(slow));
  // One organization may use half of the 48 remaining requests.
  await until(() => requests.used === 16 + 24 && requests.waiting > 0);
  expect(await deliverToTarget(ctx, prompt)).toMatchObject({ delivered: 6 });
  // Waits until every request that may begin has arrived.
  const arrived = (ids: readonly string[]) => ids.map((id) => receiver.of(id).length);
  await until(() => [...arrived(failing), ...arrived(slow)].reduce((sum, count) => sum + count) === 16 + 24);
  expect(Math.max(...arrived(failing))).toBe(1);
  expect(Math.max(...arrived(slow))).toBe(4);
  await webhookSender.close();
  await Promise.all(runs);
  // The worker does not record attempts that the stop interrupts, and repeats them later.
  expect((await deliveries(slow[0] ?? "")).every(({ attempts }) => attempts === 0)).toBe(true);
});

it("a webhook endpoint's first read does not wait for its organization's other reads, but later reads do", async () => {
  const owners: string[] = [];
  const webhookReads: Pick<FairSlots, "run"> = {
    run(owner, work) {
      owners.push(owner);
      return work();
    },
  };
  const targets = await addTargetsWithDue(2, 6);
  // The receiver answers so slowly that the last requests begin late and must read their endpoint again.
  answer = () => sleep(READ_AGE_MAX_MS + 50, 204);
  for (const id of targets) {
    expect(await deliverToTarget({ ...openDeliveries(), webhookReads }, id)).toMatchObject({ delivered: 6 });
  }
  const [endpoint] = await query("SELECT organization_id FROM webhook_endpoints WHERE id = ANY ($1)", [targets]);
  expect(owners.filter((owner) => owner !== endpoint?.organization_id)).toEqual(targets);
  expect(owners.length).toBeGreaterThan(2 * targets.length);
});

it("deliverToTarget ends long before its requests if its process stops while endpoints hang", async () => {
  answer = () => null;
  const ids = await addTargetsWithDue(20, 1);
  const stopping = await startWorkers(servers, WEBHOOK_ENV);
  await requestWebhooks(stopping.ctx);
  await until(() => ids.flatMap(receiver.of).length >= 20);
  const startedAt = performance.now();
  await stopping.close();
  // Closing did not wait for the requests, each of which lasts up to 15 seconds.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  expect(await deliveries(ids[0] ?? "")).toMatchObject([{ state: "Pending" }]);
});

it("deliverToTarget ends after four failures without a success, and at once after 410", async () => {
  const [failing = "", gone = ""] = await addTargetsWithDue(2, 12);
  answer = ({ path }) => (path === `/${gone}` ? 410 : 500);
  await Promise.all([failing, gone].map((id) => deliverToTarget(openDeliveries(), id)));
  // Three more requests were running.
  expect(receiver.of(failing).length).toBeLessThanOrEqual(7);
  expect(receiver.of(gone).length).toBeLessThanOrEqual(4);
});

it("a replay sends finished webhook deliveries again in each voucher's order, by ids or by time", async () => {
  const endpoint = await addEndpoint();
  const replay = (request: ReplayRequest, organizationId = partner.organizationId) =>
    replayWebhook(worker.ctx, organizationId, endpoint, request);
  const [voucher] = await issue();
  await endReservation(voucher.id);
  await redeem(voucher.id);
  const [newest] = await finished(endpoint, 2);
  const ids = receiver.of(endpoint).map(({ id }) => id);
  expect(await replay({ eventIds: ids })).toEqual({ replayed: 2 });
  await until(() => receiver.of(endpoint).length === 4);
  expect(receiver.of(endpoint).map(({ id }) => id)).toEqual([...ids, ...ids]);
  await finished(endpoint, 2);
  const at = new Date(newest?.createdAt ?? "");
  const time = { from: at, to: new Date(at.getTime() + 1) };
  expect(await replay(time)).toEqual({ replayed: 1 });
  await expect(replay(time, "org_x")).rejects.toMatchObject({ code: "webhook_not_found" });
  await until(() => receiver.of(endpoint).length === 5);
  await finished(endpoint, 2);
});

it("a replayed webhook delivery is sent before later deliveries of the same voucher", async () => {
  answer = () => 503;
  const endpoint = await addEndpoint();
  const [{ id }] = await issue();
  await redeem(id);
  await waitAfter(endpoint, 1);
  await servers.db.query(
    `INSERT INTO webhook_deliveries (position, created_at, finished_at, state, attempts, sequence, endpoint_id,
                                     event_id, voucher_id, event_type)
     VALUES (0, now(), now(), 'Delivered', 1, 1, $1, $2 || '-1', $2, 'voucher.instance.claimed')`,
    [endpoint, id],
  );
  const replayed = await replayWebhook(worker.ctx, partner.organizationId, endpoint, { eventIds: [`${id}-1`] });
  expect(replayed).toEqual({ replayed: 1 });
  await waitAfter(endpoint, 1);
  await skipWait(endpoint);
  await waitAfter(endpoint, 2);
  answer = () => 204;
  await skipWait(endpoint);
  await finished(endpoint, 2);
  expect(receiver.of(endpoint).map((request) => request.id)).toEqual([2, 1, 1, 1, 2].map((n) => `${id}-${n}`));
});

it("the sweeper keeps an old webhook delivery that is replayed during the sweep", async () => {
  const endpoint = await addEndpoint();
  const [{ id }] = await issue();
  await redeem(id);
  await finished(endpoint, 1);
  await query("UPDATE webhook_deliveries SET created_at = now() - interval '31 days' WHERE endpoint_id = $1", endpoint);
  const pool = openServicePool(servers.databaseUrl);
  servers.onClose(() => pool.end());
  waitLongForLocks(pool);
  const removing = await besideTransaction(servers.db, async (outside) => {
    await outside.query(
      `UPDATE webhook_deliveries
          SET state = 'Pending', attempts = 0, finished_at = NULL, replayed_at = now(), next_attempt_at = now()
        WHERE endpoint_id = $1`,
      [endpoint],
    );
    const removed = removeDeliveries({ pool }, performance.now() + 2_000);
    await untilWaiting(servers.db, 1, "test");
    await outside.query("COMMIT");
    return { removed };
  });
  await removing.removed;
  expect(await deliveries(endpoint)).toMatchObject([{ state: "Pending" }]);
});

it("the list of webhook deliveries is paged, newest first, and keeps finished deliveries for 30 days", async () => {
  const endpointId = await addEndpoint();
  for (const { id } of await issue(3)) await redeem(id);
  const all = await finished(endpointId, 3);
  const one = await listDeliveries(worker.ctx, endpointId, { limit: 2, state: "Delivered" });
  const two = await listDeliveries(worker.ctx, endpointId, { limit: 2, cursor: one.nextCursor ?? "" });
  expect([...one.deliveries, ...two.deliveries]).toEqual(all);
  expect(two.nextCursor).toBeNull();
  expect((await listDeliveries(worker.ctx, endpointId, { limit: 2, state: "Failed" })).deliveries).toEqual([]);
  await expect(listDeliveries(worker.ctx, endpointId, { limit: 2, cursor: "x" })).rejects.toThrow(/cursor/);
  const [young, old] = all;
  await servers.db.query(
    `UPDATE webhook_deliveries AS d SET created_at = w.at
       FROM (VALUES ($2, now() - interval '30 days 1 minute'),
                    ($3, now() - interval '29 days 23 hours')) AS w (event_id, at)
      WHERE d.endpoint_id = $1 AND d.event_id = w.event_id`,
    [endpointId, old?.eventId, young?.eventId],
  );
  await removeDeliveries(worker.ctx, performance.now() + 2_000);
  const idsOf = (listed: typeof all) => listed.map(({ eventId }) => eventId).sort();
  expect(idsOf(await deliveries(endpointId))).toEqual(idsOf(all.filter((delivery) => delivery !== old)));
  await servers.db.query(
    `UPDATE webhook_endpoints SET deleted_at = now(), place = NULL, enabled = false, disabled_reason = 'partner',
                                  disabled_at = now()
      WHERE id = $1`,
    [endpointId],
  );
  await removeDeliveries(worker.ctx, performance.now() + 2_000);
  expect(await query("SELECT FROM webhook_deliveries WHERE endpoint_id = $1", endpointId)).toHaveLength(0);
  expect(await query("SELECT FROM webhook_endpoints WHERE id = $1", endpointId)).toHaveLength(0);
});

const redeem = (voucherId: string, externalRef = crypto.randomUUID() as string) =>
  runRedeemJob(worker.ctx, newAttempt(voucherId), redeemJob(partner, "key", voucherId, externalRef));

const addEndpoint = (eventTypes?: readonly string[], { organizationId } = partner) =>
  receiver.addEndpoint(servers.db, organizationId, eventTypes);

/** Issues vouchers. By this type, tests need not check each one for undefined. */
const issue = (count = 1) => issueVouchers(servers.db, partner, count) as Promise<[IssuedVoucher, IssuedVoucher]>;

/** Makes retries due now, and requests their jobs like the sweeper. */
async function skipWait(endpointId: string): Promise<void> {
  await query(
    "UPDATE webhook_deliveries SET next_attempt_at = now() WHERE endpoint_id = $1 AND next_attempt_at IS NOT NULL",
    endpointId,
  );
  await requestWebhooks(worker.ctx);
}

const deliveries = async (endpointId: string, limit = 100) =>
  (await listDeliveries(worker.ctx, endpointId, { limit })).deliveries;

const finished = (endpointId: string, count: number) =>
  until(async () => {
    const all = await deliveries(endpointId);
    return all.length === count && all.every(({ state }) => state !== "Pending") ? all : null;
  }).catch(async (error) => {
    throw new Error(`${error.message}: ${JSON.stringify(await deliveries(endpointId))}`);
  });

/** Waits until a delivery has had `attempts`, and returns the seconds until the next attempt. */
const waitAfter = (endpointId: string, attempts: number) =>
  until(async () => {
    const [waiting] = await query(
      `SELECT extract(epoch FROM next_attempt_at - clock_timestamp())::float AS s FROM webhook_deliveries
        WHERE endpoint_id = $1 AND attempts = $2 AND next_attempt_at IS NOT NULL`,
      endpointId,
      attempts,
    );
    return waiting as { s: number } | undefined;
  });

/** Returns the context of a run of deliveries, for a test that starts runs itself. */
const openDeliveries = () => worker.ctx as Required<typeof worker.ctx>;

/** Creates endpoints with `due` deliveries each, one per voucher: of its redemption, or else of its issue. */
async function addTargetsWithDue(endpoints: number, due: number, { redeemed = false } = {}): Promise<string[]> {
  const { organizationId } = await makePartner(servers.db);
  const ids: string[] = [];
  while (ids.length < endpoints) ids.push(await receiver.addEndpoint(servers.db, organizationId));
  const vouchers = await issue(due);
  if (redeemed) for (const { id } of vouchers) await redeem(id);
  await servers.db.query(
    `INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, sequence, endpoint_id, event_id,
                                     voucher_id, event_type)
     SELECT 1, now(), now(), $3::int, e.id, v.id || '-' || $3, v.id, 'voucher.instance.voided'
       FROM unnest($1::text[]) AS e (id), unnest($2::text[]) AS v (id)`,
    [ids, vouchers.map(({ id }) => id), redeemed ? 2 : 1],
  );
  return ids;
}

/** Ends a reservation like a sweep. */
async function endReservation(voucherId: string): Promise<void> {
  await servers.db.query(
    `INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state,
                               token_secret_id)
     VALUES (date_trunc('second', now() - interval '2 minutes'), date_trunc('second', now() - interval '1 minute'),
             'rsv_' || $1, $1, $2, 'key', 'Live', 'secret')`,
    [voucherId, partner.organizationId],
  );
  await expireReservations(worker.ctx, performance.now() + 2_000);
}

const query = async (statement: string, ...values: unknown[]) => (await servers.db.query(statement, values)).rows;
