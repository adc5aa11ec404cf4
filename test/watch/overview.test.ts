import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { renderOverviewPage } from "../../src/console/overview-page.ts";
import { moveCompleteUntil } from "../../src/core/redeem/db/redemptions.ts";
import { each } from "../../src/open/api-parts.ts";
import type { Site } from "../../src/pages/layout.ts";
import { findShard, listShards } from "../../src/platform/queues/shards.ts";
import { insertTlogTree } from "../../src/transparency/db/log-tree.ts";
import { countActivity, readStock, type Stock } from "../../src/watch/db/activity.ts";
import { STOCK } from "../../src/watch/facts.ts";
import { type Overview, readOverview } from "../../src/watch/read-overview.ts";
import { FaultWatch } from "../../src/watch/watch.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { newUser, offerBatch } from "../support/marketplace.ts";
import { closeRedemptions } from "../support/outside-transaction.ts";
import { startWorkers } from "../support/service.ts";
import { issueVoucher, issueVouchers, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

/** The site and the operator for tests that call `renderOverviewPage`. */
const SEEN_BY = {
  site: ({ ctx }: { ctx: { config: Site } }) => ({ ...ctx.config, offers: () => true }),
  operator: { name: "Zoë", role: "admin" as const },
};

const { api, db, servers, partner, stranger, till, foreign, issue, as, contexts } = useService({
  env: { OPS_TOKEN },
  users: true,
  contexts: 1,
});
const [ctx] = contexts;

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
  it("the overview shows the same redemptions of an organization as GET /partner/redemptions", async () => {
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

  it("the overview adds one audit entry per hour, operator and organization, and none for its total view", async () => {
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

  it("an organization's overview is not shown if the visit's audit entry cannot be written", async () => {
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

  it("the overview shows refusals and the latency of redeems", async () => {
    await api.ctx.counts.send();
    // On a busy machine, Redis may answer too late for some views.
    await until(async () => sumOf((await read(partner.organizationId)).minutes).refusals === 1);
    expect(sumOf((await read(stranger.organizationId)).minutes).refusals).toBe(0);
    const latencyMs = await until(async () => {
      const found = (await read()).latencyMs;
      return (found.p50 ?? 0) > 0 ? found : null;
    });
    expect(latencyMs.p99).toBeGreaterThanOrEqual(latencyMs.p50 ?? 0);
  });

  it("the overview names the busiest keys by their labels and organizations", async () => {
    const { rows } = await db.query(
      `UPDATE api_keys AS k SET label = 'Till 3' FROM organizations AS o
        WHERE k.organization_id = $1 AND o.id = k.organization_id RETURNING o.name AS organization`,
      [partner.organizationId],
    );
    await till.lookUp("7Q4K-9MZX-2HTB-W8RC");
    await api.ctx.counts.send();
    const [key] = await until(async () => {
      const found = (await read(partner.organizationId)).keys ?? [];
      return found.length > 0 ? found : null;
    });
    expect(key).toMatchObject({ label: "Till 3", organization: rows[0].organization });
    // All pages show the same figures for a short time, so the key may be missing at first.
    const named = `<bdi>Till 3</bdi><br><code>${key?.keyId}</code>`;
    await until(async () => (await open(`?organization=${partner.organizationId}`)).text.includes(named));
  });

  it.each([
    ["POST", "/partner/vouchers/redeem"],
    ["POST", "/partner/vouchers/reserve"],
    ["POST", "/products/prd_none/claim"],
    ["POST", "/products/prd_none/buy"],
    ["POST", "/marketplace/listings/lst_none/buy"],
    ["POST", "/r/NONE/claim"],
  ])("the overview counts a refusal of %s %s", async (method, path) => {
    expect(await countRefusalsOf(method, path)).toBe(1);
  });

  it.each([
    ["GET", "/r/NONE"],
    ["GET", "/partner/vouchers/NONE"],
    ["POST", "/partner/vouchers/release"],
    ["GET", "/none"],
    ["POST", "/healthz"],
    ["POST", "/readyz"],
  ])("the overview counts no refusal of %s %s", async (method, path) => {
    expect(await countRefusalsOf(method, path)).toBe(0);
  });

  it("the overview shows each queue's pauses, workers and oldest job's age", async () => {
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

  it("the overview counts a worker for a queue only if the worker has the queue's secret", async () => {
    const other = await startWorkers(servers, { WORKER_QUEUES: "webhook,seal" });
    const find = async (queue: string) => (await read()).queues.find(({ name }) => name === queue)?.workers;
    await until(async () => (await find("seal")) === 2);
    expect(await find("webhook")).toBe(0);
    await other.close();
  });

  it("the overview uses the singular for one claim, and tells equal names apart by their ids", async () => {
    const namesake = await makePartner(db);
    await db.query("UPDATE organizations SET name = 'Corner Shop' WHERE id = ANY ($1)", [
      [partner.organizationId, namesake.organizationId],
    ]);
    const { markup: text } = renderOverviewPage(
      SEEN_BY.site(api),
      SEEN_BY.operator,
      await readOverview(api.ctx, partner.organizationId),
    );
    const overview = await readOverview(api.ctx, null);
    const fault = {
      severity: "red" as const,
      what: "Nothing is redeemed",
      since: new Date(),
      subject: "All",
      page: null,
    };
    const cause = { ...fault, runbook: "VouchersNothingRedeemed" };
    const follower = { ...fault, what: "Jobs wait", subject: "redeem", runbook: "VouchersQueueBacklog" };
    const ended = [{ what: "A server is away", subject: "api 1", endedAt: new Date() }];
    const shown = { ...overview, attention: [cause, follower], ended };
    const { markup: cards } = renderOverviewPage(SEEN_BY.site(api), SEEN_BY.operator, shown);
    expect(cards.match(/<li class="verdict bad">/g)).toHaveLength(1);
    expect(cards).toMatch(/From it follows:<br>Jobs wait \(redeem\), since/);
    expect(cards).toMatch(
      /<li class="verdict good"><strong>A server is away<\/strong>\s*<p>api 1: ended at .*, watching\./,
    );
    expect(text).toContain("3 redemptions, 1 claim, ");
    expect(text).toContain(`Corner Shop, ${partner.organizationId}<`);
    expect(text).toContain(`Corner Shop, ${namesake.organizationId}<`);
    expect(text).not.toContain(`, ${stranger.organizationId}<`);
  });

  it("the overview refuses an unknown organization, and requires the password", async () => {
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

describe("the overview's counts", () => {
  const counts = async () =>
    (
      await db.query("SELECT * FROM activity_counts WHERE organization_id = $1 ORDER BY span, at", [
        partner.organizationId,
      ])
    ).rows;

  it("the overview's counts are correct when two processes count at the same time", async () => {
    const { code } = await issue();
    await till.redeem({ code, externalRef: "counted at once" });
    await closeRedemptions(db);
    await Promise.all(Array.from({ length: 4 }, () => countPast()));
    expect(sumOf((await read(partner.organizationId)).hours).redemptions).toBe(4);
  });

  it("the overview shows null, not 0, for minutes that the sweeper has not counted", async () => {
    await count();
    const move = (by: string) =>
      db.query("UPDATE activity_counted SET counted_until = counted_until + $1::interval", [by]);
    await move("-10 minutes");
    const claims = (await read(stranger.organizationId)).minutes.map((minute) => minute.claims);
    await move("10 minutes");
    expect(claims.slice(0, 48)).toEqual(Array(48).fill(0));
    expect(claims.slice(-8, -2)).toEqual(Array(6).fill(null));
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
  ])("the overview's counts end before an uncommitted %s", async (_, insert) => {
    const { id } = await issue();
    const client = await db.connect();
    try {
      await client.query("BEGIN");
      await client.query(insert, [id]);
      const insertedBy = await closeRedemptions(db);
      await countPast();
      // `countedUntil` is before this moment, which may be in the same millisecond as the insert.
      expect((await countedUntil()) <= insertedBy).toBe(true);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  it("the overview's counts are computed again after an operator has trusted the clock", async () => {
    await count();
    const right = await counts();
    // Changes the counts like a clock that was a year ahead.
    await db.query("UPDATE activity_counts SET redemptions = 9 WHERE organization_id = $1", [partner.organizationId]);
    await db.query("UPDATE activity_counted SET counted_until = now() + interval '1 year'");
    await db.query("UPDATE redemptions_closed SET clock_trusted_at = clock_timestamp()");
    await count();
    expect(await counts()).toEqual(right);
  });
});

it("the list of faults has a webhook endpoint that failed three times in a row, and a disabled one", async () => {
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
      since: failingSince,
      page: ["webhooks", id],
    },
  ]);
  await db.query(
    "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'gone', disabled_at = '2026-01-02' WHERE id = $1",
    [id],
  );
  expect(await faultsOf("VouchersWebhooksFail")).toMatchObject([
    { what: "A webhook endpoint was disabled", since: new Date("2026-01-02") },
  ]);
});

it("the overview predicts when a batch sells out from ten sales or six hours, but not from one sale", async () => {
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

it("the list of faults has batches that are sold out or expire within a week", async () => {
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

it("the list of faults has each organization's expiring batches, even if another organization has many", async () => {
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
  // Adds batches that end sooner than the others.
  await add(new Date(Date.now() + 3_600_000));
  expect(await found()).toEqual(expect.arrayContaining([ends, soldOut]));
  expect((await read()).stock).toHaveLength(STOCK.batchesMax);
  // The batches that end soon do not hide a batch that sells.
  const { batchId: sells } = await offerBatch(db, await makePartner(db), 5, { validUntil: far });
  await db.query("INSERT INTO acquired_counts (at, acquired, batch_id) VALUES (now(), 1, $1)", [sells]);
  expect((await read()).stock.map(({ batchId }) => batchId)).toContain(sells);
  // Batches that need attention come first, then batches that sell, even if many others expire earlier.
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

it("the list of faults has each broken chain", async () => {
  const { id } = await issue();
  await db.query("INSERT INTO broken_chains (found_at, voucher_id) VALUES (now(), $1)", [id]);
  expect((await faultsOf("VouchersChainBroken")).map(({ subject }) => subject)).toEqual([id]);
  await db.query("DELETE FROM broken_chains");
});

it("the list of faults says since when there are failed jobs, as long as there are any", async () => {
  const key = `${findShard(ctx.deployment.id, 0, ctx.config.queueShards[0]).prefix}:redeem:failed`;
  await servers.redis.zadd(key, 1, "job");
  const [first] = await faultsOf("VouchersJobsFail");
  await servers.redis.zadd(key, 2, "job 2");
  expect(await faultsOf("VouchersJobsFail")).toEqual([{ ...first, what: "2 jobs have failed" }]);
  await servers.redis.del(key);
  expect(await faultsOf("VouchersJobsFail")).toEqual([]);
});

it("the list of faults has each fault of the transparency log, the most harmful first", async () => {
  await insertTlogTree(db as never, { origin: "vouchers.test/log", root: Buffer.alloc(32) });
  const reply = { claims: 1, setAside: 1, refused: "no", obstacle: "contradiction" };
  const queueViews = { findLastReply: async () => ({ reply, at: new Date() }) } as never;
  const { attention } = await lookAnew({ queueViews });
  const ofLog = attention.filter(({ runbook }) => runbook.startsWith("VouchersLog"));
  // The most harmful fault comes first.
  expect(ofLog.map(({ runbook, severity }) => [runbook, severity])).toEqual([
    ["VouchersLogRefused", "red"],
    ["VouchersLogWitness", "amber"],
  ]);
});

/** Sends a call that the API refuses. Returns the increase of the overview's refusals. */
async function countRefusalsOf(method: string, path: string) {
  const countRefusals = async () => {
    await api.ctx.counts.send();
    return sumOf((await read()).hours).refusals;
  };
  const before = await countRefusals();
  const observe = vi.spyOn(api.ctx.counts, "observe");
  onTestFinished(() => void vi.restoreAllMocks());
  const { status } = await fetch(api.url + path, { method, headers: { accept: "application/json" } });
  expect(status).toBeGreaterThanOrEqual(400);
  expect(status).toBeLessThan(499);
  await until(async () => observe.mock.calls.length === 1);
  return (await countRefusals()) - before;
}

/** Does the sweeper's work for the counts, because no sweeper runs here. */
async function countPast() {
  await moveCompleteUntil(ctx);
  await countActivity(ctx, Number.POSITIVE_INFINITY);
}

/** Counts the rows that were written before this call. */
async function count() {
  const moment = await closeRedemptions(db);
  await until(async () => {
    await countPast();
    return (await countedUntil()) > moment;
  });
}

const countedUntil = async (): Promise<Date> =>
  (await db.query("SELECT counted_until AS at FROM activity_counted")).rows[0].at;

/** Reads the overview, without the pages' cache. */
const read = async (organizationId: string | null = null): Promise<Overview> => readOverview(api.ctx, organizationId);

/** Runs a check by a process without earlier results. */
const lookAnew = (changes: object = {}) =>
  new FaultWatch({ ...api.ctx, faultsOfWings: each("faults"), ...changes }).lookAnew();

const faultsOf = async (runbook: string) => (await lookAnew()).attention.filter((fault) => fault.runbook === runbook);

const sumOf = (counts: Overview["minutes"]) => {
  const add = (field: "redemptions" | "claims" | "refusals") =>
    counts.reduce((sum, count) => sum + (count[field] ?? 0), 0);
  return { redemptions: add("redemptions"), claims: add("claims"), refusals: add("refusals") };
};
