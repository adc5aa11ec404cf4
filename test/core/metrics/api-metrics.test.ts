import { isDeepStrictEqual } from "node:util";
import type pg from "pg";
import { describe, expect, it } from "vitest";
import { voidBatch } from "../../../src/acts/void-batch.ts";
import { openSealRequests } from "../../../src/core/chain/seal-job.ts";
import { openApiMetrics } from "../../../src/core/metrics/open-metrics.ts";
import { createListing } from "../../../src/marketplace/acts.ts";
import { each } from "../../../src/open/api-parts.ts";
import { WINGS } from "../../../src/open/wings.ts";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import { partnerClient, send } from "../../support/client.ts";
import { appendPending } from "../../support/pending-events.ts";
import { exchange } from "../../support/raw-http.ts";
import { type Scrape, scrape } from "../../support/scrape.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { startApi, startWorkers } from "../../support/service.ts";
import { issueVouchers, makePartner, provisioning } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const REQUESTS = "voucher_http_request_duration_seconds";

const service = useService({ env: { METRICS_PORT: "0" }, shards: 1 });
const { servers, partner, keys, api, worker, till, issue } = service;

it("the business metrics count a redemption once, by its brand, even after retries", async () => {
  const { rows } = await servers.db.query("SELECT name FROM brands WHERE id = $1", [partner.brandId]);
  const { code } = await issue();
  await growth("voucher_redemptions_total", { brand: rows[0].name }, 1, async () => {
    for (const _ of [1, 2]) await till.redeem({ code, externalRef: "counted-once" });
  });
});

it("the business metrics count, by brand, the vouchers that users can acquire from valid listings", async () => {
  const other = await makePartner(servers.db);
  const list = async (count: number, validUntil: Date) => {
    const windows = { claim: { opensAt: null, closesAt: null } };
    const [voucher] = await issueVouchers(servers.db, other, count, { windows, validUntil });
    const { rows } = await servers.db.query("SELECT batch_id FROM vouchers WHERE id = $1", [voucher?.id]);
    await createListing.run(provisioning(servers.db), rows[0].batch_id, {});
    return rows[0].batch_id;
  };
  const later = new Date(Date.now() + 86_400_000);
  const batchId = await list(7, later);
  await list(1_005, later);
  await list(5, new Date(Date.now() - 1_000));
  const { rows } = await servers.db.query("SELECT name FROM brands WHERE id = $1", [other.brandId]);
  const left = () => reported("voucher_stock_left", { brand: rows[0].name });
  expect(await left()).toBe(1_007);
  await voidBatch(provisioning(servers.db), batchId, null);
  expect(await left()).toBe(1_000);
});

it("the business metrics name at most 100 brands, and add up the others under one label", async () => {
  const pool = { totalCount: 0, idleCount: 0, waitingCount: 0, options: { max: 1 } };
  const stock = Array.from({ length: 150 }, (_, n) => ({ brand: `Brand ${n}`, left: 2 }));
  const none = { liveReservations: 0, sealLagMs: 0, clockAheadMs: 0, brokenChains: 0 };
  const database = { ...none, ofWings: { marketplace: stock } };
  const ofWings = { wings: WINGS, backlogs: each("backlog") };
  const measured = { pool, stalls: { takeLongestMs: () => 0 }, canary: api.ctx.canary, ...ofWings };
  const metrics = openApiMetrics(measured, async () => ({
    shards: null,
    database,
    down: { postgres: false, redis: false, shards: [] },
  }));
  for (const { brand } of stock) metrics.redemptions.with(brand).inc();
  for (const _ of [1, 2]) {
    const text = await metrics.scrape();
    expect(text.match(/^voucher_redemptions_total\{/gm)).toHaveLength(101);
    expect(text).toContain('voucher_redemptions_total{brand="other"} 50\n');
    expect(text).toContain('voucher_stock_left{brand="Brand 99"} 2\n');
    expect(text).toContain('voucher_stock_left{brand="other"} 100\n');
  }
});

it("the metrics count requests by route, method and status, with one label for all unknown routes", async () => {
  const { code } = await issue();
  const route = "/partner/vouchers/:codeOrTicket";
  const counts = (labels: Record<string, string>, by: number, work: () => Promise<unknown>) =>
    growth(`${REQUESTS}_count`, labels, by, work);
  await counts({ route, method: "GET", status: "200" }, 2, async () => {
    for (const _ of [1, 2]) await till.lookUp(code);
  });
  await counts({ route, method: "GET", status: "404" }, 1, () => till.lookUp("NO-SUCH"));
  await counts({ route, method: "GET", status: "401" }, 1, () => send("GET", `${api.url}/partner/vouchers/${code}`));
  const redeem = "/partner/vouchers/redeem";
  await counts({ route: redeem, method: "PUT", status: "405" }, 1, () => send("PUT", `${api.url}${redeem}`));
  await counts({ route: "none", method: "GET", status: "404" }, 3, async () => {
    for (const path of ["/wp-login.php", "/.env", "/a/b/c"]) await send("GET", `${api.url}${path}`);
  });
  await counts({ route: "none", method: "other", status: "404" }, 2, async () => {
    for (const method of ["PROPFIND", "MKCOL"])
      await exchange(api.url, `${method} /x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  });
});

it("the metrics count the duration of every request, and the sum is plausible", async () => {
  const { code } = await issue();
  await till.lookUp(code);
  const labels = { route: "/partner/vouchers/:codeOrTicket", method: "GET", status: "200" };
  const report = await untilReported(api, ({ value }) => (value(`${REQUESTS}_count`, labels) ?? 0) > 0);
  const count = report.value(`${REQUESTS}_count`, labels);
  expect(report.value(`${REQUESTS}_bucket`, { ...labels, le: "+Inf" })).toBe(count);
  expect(report.value(`${REQUESTS}_bucket`, { ...labels, le: "15" })).toBe(count);
  const sum = report.value(`${REQUESTS}_sum`, labels) ?? 0;
  expect(sum).toBeGreaterThan(0);
  expect(sum).toBeLessThan(15 * (count ?? 0));
});

it("the metrics count refusals by code, including invalid HTTP, and each counter starts at 0", async () => {
  const fresh = await service.startApi();
  const report = await scrape(fresh.metricsUrl);
  for (const code of ALL_ERRORS.keys()) expect(report.value("voucher_refusals_total", { code }), code).toBe(0);
  await fresh.close();
  const { code } = await issue();
  await till.redeem({ code, externalRef: `redeem-${code}` });
  for (const [refusal, cause] of [
    ["voucher_used", () => till.redeem({ code, externalRef: `again-${code}` })],
    ["voucher_not_found", () => till.lookUp("NO-SUCH")],
    ["invalid_request", () => till.redeem({})],
    ["unknown_key", () => partnerClient(api.url, "pvk_nonsense").lookUp(code)],
    ["invalid_http", () => exchange(api.url, "nonsense\r\n\r\n")],
  ] as const) {
    await growth("voucher_refusals_total", { code: refusal }, 1, cause);
  }
});

it("the metrics count the batches of look-ups, and the look-ups in these batches", async () => {
  const { code } = await issue();
  const labels = { batch: "lookups" };
  const before = await scrape(api.metricsUrl);
  await Promise.all(Array.from({ length: 40 }, () => till.lookUp(code)));
  const after = await scrape(api.metricsUrl);
  const grown = (name: string) => (after.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
  expect(grown("voucher_batch_items_sum")).toBe(40);
  expect(grown("voucher_batch_items_count")).toBeLessThan(40);
  expect(grown("voucher_batch_items_count")).toBe(grown("voucher_batch_duration_seconds_count"));
  expect(grown("voucher_batch_duration_seconds_sum")).toBeGreaterThan(0);
});

it("the API reports batches of reservations, and the worker batches of redeems", async () => {
  const { code } = await issue();
  const [reservations, redeems] = [{ batch: "reservations" }, { batch: "redeem" }];
  const before = { api: await scrape(api.metricsUrl), worker: await scrape(worker.metricsUrl) };
  const { body } = await till.reserve(code);
  await till.release(body.ticket);
  await till.redeem({ code, externalRef: `redeem-${code}` });
  const after = { api: await scrape(api.metricsUrl), worker: await scrape(worker.metricsUrl) };
  const items = "voucher_batch_items_sum";
  expect((after.api.value(items, reservations) ?? 0) - (before.api.value(items, reservations) ?? 0)).toBe(2);
  expect((after.worker.value(items, redeems) ?? 0) - (before.worker.value(items, redeems) ?? 0)).toBe(1);
  expect(after.api.value(items, redeems)).toBeUndefined();
  expect(after.worker.value(items, reservations)).toBeUndefined();
});

describe("the backlog", () => {
  it("the metrics count live reservations, but not expired reservations", async () => {
    const before = (await reported("voucher_live_reservations")) ?? 0;
    const [reserved, over] = [await issue(), await issue()];
    const { body } = await till.reserve(reserved.code);
    const { body: ended } = await till.reserve(over.code);
    expect(await reported("voucher_live_reservations")).toBe(before + 2);
    await servers.db.query(
      `UPDATE reservations SET started_at = started_at - interval '1 hour', expires_at = expires_at - interval '1 hour'
        WHERE ticket = $1`,
      [ended.ticket],
    );
    expect(await reported("voucher_live_reservations")).toBe(before + 1);
    await till.release(body.ticket);
    expect(await reported("voucher_live_reservations")).toBe(before);
  });

  it("the metrics report the age of the oldest Pending event", async () => {
    expect(await reported("voucher_seal_lag_seconds")).toBe(0);
    const { id: voucherId } = await issue();
    await appendPending(servers.db, voucherId, 1, new Date());
    const report = await untilReported(api, ({ value }) => (value("voucher_seal_lag_seconds") ?? 0) > 0.2);
    expect(report.value("voucher_seal_lag_seconds")).toBeLessThan(60);
    await api.ctx.sealQueue.addAndWait(`${voucherId}-${crypto.randomUUID()}`, { voucherId }, 10_000);
    expect(await reported("voucher_seal_lag_seconds")).toBe(0);
  });

  itOnOneRedis("the metrics omit the values of an unreachable server, and report the server as down", async () => {
    const [postgres, redis] = [await openTcpProxy(servers.databaseUrl), await openTcpProxy(servers.redisUrl)];
    const cutOff = await service.startApi({ DATABASE_URL: postgres.url, REDIS_URL: redis.url });
    const up = async () => {
      const report = await scrape(cutOff.metricsUrl);
      return {
        postgres: report.value("voucher_server_up", { server: "postgres" }),
        redis: report.value("voucher_server_up", { server: "redis" }),
        reservations: report.value("voucher_live_reservations"),
        lag: report.value("voucher_seal_lag_seconds"),
        waiting: report.value("voucher_queue_jobs", { queue: "redeem", state: "waiting" }),
        oldest: report.value("voucher_queue_oldest_waiting_seconds", { queue: "redeem" }),
        paused: report.value("voucher_queue_paused", { queue: "redeem" }),
      };
    };
    const everything = { postgres: 1, redis: 1, reservations: 0, lag: 0, waiting: 0, oldest: 0, paused: 0 };
    const noRedis = { ...everything, redis: 0, waiting: undefined, oldest: undefined, paused: undefined };
    const nothing = { ...noRedis, postgres: 0, reservations: undefined, lag: undefined };
    // On a busy machine, some scrapes may be late.
    const untilUp = () => until(async () => isDeepStrictEqual(await up(), everything));
    await untilUp();
    redis.cut();
    expect(await up()).toEqual(noRedis);
    postgres.cut();
    expect(await up()).toEqual(nothing);
    redis.mend();
    postgres.mend();
    await untilUp();
    redis.jam();
    postgres.jam();
    expect(await up()).toEqual(nothing);
    redis.mend();
    postgres.mend();
    await cutOff.close();
    await postgres.close();
    await redis.close();
  });
});

it.each([
  ["an API", () => api],
  ["a worker", () => worker],
])("a process's metrics report its Postgres pool, its event loop and Node's own metrics: %s", async (_which, which) => {
  const report = await scrape(which().metricsUrl);
  const busy = report.value("voucher_postgres_pool_connections", { state: "busy" }) ?? -1;
  const idle = report.value("voucher_postgres_pool_connections", { state: "idle" }) ?? -1;
  expect(busy).toBeGreaterThanOrEqual(0);
  expect(busy + idle).toBeLessThanOrEqual(report.value("voucher_postgres_pool_connections_max") ?? 0);
  expect(report.value("voucher_postgres_pool_waiting_calls")).toBe(0);
  expect(report.value("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
  expect(report.value("process_cpu_seconds_total")).toBeGreaterThan(0);
});

it("a process's metrics report its busy connections and the calls that wait for a connection", async () => {
  const { pool } = api.ctx;
  // Opens one connection after another, because a busy machine cannot open all within one time limit.
  const clients: pg.PoolClient[] = [];
  while (clients.length < pool.options.max) clients.push(await pool.connect());
  let late: Promise<void> | undefined;
  const report = await until(async () => {
    // This call waits for two seconds until it fails. A busy machine may report the failure later.
    late = pool.connect().then(
      (client) => client.release(),
      () => undefined,
    );
    const found = await scrape(api.metricsUrl);
    return (found.value("voucher_postgres_pool_waiting_calls") ?? 0) >= 1 ? found : null;
  });
  expect(report.value("voucher_postgres_pool_connections", { state: "busy" })).toBe(pool.options.max);
  for (const client of clients) client.release();
  await late;
});

it("the metrics port serves only /metrics, and is closed without METRICS_PORT", async () => {
  const at = (path: string, method = "GET") => fetch(new URL(path, api.metricsUrl), { method });
  expect((await at("/metrics")).headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  for (const path of ["/", "/metrics/x"]) expect((await at(path)).status, path).toBe(404);
  expect((await at("/metrics", "POST")).status).toBe(404);
  const plain = await startApi(servers);
  expect(plain.ctx.metrics).toBeNull();
  expect(plain.metricsUrl).toContain("undefined");
  await plain.close();
});

it("metric labels contain no code, ticket, token, key, reference or id", async () => {
  const { code, id } = await issue();
  const { body } = await till.reserve(code);
  const externalRef = "a-reference-of-the-partner";
  await till.lookUp(code);
  await till.lookUp(body.ticket);
  await till.events(code);
  await send("GET", `${api.url}/integrity/events/VoucherInstance/${id}`);
  await till.redeem({ ticket: body.ticket, externalRef });
  await till.redeem({ code, externalRef: `${externalRef}-2` });
  await send("GET", `${api.url}/nothing/${code}?code=${code}`);
  const routes = { route: "/integrity/events/:entityType/:entityId", status: "200" };
  await untilReported(api, ({ value }) => value(`${REQUESTS}_count`, routes) !== undefined);
  for (const { metricsUrl } of [api, worker]) {
    const report = await scrape(metricsUrl);
    for (const secret of [code, id, body.ticket, body.token, keys.till.key, externalRef, partner.organizationId])
      expect(report.text).not.toContain(secret);
    const names = new Set(
      report.samples.filter(({ name }) => name.startsWith("voucher_")).flatMap(({ labels }) => Object.keys(labels)),
    );
    // The labels with a bounded number of values. Metrics name at most 100 brands.
    const bounded =
      /^(route|method|status|code|le|batch|state|queue|shard|server|phase|task|message|result|reason|brand)$/;
    expect([...names].filter((name) => !bounded.test(name))).toEqual([]);
  }
});

// This test must be the last one, because it closes the worker.
it("an API's metrics count the jobs of every queue and report the age of each queue's oldest waiting job", async () => {
  await worker.close();
  const waiting = (queue: string) => ({ queue, state: "waiting" });
  const idle = await scrape(api.metricsUrl);
  for (const queue of ["redeem", "seal", "sweep"]) {
    for (const state of ["waiting", "active", "failed"])
      expect(idle.value("voucher_queue_jobs", { queue, state }), `${queue} ${state}`).toBe(0);
    expect(idle.value("voucher_queue_oldest_waiting_seconds", { queue }), queue).toBe(0);
  }
  const [first, second] = [await issue(), await issue()];
  const requests = openSealRequests({ ...api.ctx, shards: servers.shards.length });
  const add = (voucherId: string) => requests.add([voucherId]);
  await add(first.id);
  const oldest = { queue: "seal" };
  await untilReported(api, ({ value }) => (value("voucher_queue_oldest_waiting_seconds", oldest) ?? 0) > 0.2);
  await add(second.id);
  const report = await scrape(api.metricsUrl);
  expect(report.value("voucher_queue_jobs", waiting("seal"))).toBe(2);
  expect(report.value("voucher_queue_jobs", waiting("redeem"))).toBe(0);
  // The gauge reports the older of the two jobs.
  expect(report.value("voucher_queue_oldest_waiting_seconds", oldest)).toBeGreaterThan(0.2);
  await startWorkers(servers);
  await untilReported(api, ({ value }) => value("voucher_queue_jobs", waiting("seal")) === 0);
});

it("an API's metrics report the event loop's longest stall since the last scrape only once", async () => {
  const stall = async () => (await reported("voucher_event_loop_stall_seconds")) ?? Number.NaN;
  await stall();
  const startedAt = performance.now();
  while (performance.now() - startedAt < 400);
  expect(await stall()).toBeGreaterThanOrEqual(0.38);
  expect(await until(async () => (await stall()) < 0.38)).toBe(true);
});

const reported = async (name: string, labels?: Record<string, string>) =>
  (await scrape(api.metricsUrl)).value(name, labels);

/** Reads the metrics until they have the expected values. The API may count a call after its response. */
async function untilReported(target: { metricsUrl: string }, wanted: (report: Scrape) => boolean): Promise<Scrape> {
  return until(async () => {
    const report = await scrape(target.metricsUrl);
    return wanted(report) ? report : null;
  });
}

/** Expects that a value grows by `by` while `work` runs. */
async function growth(name: string, labels: Record<string, string>, by: number, work: () => Promise<unknown>) {
  const before = (await reported(name, labels)) ?? 0;
  await work();
  await untilReported(api, (report) => (report.value(name, labels) ?? 0) >= before + by);
  expect(await reported(name, labels)).toBe(before + by);
}
