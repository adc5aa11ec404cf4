import { afterAll, beforeAll, expect, it } from "vitest";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { assertInvariants } from "../../support/invariants.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import type { TestServers } from "../../support/servers.ts";
import { openWorkerContext, testConfig, type WorkerContext } from "../../support/service.ts";
import { issueVouchers, makePartner, type TestPartner } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { startReceiver, WEBHOOK_ENV, type WebhookReceiver } from "../../support/webhook-receiver.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import type { ServiceProcess } from "./service-process.ts";

/** The number of kills of workers. WEBHOOK_KILLS=1000 for a long run. */
const KILLS = Number(process.env.WEBHOOK_KILLS ?? 20);
/** The number of vouchers redeemed between two kills. Every second one has a reservation, which expires first. */
const REDEEMS_PER_KILL = 10;
/** In this many kills, Redis is emptied once, and Postgres restarts once. */
const SERVER_FAULT_EVERY = 10;

let cluster: Cluster;
let redeemer: WorkerContext;
let receiver: WebhookReceiver;
const failedOnce = new Set<string>();

beforeAll(async () => {
  // Every tenth event fails at its first request.
  receiver = await startReceiver(({ id }) => {
    if (!id.endsWith("7-2") || failedOnce.has(id)) return 204;
    failedOnce.add(id);
    return 500;
  });
  cluster = await openCluster({
    redeemWaitMs: 2_000,
    reservationSeconds: 60,
    env: { ...WEBHOOK_ENV, WORKER_QUEUES: "seal,sweep,webhook" },
  });
  const servers = { databaseUrl: cluster.postgres.url, redisUrl: cluster.redis.url, queueShards: [1] };
  redeemer = openWorkerContext(testConfig(servers as unknown as TestServers, { WORKER_QUEUES: "redeem" }));
  await redeemer.deployment.ready();
});

afterAll(async () => {
  await redeemer?.close();
  await cluster?.close();
  await receiver?.close();
});

it(`the service loses no webhook, signs each and keeps each voucher's order over ${KILLS} kills`, async () => {
  const partner = await makePartner(cluster.db);
  const endpoints = [
    await receiver.addEndpoint(cluster.db, partner.organizationId),
    await receiver.addEndpoint(cluster.db, partner.organizationId, ["voucher.instance.redeemed"]),
  ];
  const vouchers = await issueVouchers(cluster.db, partner, KILLS * REDEEMS_PER_KILL);
  const reserved = vouchers.filter((_, n) => n % 2 === 0).map(({ id }) => id);
  await reserveUntilPast(reserved, partner);
  const { workers } = cluster;
  for (const worker of workers) worker.start();
  const startedAt = Date.now();
  for (let kill = 0; kill < KILLS; kill++) {
    const portion = vouchers.slice(kill * REDEEMS_PER_KILL, (kill + 1) * REDEEMS_PER_KILL);
    const redeemed = Promise.all(portion.map(({ id }) => redeem(partner, id)));
    await killAtWork(workers[kill % workers.length] as ServiceProcess, kill % 7);
    await failServer(kill);
    await redeemed;
  }
  const seconds = (Date.now() - startedAt) / 1_000;
  await untilAllDelivered();

  const expected = [
    vouchers.flatMap(({ id }) => [`${id}-2`]).concat(reserved.map((id) => `${id}-r`)),
    vouchers.map(({ id }) => `${id}-2`),
  ];
  let repeated = 0;
  for (const [n, endpoint] of endpoints.entries()) repeated += expectDelivered(endpoint, expected[n] ?? []);
  // A kill repeats at most the requests that the worker had sent and not recorded: 64 per endpoint.
  expect(repeated).toBeLessThanOrEqual(KILLS * 2 * 64);
  process.stdout.write(
    `${KILLS} kills in ${seconds.toFixed(0)} s, ${receiver.received.length} requests, ${repeated} accepted twice\n`,
  );
  await assertInvariants(cluster.db);
}, 3_600_000);

/** Gives each voucher a live reservation whose end has passed. */
async function reserveUntilPast(voucherIds: readonly string[], { organizationId }: TestPartner): Promise<void> {
  await cluster.db.query(
    `INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state,
                               token_secret_id)
     SELECT date_trunc('second', now() - interval '2 minutes'),
            date_trunc('second', now() - interval '1 minute') + interval '1 day',
            'rsv_' || id, id, $2, 'key', 'Live', 'secret'
       FROM unnest($1::text[]) AS v (id)`,
    [voucherIds, organizationId],
  );
  await cluster.db.query("UPDATE reservations SET expires_at = expires_at - interval '1 day'");
}

/** Redeems a voucher, and repeats the call while servers are unreachable. */
async function redeem(partner: TestPartner, id: string): Promise<void> {
  const job = redeemJob(partner, "key", id, `order-${id}`, { deadlineMs: Date.now() + 3_600_000 });
  await untilStarted(async () => {
    const reply = await runRedeemJob(redeemer, newAttempt(id), job).catch(() => null);
    return reply?.kind === "redeemed" || reply?.kind === "confirmed";
  });
}

async function failServer(kill: number): Promise<void> {
  if (kill % SERVER_FAULT_EVERY === 3) {
    await cluster.redis.kill("Everything");
    await cluster.redis.start();
  }
  if (kill % SERVER_FAULT_EVERY === 7) {
    await cluster.postgres.kill();
    await cluster.postgres.start();
  }
}

/** Waits until every delivery has ended. Makes third attempts due at once, because they could take minutes. */
async function untilAllDelivered(): Promise<void> {
  await until(async () => {
    await cluster.db.query(
      "UPDATE webhook_deliveries SET next_attempt_at = now() WHERE attempts > 1 AND next_attempt_at > now()",
    );
    const { rows } = await cluster.db.query(
      `SELECT (SELECT count(*) FROM webhook_outbox)
            + (SELECT count(*) FROM webhook_deliveries WHERE finished_at IS NULL) AS left`,
    );
    return Number(rows[0].left) === 0;
  }, 180_000);
}

/**
 * Expects that an endpoint has accepted these events, those of each voucher in order. Returns how many requests it
 * accepted again.
 */
function expectDelivered(endpoint: string, expected: string[]): number {
  const requests = receiver.of(endpoint);
  expect(requests.filter(({ isSigned }) => !isSigned)).toEqual([]);
  const accepted = requests.filter(({ status }) => status === 204);
  const ids = new Set(accepted.map(({ id }) => id.replace(/-r\d+$/, "-r")));
  expect([...ids].sort()).toEqual(expected.sort());
  for (const [id, ofId] of Map.groupBy(requests, (request) => request.id)) {
    expect(new Set(ofId.map(({ text }) => text)).size, `bodies of ${id}`).toBe(1);
  }
  for (const [voucherId, ofVoucher] of Map.groupBy(requests, (request) => request.voucherId)) {
    const redeemedAt = ofVoucher.findIndex(({ type }) => type === "voucher.instance.redeemed");
    const after = ofVoucher.slice(redeemedAt).filter(({ type }) => type === "reservation.expired");
    expect(after, `requests of ${voucherId} about its earlier event, after the later one`).toEqual([]);
  }
  return accepted.length - ids.size;
}

/** Kills a worker at work, once the receiver has got some requests. */
async function killAtWork(worker: ServiceProcess, requests: number): Promise<void> {
  const from = receiver.received.length;
  // After a second, kills the worker even if it has sent too little, so that the test does not wait forever.
  await until(() => receiver.received.length >= from + requests, 1_000).catch(() => undefined);
  await worker.kill();
  worker.start();
}
