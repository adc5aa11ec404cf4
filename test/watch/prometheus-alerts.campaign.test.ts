import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { hasPromtool, runPromtool } from "../support/promtool.ts";

const RULES = fileURLToPath(new URL("../../docs/observability/prometheus-rules.yml", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../docs/observability/prometheus.yml", import.meta.url));

type Series = Record<string, string>;

const REDEEM = 'method="POST",route="/partner/vouchers/redeem"';
const duration = (what: string, labels: string) => `voucher_http_request_duration_seconds_${what}{job="api",${labels}}`;

const checked = hasPromtool();

describe.runIf(checked)("the files for Prometheus", () => {
  it("the files for Prometheus pass Prometheus's own check", () => {
    expect(runPromtool(["check", "rules", RULES])).toMatchObject({ ok: true });
    expect(runPromtool(["check", "config", CONFIG])).toMatchObject({ ok: true });
  });

  it("the alert rules for Prometheus fire nothing in an hour of a healthy service", () => {
    const asks = [9, 20, 35, 59].map((minutes) => firingAt(minutes, []));
    expect(testRules(HEALTHY, { promql_expr_test: asks })).toMatchObject({ ok: true });
  });

  it("the alert rules for Prometheus link to the runbook by an absolute address from an external label", () => {
    const alert = {
      exp_labels: { severity: "critical" },
      exp_annotations: {
        summary: "No API process answers",
        runbook_url: "https://git.example.com/vouchers/docs/runbook/processes.md#vouchersapidown",
      },
    };
    const result = testRules(
      { 'up{job="worker",instance="w:9464"}': "1x240" },
      {
        external_labels: { runbook_base: "https://git.example.com/vouchers" },
        alert_rule_test: [{ eval_time: "10m", alertname: "VouchersApiDown", exp_alerts: [alert] }],
      },
    );
    expect(result.output).toContain("SUCCESS");
    expect(readFileSync(CONFIG, "utf8")).toMatch(/runbook_base: \$\{RUNBOOK_BASE\}/);
  });

  it.each(FAULTS)("the alert rules for Prometheus fire exactly %j for %j", (alerts, series) => {
    const asks = [firingAt(9, []), firingAt(25, alerts)];
    const result = testRules({ ...HEALTHY, ...series }, { promql_expr_test: asks });
    expect(result).toMatchObject({ ok: true, output: expect.stringContaining("SUCCESS") });
  });

  it.each(
    CONFIG_PARTS.queues,
  )("the alert rules for Prometheus judge the queue $name separately: first unserved, then paused", (queue) => {
    const labels = `queue="${queue.name}",shard="0/2"`;
    const severity = queue.name === "redeem" ? "critical" : "warning";
    const withSeverity = (alerts: string[]) => ({
      expr: 'group by (alertname, severity) (ALERTS{alertstate="firing"})',
      eval_time: "25m",
      exp_samples: alerts.map((alertname) => ({
        labels: `{alertname="${alertname}",severity="${severity}"}`,
        value: 1,
      })),
    });
    const unserved = { ...HEALTHY, [`voucher_queue_fetchers{job="worker",${labels}}`]: "4x40 stale" };
    const expected = queue.needs ? [] : ["VouchersShardUnserved"];
    expect(testRules(unserved, { promql_expr_test: [withSeverity(expected)] })).toMatchObject({ ok: true });
    const paused = { ...HEALTHY, [`voucher_queue_paused{job="api",${labels}}`]: "0x40 1x200" };
    expect(testRules(paused, { promql_expr_test: [withSeverity(["VouchersQueuePaused"])] })).toMatchObject({
      ok: true,
    });
  });

  it("this file has a test case for every alert rule for Prometheus", () => {
    const tried = new Set(FAULTS.flatMap(([alerts]) => alerts));
    const alerts = Array.from(readFileSync(RULES, "utf8").matchAll(/- alert: (\w+)/g), ([, name = ""]) => name);
    expect(alerts.length).toBeGreaterThan(10);
    expect(alerts.filter((name) => !tried.has(name))).toEqual([]);
  });
});

/** Makes a check of the alerts that fire at a given time. */
function firingAt(minutes: number, alerts: readonly string[]) {
  return {
    expr: 'group by (alertname) (ALERTS{alertstate="firing"})',
    eval_time: `${minutes}m`,
    exp_samples: alerts.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
  };
}

/** Runs promtool's test of the rules with these series and the test's questions. */
function testRules(series: Series, test: object): { ok: boolean; output: string } {
  const directory = mkdtempSync(join(tmpdir(), "voucher-rules-"));
  // JSON is valid YAML.
  const file = join(directory, "rules.test.yml");
  const input_series = Object.entries(series).map(([name, values]) => ({ series: name, values }));
  const tests = [{ interval: "15s", input_series, ...test }];
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: "15s", tests }));
  const result = runPromtool(["test", "rules", file]);
  rmSync(directory, { recursive: true });
  return result;
}

/** An hour of a healthy service: a sample every 15 seconds, ten redeems a second. */
const HEALTHY: Series = {
  'up{job="api",instance="a:9464"}': "1x240",
  'up{job="worker",instance="w:9464"}': "1x240",
  'voucher_server_up{job="api",server="postgres"}': "1x240",
  'voucher_server_up{job="api",server="redis"}': "1x240",
  [duration("count", `${REDEEM},status="200"`)]: "0+150x240",
  [duration("count", `${REDEEM},status="503"`)]: "0x240",
  [duration("count", 'method="GET",route="/readyz",status="503"')]: "0+150x240",
  [duration("bucket", `${REDEEM},status="200",le="0.1"`)]: "0+150x240",
  [duration("bucket", `${REDEEM},status="200",le="2.5"`)]: "0+150x240",
  [duration("bucket", `${REDEEM},status="200",le="+Inf"`)]: "0+150x240",
  'voucher_redeem_wait_seconds_count{job="api",phase="transaction"}': "0+150x240",
  'voucher_refusals_total{job="api",code="internal_error"}': "0x240",
  'voucher_refusals_total{job="api",code="redeem_timeout"}': "0x240",
  'voucher_refusals_total{job="api",code="redeem_unknown"}': "0x240",
  'voucher_refusals_total{job="api",code="overloaded"}': "0x240",
  'voucher_refusals_total{job="api",code="voucher_used"}': "0+15x240",
  'voucher_canary_silent_seconds{job="api",shard="0/2"}': "4x240",
  'voucher_canary_silent_seconds{job="api",shard="1/2"}': "4x240",
  'voucher_sign_ins_failed_total{job="api"}': "0+0.1x240",
  'voucher_shard_up{job="api",shard="0/2"}': "1x240",
  'voucher_shard_up{job="api",shard="1/2"}': "1x240",
  ...seriesOfQueues(),
  'voucher_queue_jobs{job="api",queue="redeem",shard="0/2",state="failed"}': "3x240",
  'voucher_queue_jobs{job="api",queue="redeem",shard="1/2",state="failed"}': "3x240",
  'voucher_queue_jobs{job="api",queue="redeem",shard="0/2",state="waiting"}': "0+1x240",
  'voucher_foreign_messages_total{job="api",message="reply"}': "0x240",
  'voucher_log_lines_dropped_total{job="api"}': "0x240",
  'voucher_seal_lag_seconds{job="api"}': "5x240",
  'up{job="log",instance="l:9464"}': "1x240",
  'voucher_log_witness_claims{job="log"}': "0x240",
  'voucher_log_batches_set_aside{job="log"}': "0x240",
  'voucher_log_refused{job="log",reason="contradiction"}': "0x240",
  'voucher_log_refused{job="log",reason="witnesses"}': "0x240",
  'voucher_log_lag_seconds{job="api"}': "5x240",
  'voucher_webhook_oldest_due_seconds{job="api"}': "2x240",
  'voucher_webhook_outbox{job="api"}': "40x240",
  'voucher_webhook_deliveries_total{job="worker",result="delivered"}': "0+30x240",
  'voucher_webhook_deliveries_total{job="worker",result="retried"}': "0+20x240",
  'voucher_webhook_deliveries_total{job="worker",result="failed"}': "0x240",
  'voucher_webhook_endpoints_disabled_total{job="worker",reason="failing"}': "1x240",
  'voucher_sweep_duration_seconds_count{job="worker"}': "0+3x240",
  'voucher_sweep_failures_total{job="worker",task="expireReservations"}': "2x240",
  'voucher_chains_broken{job="api"}': "0x240",
  'voucher_database_clock_ahead_seconds{job="api"}': "0x240",
  'voucher_postgres_pool_waiting_calls{job="api",instance="a:9464"}': "0x240",
  // No alert: a single stall, as when the host pauses.
  'voucher_event_loop_stall_seconds{job="api",instance="a:9464"}': "0.004x60 1.5 0.004x179",
  'voucher_event_loop_stall_seconds{job="worker",instance="w:9464"}': "0.03x240",
};

/** Makes the reports of APIs about each queue, and of workers about the queues of every deployment. */
function seriesOfQueues(): Series {
  const series: Series = {};
  for (const { name, shardBy, needs } of CONFIG_PARTS.queues)
    for (const shard of shardBy === undefined ? ["0/2"] : ["0/2", "1/2"]) {
      const labels = `queue="${name}",shard="${shard}"`;
      series[`voucher_queue_oldest_waiting_seconds{job="api",${labels}}`] = `${name === "redeem" ? 0.2 : 30}x240`;
      series[`voucher_queue_paused{job="api",${labels}}`] = "0x240";
      if (needs === undefined) series[`voucher_queue_fetchers{job="worker",${labels}}`] = "4x240";
    }
  return series;
}

/** Faults, and the alerts that must fire after 25 minutes but not after nine. */
const FAULTS: [alerts: string[], series: Series][] = [
  [["VouchersApiDown"], { 'up{job="api",instance="a:9464"}': "1x40 stale" }],
  [["VouchersApiDown", "VouchersProcessDown"], { 'up{job="api",instance="a:9464"}': "1x40 0x200" }],
  [["VouchersWorkersDown"], { 'up{job="worker",instance="w:9464"}': "1x40 stale" }],
  [["VouchersProcessDown"], { 'up{job="worker",instance="x:9464"}': "1x40 0x200" }],
  [["VouchersProcessDown"], { 'up{job="log",instance="l:9464"}': "1x40 0x200" }],
  [["VouchersServerAway"], { 'voucher_server_up{job="api",server="redis"}': "1x40 0x200" }],
  [["VouchersShardAway"], { 'voucher_shard_up{job="api",shard="1/2"}': "1x40 0x200" }],
  [["VouchersQueuePaused"], { 'voucher_queue_paused{job="api",queue="redeem",shard="1/2"}': "0x40 1x200" }],
  [["VouchersShardUnserved"], { 'voucher_queue_fetchers{job="worker",queue="redeem",shard="1/2"}': "4x40 stale" }],
  [["VouchersErrors"], { [duration("count", `${REDEEM},status="503"`)]: "0x40 0+3x200" }],
  [
    ["VouchersNothingRedeemed"],
    Object.fromEntries(
      ["0/2", "1/2"].map((shard) => [`voucher_canary_silent_seconds{job="api",shard="${shard}"}`, "4x40 15+15x200"]),
    ),
  ],
  // No alert: another process still gets answers in the shard.
  [[], { 'voucher_canary_silent_seconds{job="api",instance="b:9464",shard="1/2"}': "4x40 15+15x200" }],
  [["VouchersShardAway"], { 'voucher_canary_silent_seconds{job="api",shard="1/2"}': "4x40 15+15x200" }],
  [["VouchersSignInsFail"], { 'voucher_sign_ins_failed_total{job="api"}': "0x40 0+1x200" }],
  [["VouchersInternalErrors"], { 'voucher_refusals_total{job="api",code="internal_error"}': "0x90 1x150" }],
  [["VouchersRedeemSlow"], { [duration("bucket", `${REDEEM},status="200",le="0.1"`)]: "0+150x40 6000+140x200" }],
  [["VouchersRedeemsUnanswered"], { 'voucher_refusals_total{job="api",code="redeem_unknown"}': "0x40 0+1x200" }],
  [["VouchersOverloaded"], { 'voucher_refusals_total{job="api",code="overloaded"}': "0x40 0+1x200" }],
  [["VouchersReferencesReused"], { 'voucher_redeem_reference_reused_total{job="api"}': "0x40 0+1x200" }],
  [["VouchersCodesGuessed"], { 'voucher_refusals_total{job="api",code="too_many_misses"}': "0x40 0+1x200" }],
  [
    ["VouchersQueueBacklog"],
    { 'voucher_queue_oldest_waiting_seconds{job="api",queue="redeem",shard="1/2"}': "0x40 3x200" },
  ],
  [["VouchersJobsFail"], { 'voucher_queue_jobs{job="api",queue="redeem",shard="1/2",state="failed"}': "3x90 5x150" }],
  [["VouchersForeignMessages"], { 'voucher_foreign_messages_total{job="api",message="reply"}': "0x40 0+1x200" }],
  [["VouchersLogLinesDropped"], { 'voucher_log_lines_dropped_total{job="api"}': "0x40 0+1x200" }],
  [["VouchersLogRefused"], { 'voucher_log_refused{job="log",reason="contradiction"}': "0x40 1x200" }],
  [["VouchersLogStopped"], { 'voucher_log_refused{job="log",reason="witnesses"}': "0x40 1x200" }],
  [["VouchersLogWitness"], { 'voucher_log_witness_claims{job="log"}': "0x40 1x200" }],
  [["VouchersLogSetAside"], { 'voucher_log_batches_set_aside{job="log"}': "0x40 1x200" }],
  [["VouchersLogLag"], { 'voucher_log_lag_seconds{job="api"}': "5x40 60+15x200" }],
  [["VouchersWebhooksLate"], { 'voucher_webhook_oldest_due_seconds{job="api"}': "2x40 60+15x200" }],
  [["VouchersWebhooksFail"], { 'voucher_webhook_deliveries_total{job="worker",result="delivered"}': "0x240" }],
  [["VouchersWebhookOutboxGrows"], { 'voucher_webhook_outbox{job="api"}': "40x40 400+60x200" }],
  [
    ["VouchersWebhookEndpointDisabled"],
    { 'voucher_webhook_endpoints_disabled_total{job="worker",reason="failing"}': "1x90 2x150" },
  ],
  [["VouchersSealLag"], { 'voucher_seal_lag_seconds{job="api"}': "5x40 60+15x200" }],
  [["VouchersSweeperStopped"], { 'voucher_sweep_duration_seconds_count{job="worker"}': "0+3x40 120x200" }],
  [["VouchersSweeperStopped"], { 'voucher_sweep_duration_seconds_count{job="worker"}': "0+3x40 stale" }],
  [["VouchersSweepFails"], { 'voucher_sweep_failures_total{job="worker",task="expireReservations"}': "2x40 2+1x200" }],
  [["VouchersClockAhead"], { 'voucher_database_clock_ahead_seconds{job="api"}': "0x40 3600x200" }],
  [["VouchersChainBroken"], { 'voucher_chains_broken{job="api"}': "0x40 1x200" }],
  [["VouchersPoolExhausted"], { 'voucher_postgres_pool_waiting_calls{job="api",instance="a:9464"}': "0x40 7x200" }],
  [
    ["VouchersEventLoopBlocked"],
    { 'voucher_event_loop_stall_seconds{job="api",instance="a:9464"}': "0.004x40 0.4x200" },
  ],
  [
    ["VouchersEventLoopBlocked"],
    {
      'voucher_event_loop_stall_seconds{job="worker",instance="w:9464"}': `0.03x40 ${"0.2 0.01 0.01 0.01 ".repeat(15)}`,
    },
  ],
];
