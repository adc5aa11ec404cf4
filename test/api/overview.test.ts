import { beforeAll, describe, expect, it } from "vitest";
import { insertLogTree } from "../../src/db/log-tree.ts";
import { renderOverviewPage } from "../../src/http/ops/overview-page.ts";
import { findShard } from "../../src/queues/shards.ts";
import { countMissingStandbys, lookForFaults } from "../../src/services/ops/find-attention.ts";
import { reportPrefix } from "../../src/services/ops/process-report.ts";
import { readOverview, viewOverview } from "../../src/services/ops/read-overview.ts";
import { countActivity } from "../../src/services/sweep/sweep.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { newUser, offerBatch } from "../support/marketplace.ts";
import { untilPast } from "../support/outside-transaction.ts";
import { issueVoucher, issueVouchers, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { api, db, servers, partner, stranger, till, foreign, issue, as, contexts, worker } = useService({
  env: { OPS_TOKEN },
  users: true,
  contexts: 1,
});
const [ctx] = contexts;

type View = ReturnType<typeof viewOverview>;

const open = (path: string) => browse(`${api.url}/ops${path}`, { headers: basic(OPS_TOKEN) });

/** Counts what was written before this call. The sweeper does not run. */
async function count() {
  const { rows } = await db.query("SELECT clock_timestamp() AS now");
  await until(async () => {
    await countActivity(ctx, Number.POSITIVE_INFINITY);
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
  const add = (field: "redemptions" | "claims" | "refusals") => counts.reduce((sum, count) => sum + count[field], 0);
  return { redemptions: add("redemptions"), claims: add("claims"), refusals: add("refusals") };
};

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
  it("the overview has the redemptions of an organization that GET /partner/redemptions lists for the same time", async () => {
    const view = JSON.parse((await open(`/overview.json?organization=${partner.organizationId}`)).text);
    const { body } = await till.redemptions({ from: view.minutes[0].at, to: view.completeUntil, limit: "1000" });
    expect(body.redemptions.length).toBe(3);
    expect(sumOf(view.minutes)).toMatchObject({ redemptions: 3, claims: 1 });
    expect(sumOf(view.hours).redemptions).toBe(3);
    expect([view.minutes.length, view.hours.length, view.organization]).toEqual([60, 48, partner.organizationId]);
    const all = await read();
    const { rows } = await db.query(
      "SELECT (SELECT count(*)::int FROM redemptions) AS redemptions, (SELECT count(*)::int FROM claims) AS claims",
    );
    expect([sumOf(all.minutes), sumOf(all.hours)]).toMatchObject([rows[0], rows[0]]);
    expect(all.organization).toBeNull();
  });

  it("the overview has the refusals and the latency that processes report", async () => {
    await api.ctx.report.send();
    expect(sumOf((await read(partner.organizationId)).minutes).refusals).toBe(1);
    expect(sumOf((await read(stranger.organizationId)).minutes).refusals).toBe(0);
    const { latencyMs } = await read();
    expect(latencyMs.p50).toBeGreaterThan(0);
    expect(latencyMs.p99).toBeGreaterThanOrEqual(latencyMs.p50 ?? 0);
  });

  it("the overview shows each process with its queues, and one that vanished as gone for a minute", async () => {
    const id = "host 1 worker 2026";
    const prefix = reportPrefix(ctx.deployment);
    const since = "2026-01-01T00:00:00Z";
    const report = { role: "worker", host: "host", pid: 1, version: "0", queues: ["seal"], since };
    await servers.redis.hset(`${prefix}:processes`, id, JSON.stringify({ ...report, cpu: 0, memoryBytes: 1 }));
    await servers.redis.set(`${prefix}:process:${id}`, "up", "PX", 59_000);
    const find = async () => (await read()).processes;
    expect(await find()).toContainEqual({ ...report, state: "gone" });
    // Processes report every few seconds.
    await until(async () => {
      const roles = (await find()).map(({ role, queues, state }) => `${role} ${queues} ${state}`);
      return ["api  up", "worker redeem,seal up"].every((up) => roles.includes(up));
    });
    await servers.redis.del(`${prefix}:process:${id}`);
    expect((await find()).some(({ host }) => host === "host")).toBe(false);
    expect(await servers.redis.hexists(`${prefix}:processes`, id)).toBe(0);
  });

  it("the overview counts one claim in the singular, and tells organizations of one name apart by their ids", async () => {
    const namesake = await makePartner(db);
    await db.query("UPDATE organizations SET name = 'Corner Shop' WHERE id = ANY ($1)", [
      [partner.organizationId, namesake.organizationId],
    ]);
    const { markup: text } = renderOverviewPage(api.ctx.config, await readOverview(api.ctx, partner.organizationId));
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
    expect(styles.length).toBe(2);
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
    await Promise.all(Array.from({ length: 4 }, () => countActivity(ctx, Number.POSITIVE_INFINITY)));
    expect(sumOf((await read(partner.organizationId)).hours).redemptions).toBe(4);
  });

  it.each([
    [
      "redemption",
      "INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref) SELECT date_trunc('milliseconds', clock_timestamp()), id, organization_id, 'key', id, id, id FROM vouchers WHERE id = $1",
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
      await countActivity(ctx, Number.POSITIVE_INFINITY);
      // What is counted ends before this time, which may be of the same millisecond as the insert.
      expect((await countedUntil()) <= rows[0].now).toBe(true);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  it("the counts are made again after an operator has said that the clock is right", async () => {
    await count();
    const right = await counts();
    // As if they had been made by a clock that was a year ahead.
    await db.query("UPDATE activity_counts SET redemptions = 9 WHERE organization_id = $1", [partner.organizationId]);
    await db.query("UPDATE activity_counted SET counted_until = now() + interval '1 year'");
    await db.query("UPDATE redemptions_closed SET clock_trusted_at = clock_timestamp()");
    await count();
    expect(await counts()).toEqual(right);
  });
});

it("what needs attention has an endpoint that failed three times in a row, and one that was disabled for failing", async () => {
  const id = "whk_01jzbq0000e00a4g0g00000001";
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, failing_since, failures)
       VALUES ($1, $2, 1, 'https://shop.example.com/hooks', '2026-01-02T03:04:05Z', 2)`,
    [id, partner.organizationId],
  );
  expect(await faultsOf("VouchersWebhooksFail")).toEqual([]);
  await db.query("UPDATE webhook_endpoints SET failures = 3 WHERE id = $1", [id]);
  expect(await faultsOf("VouchersWebhooksFail")).toMatchObject([
    {
      subject: expect.stringContaining(": shop.example.com"),
      since: "2026-01-02T03:04:05.000Z",
      page: ["webhooks", id],
    },
  ]);
  await db.query(
    "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'gone', disabled_at = now() WHERE id = $1",
    [id],
  );
  expect((await faultsOf("VouchersWebhookEndpointDisabled")).length).toBe(1);
});

it("what needs attention has batches that are sold out, that run out within a day, and that end within a week", async () => {
  const [sold, calm, far] = [await makePartner(db), await makePartner(db), await makePartner(db)];
  const validUntil = new Date(Date.now() + 30 * 86_400_000);
  await offerBatch(db, sold, 1, { validUntil });
  expect((await (await as(newUser())).claimProduct(sold.productId)).status).toBe(200);
  await offerBatch(db, calm, 2);
  await offerBatch(db, far, 2, { validUntil });
  await count();
  expect((await faultsOf("BatchEnds")).map(({ what }) => what).toSorted()).toEqual([
    "A batch ends within a week, with stock left",
    "A batch is sold out",
    "A batch runs out within a day",
  ]);
  const { stock } = await read();
  expect(stock.map(({ left, runsOutAt }) => [left, runsOutAt !== null])).toEqual([
    [2, false],
    [2, false],
    [0, true],
    [4, true],
  ]);
});

it("what needs attention has a chain that is broken", async () => {
  const { id } = await issue();
  await db.query("INSERT INTO broken_chains (found_at, voucher_id) VALUES (now(), $1)", [id]);
  expect((await faultsOf("VouchersChainBroken")).map(({ subject }) => subject)).toEqual([id]);
  await db.query("DELETE FROM broken_chains");
});

it("what needs attention has failed jobs since they were first seen, and no longer when they are gone", async () => {
  const key = `${findShard(ctx.deployment.id, 0, ctx.config.queueShards[0]).prefix}:redeem:failed`;
  await servers.redis.zadd(key, 1, "job");
  const [first] = await faultsOf("VouchersJobsFail");
  await servers.redis.zadd(key, 2, "job 2");
  expect(await faultsOf("VouchersJobsFail")).toEqual([{ ...first, what: "2 jobs have failed" }]);
  await servers.redis.del(key);
  expect(await faultsOf("VouchersJobsFail")).toEqual([]);
});

it("what needs attention has a log that is refused", async () => {
  await insertLogTree(db as never, "vouchers.test/log", Buffer.alloc(32));
  const reply = { claims: 1, refused: "no", obstacle: "contradiction" };
  const queueViews = { findLastReply: async () => ({ reply, at: new Date() }) } as never;
  const { attention } = await lookForFaults({ ...api.ctx, queueViews }, -1);
  expect(attention.map(({ runbook }) => runbook)).toEqual(
    expect.arrayContaining(["VouchersLogRefused", "VouchersLogWitness"]),
  );
});

it("what needs attention has queues whose worker stopped, and a sweeper that does not run", async () => {
  const unserved = async () => (await faultsOf("VouchersShardUnserved")).map(({ subject }) => subject.split(" ")[0]);
  expect(new Set(await unserved())).toEqual(new Set(["sweep"]));
  await worker.close();
  await until(async () => new Set(await unserved()).size === 3);
  await db.query("UPDATE activity_counted SET counted_until = '2026-01-02T03:04:05Z'");
  expect(await faultsOf("VouchersSweeperStopped")).toMatchObject([{ since: "2026-01-02T03:04:05.000Z" }]);
});

it.each([
  ["", 0, 0],
  ["standby", 0, 1],
  ["a, b", 1, 0],
  ["ANY 2 (a, b, c)", 1, 1],
  ["first 1 (a)", 0, 1],
  ["3 (a, b, c)", 3, 0],
])("what needs attention has the standbys that are away: of %j %i are connected and %i missing", (standbyNames, streaming, missing) => {
  expect(countMissingStandbys({ standbyNames, streaming })).toBe(missing);
});
