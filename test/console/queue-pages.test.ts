import { Queue } from "bullmq";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { recordProcess } from "../../src/core/processes/db/processes.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { listShards } from "../../src/platform/queues/shards.ts";
import { readOverview } from "../../src/watch/read-overview.ts";
import { basic, browse, type Form, OPS_TOKEN } from "../support/browse.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { itOnOneRedis } from "../support/servers.ts";
import { startWorkers } from "../support/service.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { apis, servers, db, till, issue, worker, startApi } = useService({
  apis: [{ OPS_WRITABLE: "true" }, {}],
  // Redeems wait for a worker longer than the test pauses the queue, even on a slow machine.
  env: { OPS_TOKEN, REDEEM_WAIT_MS: "60000" },
  shards: 3,
});
const [api, readOnly] = apis;
/** The shards of the queue `redeem`. */
let shards: Queue[];

beforeAll(() => {
  shards = listShards(api.ctx.deployment.id, 3).map(
    ({ prefix }) => new Queue("redeem", { prefix, connection: servers.redis, skipMetasUpdate: true }),
  );
});
afterEach(() => Promise.all(shards.map((shard) => shard.resume())));
afterAll(() => Promise.all(shards.map((shard) => shard.close())));

const headers = basic(OPS_TOKEN);
const open = (path: string, at = api) => browse(`${at.url}/ops${path}`, { headers });
/** Opens pages concurrently, because each waits for an unreachable server. */
const openAll = (paths: string[], at: typeof api) =>
  Promise.all(paths.map(async (path) => ({ path, ...(await open(path, at)) })));
const paused = () => Promise.all(shards.map((shard) => shard.isPaused()));
const BY = { os_user: "shared: Zoë", host: "console", entity_type: "Queue", entity_id: "redeem" };

describe("a pause of a queue", () => {
  it("a queue's pause holds for all shards and later workers until a resumption, with two audit entries", async () => {
    const before = await newestEntry();
    expect((await send("/queues/redeem/pause", { reason: "Postgres is moved" })).location).toBe("/ops/queues/redeem");
    expect(await paused()).toEqual([true, true, true]);
    // On a busy machine, Redis may answer too late for some views.
    const names = await until(async () => {
      const { queues } = await readOverview(api.ctx, null);
      return queues.some(({ paused }) => paused) && queues.flatMap(({ name, paused }) => (paused ? [name] : []));
    });
    expect(names).toEqual(["redeem"]);
    const other = await startWorkers(servers, { WORKER_QUEUES: "redeem" });
    const vouchers = await Promise.all([issue(), issue(), issue(), issue()]);
    const redeems = vouchers.map(({ code }) => till.redeem({ code, externalRef: `paused ${code}` }));
    await until(async () => {
      const waiting = await Promise.all(shards.map((shard) => shard.getWaitingCount()));
      return waiting.reduce((sum, count) => sum + count, 0) === 4;
    });
    expect((await Promise.all(shards.map((shard) => shard.getActiveCount()))).join(" ")).toBe("0 0 0");
    const shown = new RegExp(
      [
        "Paused: no worker takes a job</strong>",
        "<p>By <bdi>shared: Zoë</bdi> on <time[^>]*>[^<]*</time>: <bdi>Postgres is moved</bdi>",
      ].join(""),
    );
    for (const path of ["/queues", "/queues/redeem"])
      await until(async () => shown.test((await open(path, readOnly)).text));
    expect((await send("/queues/redeem/resume", { reason: "done" })).status).toBe(303);
    expect(await paused()).toEqual([false, false, false]);
    expect((await Promise.all(redeems)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await other.close();
    expect(await entriesAfter(before)).toEqual([
      { command: "queue pause", arguments: { reason: "Postgres is moved" }, ...BY },
      { command: "queue resume", arguments: { reason: "done" }, ...BY },
    ]);
    expect((await open("/queues/redeem")).text).not.toContain("Paused");
  });

  it("a queue's pause needs a reason, and a second pause is refused without an audit entry", async () => {
    const before = await newestEntry();
    for (const reason of ["", " ", "x".repeat(501)]) {
      expect((await send("/queues/redeem/pause", { reason })).status).toBe(400);
    }
    const resumed = await send("/queues/redeem/resume", { reason: "why" });
    expect([resumed.status, resumed.text.includes("The queue is not paused.")]).toEqual([409, true]);
    expect((await send("/queues/redeem/pause", { reason: "first" })).status).toBe(303);
    const again = await send("/queues/redeem/pause", { reason: "second" });
    expect([again.status, again.text.includes("The queue is paused already.")]).toEqual([409, true]);
    expect((await entriesAfter(before)).map((entry) => entry.arguments.reason)).toEqual(["first"]);
  });

  it("the queue pages show a pause of some shards by another program, and can complete the pause", async () => {
    await shards[1]?.pause();
    const { text } = await open("/queues/redeem");
    expect(text).toContain("1 of 3 shards are paused");
    for (const act of ["pause", "resume"]) expect(text).toContain(`/ops/queues/redeem/${act}"`);
    expect((await send("/queues/redeem/pause", { reason: "all of them" })).status).toBe(303);
    expect(await paused()).toEqual([true, true, true]);
  });

  it("the queue pages refuse a pause from another site or without write access", async () => {
    const others: Record<string, string>[] = [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }];
    for (const more of [...others, { origin: "null" }]) {
      expect((await send("/queues/redeem/pause", { reason: "evil" }, more)).status).toBe(403);
    }
    expect((await send("/queues/redeem/pause", { reason: "why" }, {}, readOnly)).status).toBe(404);
    expect(await paused()).toEqual([false, false, false]);
    expect((await open("/queues", readOnly)).text).not.toMatch(/\/(pause|resume|retry|clean|promote)"/);
  });

  it("a queue is not paused when the audit entry cannot be written", async () => {
    await besideTransaction(db, async (outside) => {
      await outside.query("LOCK TABLE audit_entries IN ACCESS EXCLUSIVE MODE");
      const asked = send("/queues/redeem/pause", { reason: "why" });
      await untilWaiting(db, 1);
      expect(await paused()).toEqual([false, false, false]);
      await db.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect((await asked).status).toBe(503);
    });
    expect(await paused()).toEqual([false, false, false]);
  });
});

describe("failed jobs on the queue pages", () => {
  it("the queue pages list failed jobs with causes, and can retry and remove them with audit entries", async () => {
    const before = await newestEntry();
    const [one = "", other = ""] = await failJobs();
    const { text } = await open("/queues/redeem");
    expect(text).toContain("the job&#39;s data is not what this queue carries");
    expect(text).not.toContain("no worker can read this");
    expect(text).toContain(`/ops/queues/redeem/retry?job=${one}"`);
    expect((await open(`/queues/redeem/retry?job=${one}`)).text).toContain(`value="${one}"`);
    const tries = async (id: string) =>
      (await Promise.all(shards.map((shard) => shard.getJob(id)))).map((job) => job?.attemptsMade ?? 0);
    // Two shards may each have a failed job with this id. The retry affects one of them.
    expect((await send("/queues/redeem/retry", { job: one })).status).toBe(303);
    await until(async () => (await tries(one)).join(" ").includes("2") && (await counts("failed")) === "1 1 1");
    expect((await send("/queues/redeem/retry", { job: "" })).status).toBe(303);
    await until(async () => (await Promise.all(shards.map((shard) => shard.getFailed()))).flat().length === 3);
    expect((await send("/queues/redeem/clean", { job: other })).status).toBe(303);
    expect((await send("/queues/redeem/clean", { job: "" })).status).toBe(303);
    expect(await counts("failed")).toBe("0 0 0");
    expect(await entriesAfter(before)).toEqual([
      { command: "queue retry", arguments: { job: one }, ...BY },
      { command: "queue retry", arguments: {}, ...BY },
      { command: "queue clean", arguments: { job: other }, ...BY },
      { command: "queue clean", arguments: {}, ...BY },
    ]);
  });

  it("the queue pages retry or remove only failed jobs, and promote only delayed jobs", async () => {
    const before = await newestEntry();
    const voucherId = "vch_none";
    const [ofQueue = "", ofFailed = ""] = (await open("/queues/redeem")).text.split('id="failed"');
    expect([ofQueue, ofFailed].map((part) => part.includes('/queues/redeem/promote"'))).toEqual([true, false]);
    const delayed = await shards[0]?.add("redeem", { voucherId }, { delay: 3_600_000, jobId: "delayed-job" });
    for (const [act, job] of [
      ["clean", "delayed-job"],
      ["retry", "delayed-job"],
      ["promote", "none"],
      ["clean", "__proto__"],
    ] as const) {
      expect((await send(`/queues/redeem/${act}`, { job })).status, act).toBe(404);
    }
    expect((await send("/queues/redeem/clean", { job: "" })).status).toBe(303);
    expect(await counts("delayed")).toBe("1 0 0");
    expect((await send("/queues/redeem/promote", { job: "delayed-job" })).status).toBe(303);
    await until(async () => (await delayed?.getState()) === "failed");
    expect((await send("/queues/redeem/clean", { job: "" })).status).toBe(303);
    expect((await entriesAfter(before)).map(({ command }) => command)).toEqual([
      "queue clean",
      "queue promote",
      "queue clean",
    ]);
  });

  it("an operator's retry of a job whose redemption is confirmed redeems nothing", async () => {
    const voucher = await issue();
    await till.redeem({ code: voucher.code, externalRef: "retried" });
    const jobs = await Promise.all(shards.map((shard) => shard.getCompleted()));
    const job = jobs.flat().find(({ data }) => data.voucherId === voucher.id);
    await job?.retry("completed");
    await until(async () =>
      (await Promise.all(shards.map((shard) => shard.getJob(job?.id ?? "")))).some((each) => each?.attemptsMade === 2),
    );
    const { rows } = await db.query("SELECT count(*)::int AS n FROM redemptions WHERE voucher_id = $1", [voucher.id]);
    expect(rows).toEqual([{ n: 1 }]);
  });
});

it("the queue pages accept only a fixed list of actions, and other paths and methods get 404 or 405", async () => {
  const acts = ["pause", "resume", "retry", "promote", "clean"];
  for (const { name: queue } of CONFIG_PARTS.queues) {
    for (const act of acts) expect((await open(`/queues/${queue}/${act}`)).status, `${queue} ${act}`).toBe(200);
    for (const act of ["empty", "obliterate", "concurrency", "add", "rate-limit", "clean/completed", "retry/failed"]) {
      for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH"]) {
        const { status } = await browse(`${api.url}/ops/queues/${queue}/${act}`, { method, headers });
        expect([404, 405], `${method} ${act}`).toContain(status);
      }
    }
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      const { status } = await browse(`${api.url}/ops/queues/${queue}/pause`, { method, headers });
      expect([404, 405], method).toContain(status);
    }
  }
  for (const path of ["/queues/none", "/queues/none/pause", "/queues/__proto__", "/queues/all/pause"]) {
    expect((await open(path)).status, path).toBe(404);
  }
});

describe("the page of all queues", () => {
  it("the page of all queues shows each queue's figures, and each worker's process and jobs", async () => {
    const { code } = await issue();
    await till.redeem({ code, externalRef: "counted" });
    await worker.ctx.counts.send();
    const { text } = await open("/queues");
    const [, redeem = ""] = /<section aria-labelledby="redeem">(.*?)<\/section>/s.exec(text) ?? [];
    const figures = Object.fromEntries(
      Array.from(redeem.matchAll(/<dt>([^<]*)<\/dt><dd>([^<]*)<\/dd>/g), ([, name, value]) => [name, value]),
    );
    const failed = await Promise.all(shards.map((shard) => shard.getFailedCount()));
    const inAll = String(failed.reduce((sum, count) => sum + count, 0));
    expect(figures).toMatchObject({ Waiting: "0", "Oldest waiting": "0 ms", Failed: inAll });
    expect(Number(figures.Workers)).toBeGreaterThan(0);
    expect(Number(figures["Jobs a minute"])).toBeGreaterThan(0);
    expect(redeem).toMatch(/Wait for a worker: p50 [\d.]+ m?s, p99 [\d.]+ m?s\. Work: p50 [\d.]+ m?s/);
    expect(redeem).toMatch(new RegExp(`<td class="figure">${process.pid}</td><td class="figure">\\d+ %</td>`));
    const [, webhook = ""] = /<section aria-labelledby="webhook">(.*?)<\/section>/s.exec(text) ?? [];
    expect(webhook).toContain("No worker serves this queue.");
  });

  it("the page of all queues is smaller than 80 kB with fifty workers, and shows hostile names as text", async () => {
    const evil = "<script>alert(1)</script>";
    expect((await send("/queues/redeem/pause", { reason: evil })).status).toBe(303);
    for (let pid = 0; pid < 50; pid += 1) {
      const own = { id: `many ${pid}`, role: "worker", host: `${evil}${pid}`, pid, version: "0", busy: 0 };
      await recordProcess(db, { ...own, queues: CONFIG_PARTS.queues.map(({ name }) => name), problem: null });
    }
    const { text } = await open("/queues");
    expect(text).toMatch(/\d\d more\./);
    expect(text).not.toContain("<script>alert");
    expect(text.length).toBeLessThan(80_000);
    expect((await open("/queues/redeem")).text.length).toBeLessThan(80_000);
    await db.query("DELETE FROM processes WHERE id LIKE 'many %'");
  });
});

describe("the queue pages while Postgres or Redis is unreachable", () => {
  it("the queue pages show Redis's data while Postgres is unreachable", async () => {
    const proxy = await openTcpProxy(servers.databaseUrl);
    const cut = await startApi({ DATABASE_URL: proxy.url });
    try {
      expect((await send("/queues/redeem/pause", { reason: "first" })).status).toBe(303);
      for (const fail of [proxy.jam, proxy.cut]) {
        fail();
        for (const { path, status, text } of await openAll(["/queues", "/queues/redeem"], cut)) {
          expect(status, path).toBe(200);
          expect(text).toContain("Paused: no worker takes a job");
          expect(text).toContain("Who has paused it is not known: Postgres does not answer.");
          expect(text).toMatch(/<dt>Waiting<\/dt><dd>0<\/dd>/);
        }
      }
    } finally {
      proxy.mend();
      await cut.close();
      await proxy.close();
    }
  });

  itOnOneRedis(
    "the queue pages answer 503 without Redis, with the reason on a page with the usual header",
    async () => {
      const proxy = await openTcpProxy(servers.redisUrl);
      const cut = await startApi({ REDIS_URL: proxy.url });
      try {
        for (const fail of [proxy.jam, proxy.cut]) {
          fail();
          for (const { path, status, text } of await openAll(["/queues", "/queues/redeem", "/queues/jobs"], cut)) {
            expect(status, path).toBe(503);
            expect(text).toContain("Redis does not answer");
            expect(text).toContain('<nav class="ops" aria-label="Operations">');
          }
        }
      } finally {
        proxy.mend();
        await cut.close();
        await proxy.close();
      }
    },
  );
});

const send = (path: string, form: Form, more: Record<string, string> = {}, at = api) =>
  browse(`${at.url}/ops${path}`, { headers: { ...headers, ...more }, form });

const newestEntry = async (): Promise<number> =>
  (await db.query("SELECT coalesce(max(id), 0)::int AS id FROM audit_entries")).rows[0].id;

const entriesAfter = async (id: number) =>
  (
    await db.query(
      `SELECT command, arguments, os_user, host, entity_type, entity_id FROM audit_entries
        WHERE id > $1 AND entity_type = 'Queue' ORDER BY id`,
      [id],
    )
  ).rows;

/** Fails a job in each of the shards. Returns their ids. */
async function failJobs(): Promise<string[]> {
  const jobs = await Promise.all(shards.map((shard) => shard.add("redeem", { code: "no worker can read this" })));
  await until(async () => (await Promise.all(shards.map((shard) => shard.getFailedCount()))).every((n) => n === 1));
  return jobs.map(({ id }) => id ?? "");
}

const counts = async (state: "failed" | "delayed") =>
  (await Promise.all(shards.map((shard) => shard.getJobCountByTypes(state)))).join(" ");
