import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { runRedeemJob } from "../../src/core/redeem/redeem-committer.ts";
import { type DueDelivery, selectDueDeliveries } from "../../src/webhooks/db/webhook-deliveries.ts";
import { listDeliveries } from "../../src/webhooks/deliveries.ts";
import { AttemptRecorder } from "../../src/webhooks/record-attempts.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startWorkers, type TestWorker } from "../support/service.ts";
import { issueVouchers, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { startReceiver, WEBHOOK_ENV, type WebhookReceiver } from "../support/webhook-receiver.ts";

let servers: TestServers;
let worker: TestWorker;
let receiver: WebhookReceiver;
let answer: NonNullable<Parameters<typeof startReceiver>[0]>;
let locked: Receiving;
let free: Receiving;

/** An organization with an endpoint. */
interface Receiving {
  partner: TestPartner;
  endpoint: string;
}

beforeAll(async () => {
  servers = await openTestServers();
  receiver = await startReceiver((request) => answer(request));
  servers.onClose(() => receiver.close());
  worker = await startWorkers(servers, WEBHOOK_ENV);
});

beforeEach(async () => {
  answer = () => 204;
  [locked, free] = [await makeReceiving(), await makeReceiving()];
});

afterAll(() => endService(servers));

it("a locked webhook endpoint delays only its own organization's events, which keep their order", async () => {
  // More vouchers than the rows that the fan-out reads at once.
  const vouchers = (await issueVouchers(servers.db, locked.partner, 510)).map(({ id }) => id);
  const [first = ""] = vouchers;
  await whileLocked(locked, async () => {
    await servers.db.query(
      `INSERT INTO webhook_outbox (organization_id, voucher_ids, sequences)
       SELECT $1, ARRAY[id], ARRAY[1] FROM unnest($2::text[]) WITH ORDINALITY AS v (id, n) ORDER BY n`,
      [locked.partner.organizationId, vouchers],
    );
    await redeem(locked, first);
    await redeem(free);
    await finished(free, 1);
    expect(await statesOf(locked)).toEqual([]);
  });
  await finished(locked, 511);
  const { rows } = await servers.db.query<{ voucherId: string }>(
    'SELECT voucher_id AS "voucherId" FROM webhook_deliveries WHERE endpoint_id = $1 ORDER BY position',
    [locked.endpoint],
  );
  expect(rows.map(({ voucherId }) => voucherId)).toEqual([...vouchers, first]);
  const ofFirst = receiver.of(locked.endpoint).filter(({ voucherId }) => voucherId === first);
  expect(ofFirst.map(({ sequence }) => sequence)).toEqual([1, 2]);
});

it("a locked webhook endpoint delays only the records of its attempts, and no webhook is sent twice", async () => {
  const held = Promise.withResolvers<number>();
  answer = () => held.promise;
  for (let n = 0; n < 3; n++) for (const one of [locked, free]) await redeem(one);
  for (const { endpoint } of [locked, free]) await until(() => receiver.of(endpoint).length === 3);
  await whileLocked(locked, async () => {
    held.resolve(204);
    await finished(free, 3);
    expect(await statesOf(locked)).toEqual(Array(3).fill("Pending"));
  });
  await finished(locked, 3);
  for (const { endpoint } of [locked, free]) expect(receiver.of(endpoint)).toHaveLength(3);
});

it("attempts at a locked webhook endpoint are recorded in order, and fail if the endpoint stays locked", async () => {
  const recorder = new AttemptRecorder({ ...worker.ctx, metrics: null });
  const [first, second] = await makeDue(locked);
  const failure = { status: 500, failure: "status", retryAfterMs: null } as const;
  const success = { status: 204, failure: null, retryAfterMs: null } as const;
  const submit = (delivery: typeof first, result: typeof failure | typeof success) =>
    recorder.submit({ endpointId: locked.endpoint, delivery, result });
  const submitted = await whileLocked(locked, async () => {
    const states = [submit(first, failure)];
    await untilWaiting(servers.db, 1, "worker");
    return { states: [...states, submit(second, success)] };
  });
  expect(await Promise.all(submitted.states)).toEqual(["Pending", "Delivered"]);
  const { rows } = await servers.db.query("SELECT failing_since FROM webhook_endpoints WHERE id = $1", [
    locked.endpoint,
  ]);
  expect(rows).toEqual([{ failing_since: null }]);
  await whileLocked(locked, () => expect(submit(first, failure)).rejects.toMatchObject({ code: "55P03" }));
  await recorder.close();
});

async function makeReceiving(): Promise<Receiving> {
  const partner = await makePartner(servers.db);
  return { partner, endpoint: await receiver.addEndpoint(servers.db, partner.organizationId) };
}

async function redeem({ partner }: Receiving, voucherId?: string): Promise<void> {
  const id = voucherId ?? (await issueVouchers(servers.db, partner, 1))[0]?.id ?? "";
  await runRedeemJob(worker.ctx, newAttempt(id), redeemJob(partner, "key", id, crypto.randomUUID()));
}

/** Makes two deliveries due, without a job. */
async function makeDue({ partner, endpoint }: Receiving): Promise<[DueDelivery, DueDelivery]> {
  const vouchers = await issueVouchers(servers.db, partner, 2);
  await servers.db.query(
    `INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, sequence, endpoint_id, event_id,
                                     voucher_id, event_type)
     SELECT 1, now(), now(), 1, $1, id || '-1', id, 'voucher.instance.voided' FROM unnest($2::text[]) AS v (id)`,
    [endpoint, vouchers.map(({ id }) => id)],
  );
  const due = await selectDueDeliveries(servers.db, { endpointId: endpoint, except: [], limit: 2 });
  return due as [DueDelivery, DueDelivery];
}

const whileLocked = <T>({ endpoint }: Receiving, work: () => Promise<T>) =>
  besideTransaction(servers.db, async (outside) => {
    await outside.query("SELECT FROM webhook_endpoints WHERE id = $1 FOR NO KEY UPDATE", [endpoint]);
    return work();
  });

const statesOf = async ({ endpoint }: Receiving) =>
  (await listDeliveries(worker.ctx, endpoint, { limit: 1_000 })).deliveries.map(({ state }) => state);

const finished = (one: Receiving, count: number) =>
  until(async () => {
    const states = await statesOf(one);
    return states.length === count && states.every((state) => state !== "Pending");
  });
