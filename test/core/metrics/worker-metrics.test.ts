import { mkdirSync, rmSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient } from "../../support/client.ts";
import { backUp, beginTlog, makeTlogFiles, startWitness, tamper } from "../../support/log-setup.ts";
import { bypassTriggers, longestWaitMs, whileLocked } from "../../support/outside-transaction.ts";
import { scrape } from "../../support/scrape.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../../support/service.ts";
import { issueVouchers, makeKey } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useDatabase } from "../../support/use-service.ts";

const TASKS = [
  "expireReservations",
  ...["recordExpiries", "endContracts", "requestSeals"],
  ...["removeEnds", "removeReservations", "removeJobs"],
  ...["requestWebhooks", "removeDeliveries"],
];

const { servers, partner } = useDatabase();
let api: TestApi;
let sweeper: TestWorker;
let till: PartnerClient;

beforeAll(async () => {
  const { key } = await makeKey(servers.db, partner.organizationId);
  api = await startApi(servers, { METRICS_PORT: "0", RESERVATION_SECONDS: "1" });
  const SWEEPING = { WORKER_QUEUES: "redeem,seal,sweep", SWEEP_INTERVAL_MS: "200" };
  sweeper = await startWorkers(servers, { METRICS_PORT: "0", ...SWEEPING });
  till = partnerClient(api.url, key);
});

it("the sweeper's metrics show each task as 0 from the start, then its runs and processed items", async () => {
  const idle = await startWorkers(servers, { METRICS_PORT: "0", WORKER_QUEUES: "seal" });
  const report = await scrape(idle.metricsUrl);
  await idle.close();
  for (const task of TASKS) expect(report.value("voucher_sweep_items_total", { task }), task).toBe(0);
  for (const task of [...TASKS, "moveCompleteUntil", "countActivity", "removeProcesses", "checkChains"])
    expect(report.value("voucher_sweep_failures_total", { task }), task).toBe(0);
  expect(report.value("voucher_sweep_duration_seconds_count")).toBe(0);

  const [voucher] = await issueVouchers(servers.db, partner, 1);
  await till.reserve(voucher?.code ?? "");
  await until(async () => (await read("voucher_sweep_items_total", { task: "expireReservations" })) === 1);
  expect(await read("voucher_sweep_duration_seconds_count")).toBeGreaterThan(0);
  expect(await read("voucher_sweep_failures_total", { task: "expireReservations" })).toBe(0);
});

it("the sweeper counts verified chains, and each API reports a broken chain until the chain is intact", async () => {
  const vouchers = await issueVouchers(servers.db, partner, 20);
  const before = await read("voucher_chains_checked_total");
  await until(async () => (await read("voucher_chains_checked_total")) > before);
  const broken = async () => (await scrape(api.metricsUrl)).value("voucher_chains_broken");
  expect(await broken()).toBe(0);
  await servers.db.query("ALTER TABLE voucher_events DROP CONSTRAINT voucher_events_hash_matches_payload");
  const change = (payload: string) =>
    bypassTriggers(servers.db, `UPDATE voucher_events SET payload = ${payload} WHERE voucher_id = $1`, [
      vouchers[3]?.id,
    ]);
  await change("payload || ' '");
  await until(async () => (await broken()) === 1);
  const round = await read("voucher_chains_checked_total");
  await until(async () => (await read("voucher_chains_checked_total")) >= round + 40);
  expect(await broken()).toBe(1);
  const later = await startApi(servers, { METRICS_PORT: "0" });
  expect((await scrape(later.metricsUrl)).value("voucher_chains_broken")).toBe(1);
  await later.close();
  await change("rtrim(payload)");
  await until(async () => (await broken()) === 0);
});

it("the sweeper's metrics count a failing task, and the other tasks run", async () => {
  await servers.db.query("ALTER TABLE referrer_contracts RENAME TO referrer_contracts_away");
  await until(async () => (await read("voucher_sweep_failures_total", { task: "endContracts" })) >= 2);
  const passes = await read("voucher_chains_checked_total");
  await until(async () => (await read("voucher_chains_checked_total")) > passes);
  await servers.db.query("ALTER TABLE referrer_contracts_away RENAME TO referrer_contracts");
  expect(await read("voucher_sweep_failures_total", { task: "checkChains" })).toBe(0);
});

describe("the wait of a redeem", () => {
  const waits = async (what: "count" | "sum") => {
    const report = await scrape(api.metricsUrl);
    return ["queue", "transaction", "reply"].map((phase) =>
      report.value(`voucher_redeem_wait_seconds_${what}`, { phase }),
    );
  };

  it("the metrics split the wait of each redeem job with a reply into queue, transaction and reply", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 5);
    const [first] = vouchers;
    for (const [index, { code }] of vouchers.entries())
      expect((await till.redeem({ code, externalRef: `wait-${index}` })).status).toBe(200);
    // The API answers these calls from its first read, without a job.
    expect((await till.redeem({ code: first?.code, externalRef: "wait-0" })).body.alreadyConfirmed).toBe(true);
    expect((await till.redeem({ code: first?.code, externalRef: "wait-again" })).body.code).toBe("voucher_used");
    expect(await waits("count")).toEqual([5, 5, 5]);
    const [, transaction] = await waits("sum");
    expect(transaction).toBeGreaterThan(0);
  });

  it("a redeem job's wait for a locked row counts as transaction time", async () => {
    const [voucher] = await issueVouchers(servers.db, partner, 1);
    const [, before] = await waits("sum");
    const answered = await whileLocked(servers.db, [voucher?.id ?? ""], async () => {
      const answer = till.redeem({ code: voucher?.code, externalRef: "locked" });
      await until(async () => (await longestWaitMs(servers.db)) > 500);
      return { answer };
    });
    expect((await answered.answer).status).toBe(200);
    const [, after] = await waits("sum");
    expect((after ?? 0) - (before ?? 0)).toBeGreaterThan(0.5);
  });
});

it("a worker of the transparency log reports why the log cannot publish, and is not ready meanwhile", async () => {
  const files = makeTlogFiles();
  servers.onClose(async () => files.remove());
  const anchors = `${files.directory}/anchors`;
  mkdirSync(anchors);
  files.anchor = `${anchors}/anchor`;
  const witness = await startWitness(servers, files);
  files.setWitnesses([witness.url]);
  await beginTlog(servers.db, files);
  const { metricsUrl } = await startWorkers(servers, {
    DATABASE_URL: servers.logUrl,
    METRICS_PORT: "0",
    WORKER_QUEUES: "log",
    LOG_INTERVAL_MS: "100",
    ...files.env,
    LOG_ANCHOR: `file:${files.anchor}`,
  });
  const readyUrl = new URL("/readyz", metricsUrl);
  /** Waits until the gauge shows only this reason, or none for null. */
  const untilRefused = (reason: string | null) =>
    untilStarted(async () => {
      const { samples } = await scrape(metricsUrl).catch(() => ({ samples: [] }));
      const states = samples.filter(({ name }) => name === "voucher_log_refused");
      const isReady = (await fetch(readyUrl).catch(() => null))?.status === 200;
      const refused = states.filter(({ value }) => value === 1).map(({ labels }) => labels.reason);
      return states.length === 4 && refused.join() === (reason ?? "") && isReady === (reason === null);
    });
  await untilRefused(null);
  await issueVouchers(servers.db, partner, 1);
  // Waits for all leaves, because the witness refuses a log that lacks a cosigned leaf, as a restored backup may.
  await until(async () => (await servers.db.query(ALL_PUBLISHED)).rowCount === 1);
  const restore = await backUp(servers.db);
  await tamper(servers.db, "UPDATE log_tree SET size = size + 1");
  await untilRefused("contradiction");
  await restore();
  await tamper(servers.db, "DELETE FROM log_bundles");
  // Only new leaves make the next pass read the bundles again.
  await issueVouchers(servers.db, partner, 1);
  await untilRefused("failed");
  await restore();
  await untilRefused(null);
  rmSync(anchors, { recursive: true });
  await issueVouchers(servers.db, partner, 1);
  await untilRefused("anchor");
  mkdirSync(anchors);
  await untilRefused(null);
  await witness.close();
  await issueVouchers(servers.db, partner, 1);
  await untilRefused("witnesses");
});

/** Selects one row if the log has published the hash of every event. */
const ALL_PUBLISHED = `
  SELECT FROM log_published
   WHERE size = (SELECT sum(leaves) FROM log_batches)
     AND NOT EXISTS (SELECT FROM voucher_events WHERE seal_status = 'Pending')`;

const read = async (name: string, labels?: Record<string, string>) =>
  (await scrape(sweeper.metricsUrl)).value(name, labels) ?? Number.NaN;
