import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { renderOverviewPage } from "../../src/console/overview-page.ts";
import { reportsKey } from "../../src/core/processes/process-report.ts";
import { RedeemOutcomes } from "../../src/core/processes/redeem-outcomes.ts";
import { workerOptions } from "../../src/core/processes/worker-options.ts";
import { moveCompleteUntil } from "../../src/core/redeem/db/redemptions.ts";
import type { Site } from "../../src/pages/layout.ts";
import { UnusableDatabase } from "../../src/platform/db/schema.ts";
import { findShard, listShards } from "../../src/platform/queues/shards.ts";
import { openFailFast } from "../../src/platform/redis/connections.ts";
import { keepFinding, reportPrefix } from "../../src/platform/redis/findings.ts";
import { insertTlogTree } from "../../src/transparency/db/log-tree.ts";
import { countActivity } from "../../src/watch/count-activity.ts";
import { readStock, type Stock } from "../../src/watch/db/activity.ts";
import { readKeptFaults } from "../../src/watch/db/faults.ts";
import { STOCK } from "../../src/watch/facts.ts";
import { lookForFaults } from "../../src/watch/find-attention.ts";
import { nameProcess } from "../../src/watch/judge-redeeming.ts";
import { readOverview, viewOverview } from "../../src/watch/read-overview.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { newUser, offerBatch } from "../support/marketplace.ts";
import { untilPast } from "../support/outside-transaction.ts";
import { startApi, startWorkers } from "../support/service.ts";
import { issueVoucher, issueVouchers, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";
import { openVoucherctl } from "../support/voucherctl.ts";

/** Who sees an overview that a test renders by itself. */
const SEEN_BY = {
  site: ({ ctx }: { ctx: { config: Site } }) => ({ ...ctx.config, offers: () => true }),
  operator: { name: "Zoë", role: "admin" as const },
};

const { api, apis, db, servers, partner, stranger, till, foreign, issue, as, contexts, worker } = useService({
  apis: [{}, { OPS_WRITABLE: "true" }],
  env: { OPS_TOKEN },
  users: true,
  contexts: 1,
});
const [ctx] = contexts;
const [, writable] = apis;

const open = (path: string) => browse(`${api.url}/ops${path}`, { headers: basic(OPS_TOKEN) });

beforeAll(async () => {
  for (const { code } of await issueVouchers(db, partner, 3))
    await till.redeem({ code, externalRef: `order of ${code}` });
  await foreign.redeem({ code: (await issueVoucher(db, stranger)).code, externalRef: "another's order" });
  await offerBatch(db, partner, 5);
  expect((await (await as(newUser())).claimProduct(partner.productId)).status).toBe(200);
  await count();
  await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "unknown code" });
});

describe("the overview", () => {
  it("the overview has the same redemptions of an organization as GET /partner/redemptions", async () => {
    // On a busy machine, Postgres may answer too late for some views.
    const view = await until(async () => {
      const found = JSON.parse((await open(`/overview.json?organization=${partner.organizationId}`)).text);
      return found.completeUntil && found;
    });
    const { body } = await till.redemptions({ from: view.minutes[0].at, to: view.completeUntil, limit: "1000" });
    expect(body.redemptions.length).toBe(3);
    expect(sumOf(view.minutes)).toMatchObject({ redemptions: 3, claims: 1 });
    expect(sumOf(view.hours).redemptions).toBe(3);
    expect([view.minutes.length, view.hours.length, view.organization]).toEqual([60, 48, partner.organizationId]);
    const all = await until(async () => {
      const found = await read();
      return found.completeUntil === null ? null : found;
    });
    const { rows } = await db.query(
      "SELECT (SELECT count(*)::int FROM redemptions) AS redemptions, (SELECT count(*)::int FROM claims) AS claims",
    );
    expect([sumOf(all.minutes), sumOf(all.hours)]).toMatchObject([rows[0], rows[0]]);
    expect(all.organization).toBeNull();
  });

  it("the overview leaves an audit entry an hour for each operator and organization, and none for all", async () => {
    const looks = async () =>
      (
        await db.query(
          `SELECT os_user AS user, entity_id AS of FROM audit_entries
            WHERE command = 'page overview' AND entity_id = $1 ORDER BY id`,
          [stranger.organizationId],
        )
      ).rows;
    const of = stranger.organizationId;
    for (const path of ["", "/overview.json"]) await open(path);
    for (const user of ["Ada", "Bob"]) {
      for (const path of [
        `/overview.json?organization=${of}`,
        `?organization=${of}`,
        `/overview.json?organization=${of}`,
      ]) {
        expect((await browse(`${api.url}/ops${path}`, { headers: basic(OPS_TOKEN, user) })).status).toBe(200);
      }
    }
    expect(await looks()).toEqual([
      { user: "shared: Ada", of },
      { user: "shared: Bob", of },
    ]);
    expect((await open("?organization=org_none")).status).toBe(404);
    const { rows } = await db.query(
      "SELECT FROM audit_entries WHERE command = 'page overview' AND entity_id = 'org_none'",
    );
    expect(rows).toHaveLength(0);
  });

  it("the overview of an organization is not shown when the visit cannot be recorded", async () => {
    const { organizationId } = await makePartner(db);
    const look = () =>
      browse(`${api.url}/ops/overview.json?organization=${organizationId}`, { headers: basic(OPS_TOKEN, "Eve") });
    await db.query("ALTER TABLE audit_entries ADD CONSTRAINT refuse_looks CHECK (command NOT LIKE 'page %') NOT VALID");
    expect((await look()).status).toBe(500);
    await db.query("ALTER TABLE audit_entries DROP CONSTRAINT refuse_looks");
    expect((await look()).status).toBe(200);
    expect(
      (await db.query("SELECT FROM audit_entries WHERE entity_id = $1 AND command LIKE 'page %'", [organizationId]))
        .rowCount,
    ).toBe(1);
  });

  it("the overview has the refusals and the latency that processes report", async () => {
    await api.ctx.report.send();
    // On a busy machine, Redis may answer too late for some views.
    await until(async () => sumOf((await read(partner.organizationId)).minutes).refusals === 1);
    expect(sumOf((await read(stranger.organizationId)).minutes).refusals).toBe(0);
    const latencyMs = await until(async () => {
      const found = (await read()).latencyMs;
      return (found.p50 ?? 0) > 0 ? found : null;
    });
    expect(latencyMs.p99).toBeGreaterThanOrEqual(latencyMs.p50 ?? 0);
  });

  it.each([
    ["POST", "/partner/vouchers/redeem"],
    ["POST", "/partner/vouchers/reserve"],
    ["POST", "/products/prd_none/claim"],
    ["POST", "/products/prd_none/buy"],
    ["POST", "/marketplace/listings/lst_none/buy"],
    ["POST", "/r/NONE/claim"],
  ])("the overview counts a refusal of %s %s", async (method, path) => {
    expect(await countResponses(method, path)).toEqual({ refusals: 1, responses: 1 });
  });

  it.each([
    ["GET", "/r/NONE", 1],
    ["GET", "/partner/vouchers/NONE", 1],
    ["POST", "/partner/vouchers/release", 1],
    ["GET", "/none", 1],
    ["POST", "/healthz", 0],
    ["POST", "/readyz", 0],
  ])("the overview counts no refusal of %s %s, and %i responses", async (method, path, responses) => {
    expect(await countResponses(method, path)).toEqual({ refusals: 0, responses });
  });

  it("the overview shows a process that vanished until an operator's audited dismissal", async () => {
    const id = "host 1 worker 2026";
    const key = reportsKey(ctx.deployment);
    const since = "2026-01-01T00:00:00Z";
    const report = { role: "worker", host: "host", pid: 1, version: "0", queues: ["other"], since };
    await servers.redis.hset(key, id, JSON.stringify({ ...report, cpu: 0, memoryBytes: 1 }));
    const find = async () => (await read()).processes;
    expect(await find()).toContainEqual({ ...report, state: "gone", endedAt: null, problem: null });
    // Processes report every few seconds.
    await until(async () => {
      const roles = (await find()).map(({ role, queues, state }) => `${role} ${queues} ${state}`);
      return ["api  up", "worker redeem,seal up"].every((up) => roles.includes(up));
    });
    const pathOf = (process: string) => `/ops/processes/${encodeURIComponent(process)}/dismiss`;
    const dismiss = (process: string) =>
      browse(`${writable.url}${pathOf(process)}`, { headers: basic(OPS_TOKEN, "Ada"), form: {} });
    const { markup } = renderOverviewPage(
      SEEN_BY.site(writable),
      SEEN_BY.operator,
      await readOverview(writable.ctx, null),
    );
    expect(markup).toContain(`action="${pathOf(id)}" method="post"`);
    // A process that still reports cannot be dismissed.
    expect((await dismiss(api.ctx.report.id)).text).toContain("No process that is gone has this id.");
    expect((await dismiss(id)).location).toBe("/ops");
    expect(await servers.redis.hexists(key, id)).toBe(0);
    expect(await servers.redis.hexists(key, api.ctx.report.id)).toBe(1);
    const { rows } = await db.query(
      "SELECT os_user AS user, entity_id AS of FROM audit_entries WHERE command = 'process dismiss'",
    );
    expect(rows).toEqual([{ user: "shared: Ada", of: id }]);
  });

  it("voucherctl process lists processes, and dismisses one that vanished with an audit entry", async () => {
    const voucherctl = openVoucherctl(servers);
    const id = "host 2 worker 2026";
    const report = {
      role: "worker",
      host: "host",
      pid: 2,
      version: "0",
      queues: ["other"],
      since: "2026-01-01T00:00:00Z",
    };
    await servers.redis.hset(reportsKey(ctx.deployment), id, JSON.stringify({ ...report, cpu: 0, memoryBytes: 1 }));
    const list = async () => (await voucherctl.json("process list")).processes;
    expect(await list()).toContainEqual(
      expect.objectContaining({ id, role: "worker", state: "gone", queues: ["other"] }),
    );
    expect((await voucherctl.run("process list")).stdout).toContain(id);
    // A process that still reports cannot be dismissed.
    const refused = await voucherctl.run(["process", "dismiss", api.ctx.report.id]);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("No process that is gone has this id"),
    });
    expect(await voucherctl.json("process", "dismiss", id)).toEqual({ id, dismissed: true });
    expect((await list()).map((one: { id: string }) => one.id)).not.toContain(id);
    const { rows } = await db.query("SELECT arguments, entity_type FROM audit_entries WHERE entity_id = $1", [id]);
    expect(rows).toEqual([{ arguments: { id }, entity_type: "Process" }]);
  });

  it("the overview has each queue's pause in any shard, its serving processes and its oldest job's age", async () => {
    const shards = listShards(ctx.deployment.id, servers.queueShards[0]);
    const find = async (queue: string) => (await read()).queues.find(({ name }) => name === queue);
    await until(async () => (await find("redeem"))?.workers === 1);
    expect(await find("redeem")).toMatchObject({ paused: false, oldestWaitingMs: 0 });
    const seal = `${shards.at(-1)?.prefix}:seal`;
    await servers.redis.hset(`${seal}:meta`, "paused", "1");
    await servers.redis.hset(`${seal}:1`, "timestamp", String(Date.now() - 3_600_000));
    await servers.redis.lpush(`${seal}:wait`, "1");
    const found = await find("seal");
    expect(found).toMatchObject({ paused: true, workers: 1, waiting: 1 });
    expect(found?.oldestWaitingMs).toBeGreaterThanOrEqual(3_600_000);
    await servers.redis.del(`${seal}:wait`, `${seal}:1`);
    await servers.redis.hdel(`${seal}:meta`, "paused");
    expect(await find("seal")).toMatchObject({ paused: false, waiting: 0, oldestWaitingMs: 0 });
  });

  it("the overview counts no worker for a queue whose secret the process lacks", async () => {
    const other = await startWorkers(servers, { WORKER_QUEUES: "webhook,seal" });
    const find = async (queue: string) => (await read()).queues.find(({ name }) => name === queue)?.workers;
    await until(async () => (await find("seal")) === 2);
    expect(await find("webhook")).toBe(0);
    await other.close();
  });

  it("the overview shows a process as ended, and not as gone, once it was told to stop", async () => {
    const countEnded = async () => (await read()).processes.filter(({ state }) => state === "ended").length;
    const before = await countEnded();
    await (await startWorkers(servers)).close();
    expect(await countEnded()).toBe(before + 1);
  });

  it("the overview uses the singular for one claim, and distinguishes organizations of one name by id", async () => {
    const namesake = await makePartner(db);
    await db.query("UPDATE organizations SET name = 'Corner Shop' WHERE id = ANY ($1)", [
      [partner.organizationId, namesake.organizationId],
    ]);
    const { markup: text } = renderOverviewPage(
      SEEN_BY.site(api),
      SEEN_BY.operator,
      await readOverview(api.ctx, partner.organizationId),
    );
    expect(text).toContain("3 redemptions, 1 claim, ");
    expect(text).toContain(`Corner Shop, ${partner.organizationId}<`);
    expect(text).toContain(`Corner Shop, ${namesake.organizationId}<`);
    expect(text).not.toContain(`, ${stranger.organizationId}<`);
  });

  it("the overview refuses an organization that does not exist, and asks for the password", async () => {
    expect((await open("/overview.json?organization=org_none")).status).toBe(404);
    expect((await browse(`${api.url}/ops/overview.json`)).status).toBe(401);
  });

  it("the overview shows hostile names as text, in less than 100 kB with its styles", async () => {
    const name = `<script>alert(1)</script>\u202e${"x".repeat(170)}`;
    await db.query("UPDATE organizations SET name = $1 WHERE id = $2", [name, stranger.organizationId]);
    let text = "";
    await until(async () => {
      ({ text } = await open(""));
      return text.includes("&#60;script&#62;alert(1)");
    });
    expect(text).not.toContain("<script>alert");
    const styles = [...text.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, path]) => path);
    expect(styles.length).toBe(3);
    const sizes = await Promise.all(
      styles.map(async (path) => (await (await fetch(`${api.url}${path}`)).text()).length),
    );
    expect(text.length + sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(100_000);
  });
});

describe("the counts", () => {
  const counts = async () =>
    (
      await db.query("SELECT * FROM activity_counts WHERE organization_id = $1 ORDER BY span, at", [
        partner.organizationId,
      ])
    ).rows;

  it("the counts count nothing twice when two processes count at once", async () => {
    const { code } = await issue();
    await till.redeem({ code, externalRef: "counted at once" });
    const { rows } = await db.query("SELECT clock_timestamp() + interval '2.2 seconds' AS later");
    await untilPast(db, rows[0].later);
    await Promise.all(Array.from({ length: 4 }, () => countPast()));
    expect(sumOf((await read(partner.organizationId)).hours).redemptions).toBe(4);
  });

  it.each([
    [
      "redemption",
      `INSERT INTO redemptions
         (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
       SELECT date_trunc('milliseconds', clock_timestamp()), id, organization_id, 'key', id, id, id
         FROM vouchers WHERE id = $1`,
    ],
    ["claim", "INSERT INTO claims (user_id, product_id, voucher_id) SELECT $1, p.id, $1 FROM products AS p LIMIT 1"],
    ["purchase", "INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id) VALUES ($1, $1, $1, $1)"],
  ])("the counts end before a %s whose transaction is open", async (_, insert) => {
    const { id } = await issue();
    const client = await db.connect();
    try {
      await client.query("BEGIN");
      await client.query(insert, [id]);
      const { rows } = await db.query(
        "SELECT clock_timestamp() AS now, clock_timestamp() + interval '2.2 seconds' AS later",
      );
      await untilPast(db, rows[0].later);
      await countPast();
      // The counts end before this time, which may be in the same millisecond as the insert.
      expect((await countedUntil()) <= rows[0].now).toBe(true);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  it("the counts are made again after an operator has said that the clock is right", async () => {
    await count();
    const right = await counts();
    // Changes the counts as a clock that was a year ahead would.
    await db.query("UPDATE activity_counts SET redemptions = 9 WHERE organization_id = $1", [partner.organizationId]);
    await db.query("UPDATE activity_counted SET counted_until = now() + interval '1 year'");
    await db.query("UPDATE redemptions_closed SET clock_trusted_at = clock_timestamp()");
    await count();
    expect(await counts()).toEqual(right);
  });
});

it("the list of faults has an endpoint that failed three times in a row, and one disabled for failing", async () => {
  const id = "whk_01jzbq0000e00a4g0g00000001";
  const deployed = (await db.query("SELECT canon_preserved_since AS at FROM deployment")).rows[0].at;
  const failingSince = new Date(deployed.getTime() + 1);
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, failing_since, failures)
       VALUES ($1, $2, 1, 'https://shop.example.com/hooks', $3, 2)`,
    [id, partner.organizationId, failingSince],
  );
  expect(await faultsOf("VouchersWebhooksFail")).toEqual([]);
  await db.query("UPDATE webhook_endpoints SET failures = 3 WHERE id = $1", [id]);
  expect(await faultsOf("VouchersWebhooksFail")).toMatchObject([
    {
      subject: expect.stringContaining(": shop.example.com"),
      since: failingSince.toISOString(),
      page: ["webhooks", id],
    },
  ]);
  await db.query(
    "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'gone', disabled_at = '2026-01-02' WHERE id = $1",
    [id],
  );
  // No fault is older than the deployment.
  expect(await faultsOf("VouchersWebhookEndpointDisabled")).toMatchObject([{ since: deployed.toISOString() }]);
});

it("a process goes on from the last look that it read, not an older one of its own, without Redis", async () => {
  const report = (reportingMs: number) => ({
    self: api.ctx.report.self,
    redeems: api.ctx.report.redeems,
    readCounts: () => ({}),
    reportingMs,
    tell() {},
  });
  const find = async (changes: object, maxAgeMs: number) => {
    const { attention } = await lookForFaults({ ...api.ctx, ...changes }, maxAgeMs);
    return attention.filter(({ runbook }) => runbook === "VouchersShardUnserved").length;
  };
  // This process's own look, which finds shards that no worker serves.
  const config = { ...api.ctx.config, queueShards: [7] as [number] };
  expect(await find({ config, report: report(60_000) }, -1)).toBeGreaterThan(0);
  // Another process has found the shards served again.
  await db.query("UPDATE faults SET ended_at = clock_timestamp() WHERE name = 'VouchersShardUnserved'");
  const calm = {
    at: new Date(Date.now() + 1_000).toISOString(),
    attention: [],
    suspected: [],
    sweeps: { mark: "", unchangedMs: 0, hasChanged: false },
  };
  await keepFinding(servers.redis, `${reportPrefix(ctx.deployment)}:look`, 7 * 86_400_000, calm);
  expect(await find({}, 60_000)).toBe(0);
  const away = openFailFast("redis://127.0.0.1:1", "test", api.ctx.log);
  expect(await find({ redis: away, config, report: report(0) }, -1)).toBe(0);
  away.disconnect();
});

it("the list of faults says when ALERT_URL does not accept messages", async () => {
  const alerts = { url: "https://hooks.example.com/alerts", secret: null };
  const find = async () => {
    const { attention } = await lookForFaults({ ...api.ctx, config: { ...api.ctx.config, alerts } }, -1);
    return attention.filter(({ runbook }) => runbook === "AlertsFail");
  };
  expect(await find()).toEqual([]);
  const failingSince = "2026-01-02T03:04:05.000Z";
  const told = { severity: "red", what: "x", subject: "y", since: failingSince, id: "alr_1", fault: "z", returns: 0 };
  const unsent = {
    missingSince: null,
    endedAt: null,
    sent: "nothing",
    attempts: 1,
    nextAt: failingSince,
    failingSince,
  };
  const state = JSON.stringify({ alerts: [{ ...told, ...unsent }] });
  await db.query("UPDATE alerts SET version = version + 1, state = $1", [state]);
  expect(await find()).toMatchObject([{ severity: "amber", subject: "ALERT_URL" }]);
  await db.query(`UPDATE alerts SET version = version + 1, state = '{"alerts": []}'`);
  expect(await find()).toEqual([]);
});

it("one sale does not predict when a batch runs out: that takes ten sales or six hours of selling", async () => {
  const shop = await makePartner(db);
  const validUntil = new Date(Date.now() + 30 * 86_400_000);
  const { batchId } = await offerBatch(db, shop, 20, { validUntil });
  const ends = async () => (await faultsOf("BatchEnds")).filter(({ page }) => page?.includes(batchId));
  const sell = (acquired: number) =>
    db.query(
      `INSERT INTO acquired_counts (at, acquired, batch_id) VALUES (date_trunc('hour', now()), $1, $2)
       ON CONFLICT (batch_id, at) DO UPDATE SET acquired = $1`,
      [acquired, batchId],
    );
  await sell(9);
  expect(await ends()).toEqual([]);
  await sell(10);
  expect(await ends()).toMatchObject([{ what: "A batch runs out within a day" }]);
  await sell(9);
  await db.query("UPDATE batches SET created_at = now() - interval '6 hours' WHERE id = $1", [batchId]);
  expect(await ends()).toMatchObject([{ what: "A batch runs out within a day" }]);
  // The batch was issued long ago, and its window has just opened.
  await db.query("UPDATE batch_windows SET opens_at = now() - interval '1 hour' WHERE batch_id = $1", [batchId]);
  expect(await ends()).toEqual([]);
});

it("the list of faults has batches that are sold out, and that end within a week", async () => {
  const [sold, calm, far] = [await makePartner(db), await makePartner(db), await makePartner(db)];
  const validUntil = new Date(Date.now() + 30 * 86_400_000);
  await offerBatch(db, sold, 1, { validUntil });
  expect((await (await as(newUser())).claimProduct(sold.productId)).status).toBe(200);
  await offerBatch(db, calm, 2);
  await offerBatch(db, far, 2, { validUntil });
  await count();
  expect((await faultsOf("BatchEnds")).map(({ what }) => what).toSorted()).toEqual([
    "A batch ends within a week, with stock left",
    "A batch ends within a week, with stock left",
    "A batch is sold out",
  ]);
  const { stock } = await read();
  expect(stock.map(({ left, runsOutAt }) => [left, runsOutAt !== null])).toEqual([
    [2, false],
    [2, false],
    [0, true],
    [20, false],
    [4, false],
  ]);
});

it("the list of faults has each organization's batches that end or sell out beside many of another one", async () => {
  const [ending, sold, busy] = [await makePartner(db), await makePartner(db), await makePartner(db)];
  const far = new Date(Date.now() + 300 * 86_400_000);
  const { batchId: ends } = await offerBatch(db, ending, 1);
  const { batchId: soldOut } = await offerBatch(db, sold, 1, { validUntil: far });
  expect((await (await as(newUser())).claimProduct(sold.productId)).status).toBe(200);
  const found = async () => (await faultsOf("BatchEnds")).map(({ page }) => page?.[1]);
  const add = (validUntil: Date) =>
    Promise.all(
      Array.from({ length: STOCK.batchesMax }, () =>
        issueVouchers(db, busy, 1, { validUntil, windows: { claim: { opensAt: null, closesAt: null } } }),
      ),
    );
  await add(far);
  expect(await found()).toEqual(expect.arrayContaining([ends, soldOut]));
  // These end soon themselves, and before the others.
  await add(new Date(Date.now() + 3_600_000));
  expect(await found()).toEqual(expect.arrayContaining([ends, soldOut]));
  expect((await read()).stock).toHaveLength(STOCK.batchesMax);
  // Nor do they hide a batch that only sells.
  const { batchId: sells } = await offerBatch(db, await makePartner(db), 5, { validUntil: far });
  await db.query("INSERT INTO acquired_counts (at, acquired, batch_id) VALUES (now(), 1, $1)", [sells]);
  expect((await read()).stock.map(({ batchId }) => batchId)).toContain(sells);
  // Batches that need no attention leave room for those that do, and for those that sell.
  const first = (batchesMax: number) => readStock(db, { organizationId: null, ...STOCK, batchesMax });
  const soon = Date.now() + STOCK.soonDays * 86_400_000;
  const isUrgent = ({ left, endsAt }: Stock) => left === 0 || endsAt.getTime() <= soon;
  const all = await first(1_000);
  const selling = all.find((batch) => batch.organizationId === busy.organizationId && !isUrgent(batch))?.batchId;
  await db.query("INSERT INTO acquired_counts (at, acquired, batch_id) VALUES (now(), 1, $1)", [selling]);
  const { rows } = await db.query("SELECT DISTINCT batch_id FROM acquired_counts");
  const acquired = new Set(rows.map(({ batch_id }) => batch_id));
  const isWatched = (batch: Stock) => isUrgent(batch) || acquired.has(batch.batchId);
  const watched = await first(all.filter(isWatched).length);
  expect(watched.filter((batch) => !isWatched(batch))).toEqual([]);
  expect(watched.map(({ batchId }) => batchId)).toContain(selling);
  await db.query(
    `WITH closed AS (DELETE FROM batch_windows AS w USING batches AS b
                      WHERE b.id = w.batch_id AND b.product_id = $1 RETURNING w.batch_id)
     UPDATE vouchers SET pickable = false WHERE batch_id IN (SELECT batch_id FROM closed)`,
    [busy.productId],
  );
});

it("the list of faults has a chain that is broken", async () => {
  const { id } = await issue();
  await db.query("INSERT INTO broken_chains (found_at, voucher_id) VALUES (now(), $1)", [id]);
  expect((await faultsOf("VouchersChainBroken")).map(({ subject }) => subject)).toEqual([id]);
  await db.query("DELETE FROM broken_chains");
});

it("the list of faults has failed jobs since they were first seen, and no longer when they are gone", async () => {
  const key = `${findShard(ctx.deployment.id, 0, ctx.config.queueShards[0]).prefix}:redeem:failed`;
  await servers.redis.zadd(key, 1, "job");
  const [first] = await faultsOf("VouchersJobsFail");
  await servers.redis.zadd(key, 2, "job 2");
  expect(await faultsOf("VouchersJobsFail")).toEqual([{ ...first, what: "2 jobs have failed" }]);
  await servers.redis.del(key);
  expect(await faultsOf("VouchersJobsFail")).toEqual([]);
});

it("a fault's beginning stays in Postgres while Redis forgets it, and a fault that returns begins again", async () => {
  const key = `${findShard(ctx.deployment.id, 0, ctx.config.queueShards[0]).prefix}:redeem:failed`;
  await servers.redis.zadd(key, 1, "job");
  const [first] = await faultsOf("VouchersJobsFail");
  await servers.redis.del(`${reportPrefix(ctx.deployment)}:look`);
  // A look of another process, whose memory is empty.
  const look = async () =>
    (await lookForFaults(writable.ctx, -1)).attention.filter(({ runbook }) => runbook === "VouchersJobsFail");
  expect(await look()).toEqual([first]);
  await servers.redis.del(key);
  expect(await look()).toEqual([]);
  const rows = async () =>
    (
      await db.query("SELECT began_at, ended_at FROM faults WHERE name = 'VouchersJobsFail' AND began_at = $1", [
        first?.since,
      ])
    ).rows;
  expect(await rows()).toMatchObject([{ ended_at: expect.any(Date) }]);
  await servers.redis.zadd(key, 1, "job");
  const [second] = await look();
  expect(String(second?.since) > String(first?.since)).toBe(true);
  await servers.redis.del(key);
});

it("what a probe finds is shown when it is found again three seconds later, and not after one look", async () => {
  const unusable = new UnusableDatabase("unavailable", "No answer from Postgres.");
  const probed = { unusable, redisProblem: null, shards: [] };
  // The other API process could serve requests.
  await writable.ctx.report.close();
  const look = (at = {}) => lookForFaults({ ...api.ctx, probeServers: async () => probed, ...at }, -1);
  const tells = ({ attention }: Awaited<ReturnType<typeof look>>) =>
    attention.some(({ runbook }) => runbook === "VouchersServerAway");
  const first = await look();
  expect(tells(first)).toBe(false);
  expect(first.suspected.slice(0, 2).map(({ runbook }) => runbook)).toEqual([
    "VouchersNothingRedeemed",
    "VouchersServerAway",
  ]);
  const told = await until(async () => {
    const next = await look();
    return tells(next) ? next : null;
  });
  expect(told.attention[0]).toMatchObject({
    what: "Nothing is redeemed: no answer from Postgres",
    since: first.suspected[0]?.since,
  });
  expect(Date.parse(told.at) - Date.parse(first.at)).toBeGreaterThanOrEqual(3_000);
  // The fault ends at the first look that does not find it.
  expect(tells(await lookForFaults(api.ctx, -1))).toBe(false);
});

/** An API process that alone cannot use Redis, and has no memory. */
function openAlone() {
  const away = openFailFast("redis://127.0.0.1:1", "test", api.ctx.log);
  onTestFinished(async () => away.disconnect());
  const probed = { unusable: null, redisProblem: "No answer from Redis.", shards: [] };
  // Its memory is that of its deployment.
  const { id, clock } = api.ctx.deployment;
  const self = { ...api.ctx.report.self, pid: 1 };
  const report = { self, redeems: new RedeemOutcomes(), reportingMs: 0, readCounts: () => ({}), tell() {} };
  for (const voucher of ["a", "b", "c"]) report.redeems.unanswered(voucher);
  return {
    ...api.ctx,
    redis: away,
    report,
    probeServers: async () => probed,
    deployment: { id, clock } as typeof api.ctx.deployment,
  };
}

const openFaults = async () => (await db.query("SELECT * FROM faults WHERE ended_at IS NULL ORDER BY id")).rows;

it("an API process that alone loses Redis judges itself, shows what others have found, and ends nothing", async () => {
  const key = `${findShard(ctx.deployment.id, 0, ctx.config.queueShards[0]).prefix}:redeem:failed`;
  await servers.redis.zadd(key, 1, "job");
  const [found] = await faultsOf("VouchersJobsFail");
  const alone = openAlone();
  const own = { runbook: "VouchersServerAway", severity: "amber", subject: nameProcess(alone.report.self) };
  const shown = await until(async () => {
    const look = await lookForFaults(alone, -1);
    expect(look).toMatchObject({ isAlone: true });
    expect(look.attention.filter(({ severity }) => severity === "red")).toEqual([]);
    return look.attention.some(({ subject }) => subject === own.subject) ? look.attention : null;
  });
  const what = "A process cannot serve requests: No answer from Redis";
  expect(shown).toEqual(expect.arrayContaining([expect.objectContaining({ ...own, what }), found]));
  expect((await openFaults()).map(({ name }) => name)).toContain("VouchersJobsFail");
  expect((await openFaults()).map(({ subject }) => subject)).not.toContain(own.subject);
  await servers.redis.del(key);
  await faultsOf("VouchersJobsFail");
});

it("an API process without Redis judges for all when no other one has looked for ten seconds", async () => {
  const client = await db.connect();
  const kept = async (age: string) => {
    await client.query("UPDATE last_look SET looked_at = clock_timestamp() - $1::interval", [age]);
    return (await readKeptFaults(client as never)).isLookedFor;
  };
  await client.query("BEGIN");
  const looked = [await kept("8 seconds"), await kept("10 seconds"), await kept("-1 hour")];
  await client.query("ROLLBACK");
  client.release();
  expect(looked).toEqual([true, false, false]);
});

it("a fault that only Postgres still has keeps its first time, and one of a later release stays open", async () => {
  const row = (name: string) =>
    db.query(
      `INSERT INTO faults (began_at, name, subject, page, severity, what)
       VALUES (clock_timestamp() - interval '1 ms', $1, 'webhook', '', 'amber', 'It is so') RETURNING began_at`,
      [name],
    );
  const { rows } = await row("VouchersShardUnserved");
  await row("VouchersOfTomorrow");
  await servers.redis.del(`${reportPrefix(ctx.deployment)}:look`);
  // As a process that has just started, it does not know which others report.
  const report = { ...openAlone().report, reportingMs: 0 };
  const { deployment } = openAlone();
  const { attention } = await lookForFaults({ ...api.ctx, report, deployment }, -1);
  expect(attention.filter(({ subject }) => subject === "webhook")).toEqual([
    {
      severity: "amber",
      what: "It is so",
      subject: "webhook",
      runbook: "VouchersShardUnserved",
      since: rows[0].began_at.toISOString(),
      page: null,
    },
  ]);
  const open = async () => (await openFaults()).filter(({ subject }) => subject === "webhook").map(({ name }) => name);
  await lookForFaults(api.ctx, -1);
  await until(async () => (await open()).toString() === "VouchersOfTomorrow");
  await db.query("DELETE FROM faults WHERE name = 'VouchersOfTomorrow'");
});

it("the list of faults has a log that is refused", async () => {
  await insertTlogTree(db as never, { origin: "vouchers.test/log", root: Buffer.alloc(32) });
  const reply = { claims: 1, setAside: 1, refused: "no", obstacle: "contradiction" };
  const queueViews = { findLastReply: async () => ({ reply, at: new Date() }) } as never;
  const { attention } = await lookForFaults({ ...api.ctx, queueViews }, -1);
  const ofLog = attention.filter(({ runbook }) => runbook.startsWith("VouchersLog"));
  // The most harmful first.
  expect(ofLog.map(({ runbook, severity }) => [runbook, severity])).toEqual([
    ["VouchersLogRefused", "red"],
    ["VouchersLogWitness", "amber"],
    ["VouchersLogSetAside", "amber"],
  ]);
});

/** Makes the last look older by Redis's clock. */
async function ageLook(ms: number) {
  const key = `${reportPrefix(ctx.deployment)}:look`;
  await servers.redis.pexpire(key, (await servers.redis.pttl(key)) - ms);
}

it("faults are looked for again by Redis's clock, even after the database's clock was set back", async () => {
  const { at } = await lookForFaults(api.ctx, -1);
  const key = `${reportPrefix(ctx.deployment)}:look`;
  // The begin of a fault that was found while the database's clock was an hour ahead.
  const later = new Date(Date.parse(at) + 3_600_000).toISOString();
  const stored = { ...JSON.parse((await servers.redis.get(key)) ?? ""), at: later };
  await servers.redis.set(key, JSON.stringify(stored), "KEEPTTL");
  expect((await lookForFaults(api.ctx, 60_000)).at).toBe(later);
  await ageLook(60_001);
  expect((await lookForFaults(api.ctx, 60_000)).at < later).toBe(true);
  // As after Redis's clock was set back.
  await ageLook(-3_600_000);
  await lookForFaults(api.ctx, 60_000);
  expect(await servers.redis.pttl(key)).toBeLessThanOrEqual(7 * 86_400_000);
});

it("the list of faults has a sweeper that was idle for five minutes, but not one that a clock makes late", async () => {
  const sweeper = async () => {
    await ageLook(40_000);
    return (await faultsOf("VouchersSweeperStopped")).length;
  };
  await count();
  // As after a jump ahead.
  await db.query("UPDATE activity_counted SET counted_until = counted_until - interval '1 hour'");
  expect(await sweeper()).toBe(0);
  // A jump of Redis's clock.
  await ageLook(86_400_000);
  for (let passedMs = 30_000; passedMs <= 300_000; passedMs += 30_000) expect(await sweeper()).toBe(0);
  // From here on, a busy machine may be late for some looks, which then know less.
  await until(async () => (await sweeper()) === 1);
  // While Redis has no last look, the fault stays, and its beginning with it.
  const open = "SELECT began_at FROM faults WHERE name = 'VouchersSweeperStopped' AND ended_at IS NULL";
  const { rows } = await db.query(open);
  expect(rows).toHaveLength(1);
  for (let look = 0; look < 2; look++) {
    await servers.redis.del(`${reportPrefix(ctx.deployment)}:look`);
    await until(async () => (await faultsOf("VouchersSweeperStopped")).length === 1);
  }
  expect((await db.query(open)).rows).toEqual(rows);
  // Nor does it end because Redis and this process have forgotten everything, although no time is known then.
  const later = await startApi(servers);
  await servers.redis.del(`${reportPrefix(ctx.deployment)}:look`);
  for (let look = 0; look < 2; look++) {
    await until(async () => {
      const { attention } = await lookForFaults(later.ctx, -1);
      return attention.filter(({ runbook }) => runbook === "VouchersSweeperStopped").length === 1;
    });
    await ageLook(40_000);
  }
  expect((await db.query(open)).rows).toEqual(rows);
  await later.close();
  await countActivity(ctx, 0);
  await until(async () => (await sweeper()) === 0);
});

it("the list of faults has queues whose worker stopped", async () => {
  const unserved = async () => (await faultsOf("VouchersShardUnserved")).map(({ subject }) => subject.split(" ")[0]);
  await until(async () => (await unserved()).toString() === "sweep");
  await worker.close();
  await until(async () => (await unserved()).toString() === "redeem,seal,sweep");
  const { attention } = await lookForFaults(api.ctx, -1);
  expect(attention[0]).toMatchObject({
    severity: "red",
    what: "Nothing is redeemed: no worker has sent a heartbeat for the queue redeem",
    runbook: "VouchersNothingRedeemed",
  });
  const ended = (await read()).processes.find(({ role, queues }) => role === "worker" && queues.includes("redeem"));
  expect(ended).toMatchObject({ state: "ended", endedAt: expect.any(String) });
});

it("what processes count for the faults reaches the overview", async () => {
  workerOptions(ctx, 1).onForeignJob();
  await ctx.report.send();
  const answers = { internal_error: 500, too_many_misses: 429, overloaded: 503 };
  for (const [errorCode, status] of Object.entries(answers))
    for (let calls = 0; calls < 10; calls++) api.ctx.report.observe({ errorCode }, status, 1);
  const look = await lookForFaults(api.ctx, -1);
  const [told, suspected] = [look.attention, look.suspected].map((faults) => faults.map(({ runbook }) => runbook));
  const atOnce = ["VouchersForeignMessages", "VouchersInternalErrors", "VouchersCodesGuessed"];
  expect(told).toEqual(expect.arrayContaining(atOnce));
  expect(suspected).toEqual(expect.arrayContaining(["VouchersOverloaded", "VouchersErrors"]));
});

/** Sends a call that is refused. Returns how many refusals the overview then has more, and the counted responses. */
async function countResponses(method: string, path: string) {
  const countRefusals = async () => {
    await api.ctx.report.send();
    return sumOf((await read()).hours).refusals;
  };
  const before = await countRefusals();
  const count = vi.spyOn(api.ctx.report.faults, "count");
  const observe = vi.spyOn(api.ctx.report, "observe");
  onTestFinished(() => void vi.restoreAllMocks());
  const { status } = await fetch(api.url + path, { method, headers: { accept: "application/json" } });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(499);
  await until(async () => observe.mock.calls.length === 1);
  const responses = count.mock.calls.filter(([kind]) => kind === "responses").length;
  return { refusals: (await countRefusals()) - before, responses };
}

type View = ReturnType<typeof viewOverview>;

/** What the sweeper does to count: it does not run here. */
async function countPast() {
  await moveCompleteUntil(ctx);
  await countActivity(ctx, Number.POSITIVE_INFINITY);
}

/** Counts what was written before this call. */
async function count() {
  const { rows } = await db.query("SELECT clock_timestamp() AS now");
  await until(async () => {
    await countPast();
    return (await countedUntil()) > rows[0].now;
  });
}

const countedUntil = async (): Promise<Date> =>
  (await db.query("SELECT counted_until AS at FROM activity_counted")).rows[0].at;

/** Reads past the pages' memory of some seconds. */
const read = async (organizationId: string | null = null): Promise<View> =>
  viewOverview(await readOverview(api.ctx, organizationId));

/** Looks past what another process has found. */
const faultsOf = async (runbook: string) =>
  (await lookForFaults(api.ctx, -1)).attention.filter((fault) => fault.runbook === runbook);

const sumOf = (counts: View["minutes"]) => {
  const add = (field: "redemptions" | "claims" | "refusals") =>
    counts.reduce((sum, count) => sum + (count[field] ?? 0), 0);
  return { redemptions: add("redemptions"), claims: add("claims"), refusals: add("refusals") };
};
