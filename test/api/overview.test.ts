import { beforeAll, describe, expect, it } from "vitest";
import { type Attention, requiredStandbys } from "../../src/services/ops/find-attention.ts";
import { reportPrefix } from "../../src/services/ops/process-report.ts";
import type { viewOverview } from "../../src/services/ops/read-overview.ts";
import { countActivity } from "../../src/services/sweep/count-activity.ts";
import { newUser, offerBatch } from "../support/marketplace.ts";
import { untilPast } from "../support/outside-transaction.ts";
import { issueVoucher, issueVouchers, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";
const AUTHORIZATION = `Basic ${Buffer.from(`zoe:${TOKEN}`).toString("base64")}`;

const { api, db, servers, partner, stranger, till, foreign, issue, as, contexts } = useService({
  env: { OPS_TOKEN: TOKEN, SWEEP_INTERVAL_MS: "500" },
  workers: [{ WORKER_QUEUES: "redeem,seal,sweep" }],
  users: true,
  contexts: 1,
});
const [ctx] = contexts;

type View = { [Key in keyof ReturnType<typeof viewOverview>]: ReturnType<typeof viewOverview>[Key] } & {
  completeUntil: string;
};

async function open(path: string, accept = "application/json") {
  const response = await fetch(`${api.url}/ops${path}`, { headers: { accept, authorization: AUTHORIZATION } });
  return { status: response.status, text: await response.text() };
}

/** The overview, once it has what was written before this call. */
async function readOverview(organizationId = ""): Promise<View> {
  const { rows } = await db.query("SELECT clock_timestamp() AS now");
  let view: View | undefined;
  await until(async () => {
    view = JSON.parse((await open(`/overview.json?organization=${organizationId}`)).text);
    return new Date(view?.completeUntil ?? 0) > rows[0].now;
  });
  return view as View;
}

const sumOf = (counts: readonly { redemptions: number; claims: number; refusals: number }[]) =>
  counts.reduce(
    (sum, { redemptions, claims, refusals }) => ({
      redemptions: sum.redemptions + redemptions,
      claims: sum.claims + claims,
      refusals: sum.refusals + refusals,
    }),
    { redemptions: 0, claims: 0, refusals: 0 },
  );

/** The fault of an entry of the runbook, once it is shown. */
async function untilFault(runbook: string, subject?: string): Promise<Attention> {
  let found: Attention | undefined;
  await until(async () => {
    const { attention }: View = JSON.parse((await open("/overview.json")).text);
    found = (attention as Attention[]).find(
      (fault) => fault.runbook === runbook && (subject === undefined || fault.subject === subject),
    );
    return found !== undefined;
  });
  return found as Attention;
}

beforeAll(async () => {
  for (const { code } of await issueVouchers(db, partner, 3))
    await till.redeem({ code, externalRef: `order of ${code}` });
  await foreign.redeem({ code: (await issueVoucher(db, stranger)).code, externalRef: "another's order" });
  await offerBatch(db, partner, 5);
  expect((await (await as(newUser())).claimProduct(partner.productId)).status).toBe(200);
  await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "unknown code" });
});

describe("the overview", () => {
  it("has the redemptions of an organization that GET /partner/redemptions lists for the same time", async () => {
    const view = await readOverview(partner.organizationId);
    const from = new Date(view.minutes[0]?.at ?? 0).toISOString();
    const { body } = await till.redemptions({ from, to: view.completeUntil, limit: "1000" });
    expect(body.redemptions.length).toBe(3);
    expect(sumOf(view.minutes).redemptions).toBe(body.redemptions.length);
    expect(sumOf(view.hours).redemptions).toBe(body.redemptions.length);
    expect([view.minutes.length, view.hours.length]).toEqual([60, 48]);
    const all = await readOverview();
    expect(sumOf(all.minutes)).toMatchObject({ redemptions: 4, claims: 1 });
    const { rows } = await db.query(
      "SELECT (SELECT count(*)::int FROM redemptions) AS redemptions, (SELECT count(*)::int FROM claims) AS claims",
    );
    expect(sumOf(all.hours)).toMatchObject(rows[0]);
  });

  it("has the refusals and the latency that processes report", async () => {
    await until(async () => sumOf((await readOverview(partner.organizationId)).minutes).refusals === 1);
    const { latencyMs } = await readOverview();
    expect(latencyMs.p50).toBeGreaterThan(0);
    expect(latencyMs.p99).toBeGreaterThanOrEqual(latencyMs.p50 ?? 0);
  });

  it("shows each process with its queues, and one that vanished as gone for a minute", async () => {
    const id = "host 1 worker 2026";
    const prefix = reportPrefix(ctx.deployment);
    const report = {
      role: "worker",
      host: "host",
      pid: 1,
      version: "0",
      queues: ["seal"],
      since: "2026-01-01T00:00:00Z",
    };
    await servers.redis.hset(`${prefix}:processes`, id, JSON.stringify({ ...report, cpu: 0, memoryBytes: 1 }));
    await servers.redis.set(`${prefix}:process:${id}`, "up", "PX", 59_000);
    const find = async () => (JSON.parse((await open("/overview.json")).text) as View).processes;
    await until(async () => (await find()).some(({ host, state }) => host === "host" && state === "gone"));
    const roles = (await find()).filter(({ state }) => state === "up").map(({ role, queues }) => [role, queues.length]);
    expect(roles).toContainEqual(["api", 0]);
    expect(roles).toContainEqual(["worker", 3]);
    await servers.redis.del(`${prefix}:process:${id}`);
    await until(async () => !(await find()).some(({ host }) => host === "host"));
    expect(await servers.redis.hexists(`${prefix}:processes`, id)).toBe(0);
  });

  it("refuses an organization that does not exist, and asks for the password", async () => {
    expect((await open("/overview.json?organization=org_none")).status).toBe(404);
    expect((await fetch(`${api.url}/ops/overview.json`)).status).toBe(401);
  });

  it("shows hostile names as text, in less than 100 kB with its styles", async () => {
    const name = `<script>alert(1)</script>\u202e${"x".repeat(170)}`;
    await db.query("UPDATE organizations SET name = $1 WHERE id = $2", [name, stranger.organizationId]);
    let text = "";
    await until(async () => {
      ({ text } = await open("", "text/html"));
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
  const countedUntil = async (): Promise<Date> =>
    (await db.query("SELECT counted_until AS at FROM activity_counted")).rows[0].at;
  const counts = async () =>
    (
      await db.query("SELECT * FROM activity_counts WHERE organization_id = $1 ORDER BY span, at", [
        partner.organizationId,
      ])
    ).rows;

  it("count nothing twice when two processes count at once", async () => {
    const before = await readOverview(partner.organizationId);
    await Promise.all(Array.from({ length: 4 }, () => countActivity(ctx, Number.POSITIVE_INFINITY)));
    expect(sumOf((await readOverview(partner.organizationId)).hours).redemptions).toBe(sumOf(before.hours).redemptions);
  });

  it.each([
    [
      "redemption",
      "INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref) SELECT date_trunc('milliseconds', clock_timestamp()), id, organization_id, 'key', id, id, id FROM vouchers WHERE id = $1",
    ],
    ["claim", "INSERT INTO claims (user_id, product_id, voucher_id) SELECT $1, p.id, $1 FROM products AS p LIMIT 1"],
    ["purchase", "INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id) VALUES ($1, $1, $1, $1)"],
  ])("end before a %s whose transaction is open", async (_, insert) => {
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
      expect((await countedUntil()) < rows[0].now).toBe(true);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
  });

  it("are made again after an operator has said that the clock is right", async () => {
    await readOverview();
    const right = await counts();
    // As if a wrong clock had been counted up to a later time, without what was redeemed since.
    await db.query("UPDATE activity_counts SET redemptions = 9 WHERE organization_id = $1", [partner.organizationId]);
    await db.query("UPDATE activity_counted SET counted_until = now() + interval '1 year'");
    await db.query("UPDATE redemptions_closed SET clock_trusted_at = clock_timestamp()");
    await readOverview();
    expect(await counts()).toEqual(right);
  });
});

describe("a fault needs attention", () => {
  const attend = (runbook: string) => untilFault(runbook);

  it("when an endpoint has failed three times in a row", async () => {
    const id = "whk_01jzbq0000e00a4g0g00000001";
    await db.query(
      `INSERT INTO webhook_endpoints (id, organization_id, place, url, failing_since, failures)
       VALUES ($1, $2, 1, 'https://shop.example.com/hooks', '2026-01-02T03:04:05Z', 2)`,
      [id, partner.organizationId],
    );
    const { attention }: View = JSON.parse((await open("/overview.json")).text);
    expect(attention.filter(({ runbook }) => runbook === "VouchersWebhooksFail")).toEqual([]);
    await db.query("UPDATE webhook_endpoints SET failures = 3 WHERE id = $1", [id]);
    const fault = await attend("VouchersWebhooksFail");
    expect(fault.subject).toContain(": shop.example.com");
    expect(fault.since).toBe("2026-01-02T03:04:05.000Z");
    await db.query(
      "UPDATE webhook_endpoints SET enabled = false, disabled_reason = 'gone', disabled_at = now() WHERE id = $1",
      [id],
    );
    await attend("VouchersWebhookEndpointDisabled");
  });

  it("when a batch is sold out, or ends within a week", async () => {
    const sold = await makePartner(db);
    await offerBatch(db, sold, 1, { validUntil: new Date("2030-01-01") });
    await (await as(newUser())).claimProduct(sold.productId);
    await until(async () => {
      const { attention }: View = JSON.parse((await open("/overview.json")).text);
      return ["A batch is sold out", "A batch ends within a week, with stock left"].every((what) =>
        attention.some((fault) => fault.what === what),
      );
    });
  });

  it("when a chain is broken", async () => {
    const { id } = await issue();
    await db.query("INSERT INTO broken_chains (found_at, voucher_id) VALUES (now(), $1)", [id]);
    expect((await attend("VouchersChainBroken")).subject).toBe(id);
    await db.query("DELETE FROM broken_chains");
  });

  it("since it was first seen, and no longer when it has ended", async () => {
    const key = `{pva:${ctx.deployment.id}}:redeem:failed`;
    await servers.redis.zadd(key, 1, "job");
    const first = await attend("VouchersJobsFail");
    await servers.redis.zadd(key, 2, "job 2");
    await until(async () => (await attend("VouchersJobsFail")).what === "2 jobs have failed");
    expect((await attend("VouchersJobsFail")).since).toBe(first.since);
    await servers.redis.del(key);
    await until(async () => {
      const { attention }: View = JSON.parse((await open("/overview.json")).text);
      return !attention.some(({ runbook }) => runbook === "VouchersJobsFail");
    });
  });

  it.each([
    ["", 0],
    ["standby", 1],
    ["a, b", 1],
    ["ANY 2 (a, b, c)", 2],
    ["first 1 (a)", 1],
    ["3 (a, b, c)", 3],
  ])("when fewer standbys are connected than synchronous_standby_names %j requires", (standbyNames, count) => {
    expect(requiredStandbys({ standbyNames })).toBe(count);
  });
});
