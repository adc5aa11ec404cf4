import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse } from "yaml";
import { createListing } from "../../../src/marketplace/acts.ts";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import { partnerClient, send } from "../../support/client.ts";
import { beginTlog, makeTlogFiles } from "../../support/log-setup.ts";
import { selectorsOf } from "../../support/promql.ts";
import { hasPromtool, runPromtool } from "../../support/promtool.ts";
import { type Sample, scrape } from "../../support/scrape.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../../support/service.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";

const read = (file: string) => readFileSync(new URL(`../../../docs/${file}`, import.meta.url), "utf8");
const RULES = read("observability/prometheus-rules.yml");
const CONFIG = read("observability/prometheus.yml");
const DASHBOARD = read("observability/grafana/dashboards/vouchers.json");
const RUNBOOK_PAGES = globSync("docs/runbook/*.md").map((file) => ({ file, text: readFileSync(file, "utf8") }));
const PREPARATION = read("runbook.md");
const RUNBOOK = [PREPARATION, ...RUNBOOK_PAGES.map(({ text }) => text)].join("\n");
const DOCUMENTS = `${read("monitoring.md")}${RUNBOOK}`;

/** Metrics that Prometheus itself reports. */
const PROMETHEUS_OWN = ["up", "ALERTS"];
/** Labels that Prometheus adds to every series. */
const TARGET_LABELS = ["job", "instance"];
const JOBS = Array.from(CONFIG.matchAll(/job_name: (\w+)/g), ([, name = ""]) => name);
const RECORDED = Array.from(RULES.matchAll(/- record: (\S+)/g), ([, name = ""]) => name);

let servers: TestServers;
const files = makeTlogFiles();
let api: TestApi;
let worker: TestWorker;
let samples: Sample[];

beforeAll(async () => {
  servers = await openTestServers();
  api = await startApi(servers, { METRICS_PORT: "0" });
  await beginTlog(servers.db, files);
  worker = await startWorkers(servers, {
    METRICS_PORT: "0",
    WORKER_QUEUES: "redeem,seal,sweep",
    SWEEP_INTERVAL_MS: "200",
  });
  await startWorkers(servers, { WORKER_QUEUES: "log", DATABASE_URL: servers.logUrl, ...files.env });
  const partner = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, partner.organizationId);
  const [redeemed, reserved] = await issueVouchers(servers.db, partner, 2);
  await issueVouchers(servers.db, partner, 3, { windows: { buy: { opensAt: null, closesAt: null } } });
  const { rows } = await servers.db.query("SELECT batch_id FROM batch_windows");
  await createListing.run(provisioning(servers.db), rows[0].batch_id, {});
  const till = partnerClient(api.url, key);
  expect((await till.reserve(reserved?.code ?? "")).status).toBe(200);
  expect((await till.redeem({ code: redeemed?.code, externalRef: "names" })).status).toBe(200);
  await send("GET", `${api.url}/readyz`);
  samples = await until(async () => {
    const [ofApi, ofWorker] = await Promise.all([scrape(api.metricsUrl), scrape(worker.metricsUrl)]);
    const redeems = ofApi.value("voucher_http_request_duration_seconds_count", { route: "/partner/vouchers/redeem" });
    const passes = ofWorker.value("voucher_sweep_duration_seconds_count");
    return redeems === 1 && (passes ?? 0) > 0 && ofApi.value("voucher_log_size") !== undefined
      ? [...ofApi.samples, ...ofWorker.samples]
      : null;
  });
});

afterAll(async () => {
  await servers.close();
  files.remove();
});

it("the parser of PromQL expressions finds each metric with its label matchers, and reports unknown metrics", () => {
  const expression = [
    'sum by (route, le) (rate(a_bucket{code=~"x|y", s!="z"}[5m]))',
    "/ ignoring(state) (b:c:d > 0) or vector(0) and max(up == 1) offset 5m",
  ].join(" ");
  const [code, s] = [
    { label: "code", operator: "=~", value: "x|y" },
    { label: "s", operator: "!=", value: "z" },
  ];
  expect(selectorsOf(expression)).toEqual([
    { metric: "a_bucket", matchers: [code, s] },
    { metric: "b:c:d", matchers: [] },
    { metric: "up", matchers: [] },
  ]);
  for (const wrong of [
    "rate(voucher_http_request_duration_seconds[5m])",
    'voucher_refusals_total{kode="internal_error"}',
    'voucher_refusals_total{code=~"internal_error|internal_eror"}',
    'up_to:nothing{job="api"}',
    'voucher_live_reservations{job="apis"}',
  ]) {
    expect(faultsOf(wrong), wrong).toHaveLength(1);
  }
});

/** Expressions in the rules, on one line or folded over several. */
const RULE_EXPRESSIONS = Array.from(
  RULES.matchAll(/^ +expr: (?:>-\n((?: {10,}.*\n)+)|(.*)\n)/gm),
  ([, folded, line = ""]) => folded?.replace(/\s+/g, " ").trim() ?? line,
);

const dashboard = JSON.parse(DASHBOARD) as {
  annotations: { list: { expr: string }[] };
  panels: { title: string; type: string; targets?: { expr: string }[] }[];
};

const DASHBOARD_EXPRESSIONS = [
  ...dashboard.annotations.list.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
];

/** Expressions and names of metrics in the documents' inline code, without error codes, which can look like metrics. */
const DOCUMENTED = Array.from(
  DOCUMENTS.matchAll(/`([^`\n]*\b(?:voucher|nodejs|process)_\w+[^`\n]*)`/g),
  ([, text = ""]) => text,
).filter((text) => !ALL_ERRORS.has(text));

it("every metric in the alert rules, dashboard and documents exists in the code", () => {
  expect(RULE_EXPRESSIONS.length).toBe(RULES.match(/^ +expr:/gm)?.length);
  expect(DASHBOARD_EXPRESSIONS.length).toBeGreaterThan(30);
  expect(DOCUMENTED.length).toBeGreaterThan(10);
  expect([...RULE_EXPRESSIONS, ...DASHBOARD_EXPRESSIONS].flatMap((expression) => faultsOf(expression))).toEqual([]);
  expect(DOCUMENTED.flatMap((expression) => faultsOf(expression, true))).toEqual([]);
});

it("every metric is in the documents, and on the dashboard or in an alert rule", () => {
  const own = new Set(
    samples.map(({ name }) => name.replace(/_(bucket|sum|count)$/, "")).filter((name) => name.startsWith("voucher_")),
  );
  const asked = [...RULE_EXPRESSIONS, ...DASHBOARD_EXPRESSIONS].join("\n");
  for (const name of own) {
    expect(DOCUMENTS, name).toContain(`\`${name}`);
    expect(asked, name).toContain(name);
  }
});

it("every metric follows the naming conventions: base units, and `_total` for counters", async () => {
  const { text } = await scrape(api.metricsUrl);
  const types = Array.from((text + (await scrape(worker.metricsUrl)).text).matchAll(/^# TYPE (voucher_\w+) (\w+)$/gm));
  expect(types.length).toBeGreaterThan(10);
  for (const [, name = "", type] of types) {
    expect(name.endsWith("_total"), name).toBe(type === "counter");
    expect(name, name).not.toMatch(/_(ms|milliseconds|minutes|percent|kb|mb)(_|$)/);
  }
});

it("every alert has a severity and a runbook section with commands", () => {
  const alerts = Array.from(RULES.matchAll(/- alert: (\w+)[\s\S]*?runbook_url: "(.+)"/g), ([, ...found]) => found);
  expect(alerts.map(([name]) => name)).toEqual(Array.from(RULES.matchAll(/- alert: (\w+)/g), ([, name]) => name));
  for (const [name = "", runbook] of alerts) {
    const file = RUNBOOK_PAGES.find(({ text }) => text.includes(`\n## ${name}\n`))?.file;
    expect(runbook).toBe(`{{ $externalLabels.runbook_base }}/${file}#${name.toLowerCase()}`);
    expect(PREPARATION).toContain(`](${file?.replace("docs/", "")}#${name.toLowerCase()})`);
    const [, page = ""] = new RegExp(`^## ${name}\\n([\\s\\S]*?)(?=^##|$(?![\\s\\S]))`, "m").exec(RUNBOOK) ?? [];
    for (const part of ["**Means.**", "**Look.**", "**Do.**", "```sh\n"])
      expect(page, `${name} ${part}`).toContain(part);
    expect(RULES).toMatch(new RegExp(`- alert: ${name}\\n[\\s\\S]*?severity: (critical|warning)`));
  }
});

it("the runbook defines each of its commands for each way to run the service", () => {
  const own = Array.from(PREPARATION.matchAll(/^(\w+)\(\) \{/gm), ([, name = ""]) => name);
  const commands = RUNBOOK_PAGES.flatMap(({ text }) => text.match(/(?<=^```sh\n)[^`]*(?=^```$)/gm) ?? []).join("");
  expect(commands).not.toMatch(/docker|npm|kubectl|systemctl/);
  const used = [...new Set(own)].filter((name) => new RegExp(`\\b${name}\\b`).test(commands));
  expect(used.length).toBeGreaterThan(5);
  const ways = PREPARATION.split(/^### /m).slice(1);
  const everywhere = ways.pop() ?? "";
  expect(ways).toHaveLength(3);
  for (const way of ways) {
    for (const name of used) expect(way + everywhere, `${way.split("\n", 1)}: ${name}`).toContain(`${name}() {`);
  }
});

it("Postgres accepts every SQL query of the runbook", async () => {
  const found = RUNBOOK.matchAll(/^psql "\$DATABASE_URL" -c "(.+?)"/gm);
  const queries = new Set(Array.from(found, ([, query = ""]) => query));
  expect(queries.size).toBeGreaterThan(2);
  for (const query of queries) await servers.db.query(query.replace("$1", "0"));
});

it.each([
  "observability/prometheus.yml",
  "kubernetes/prometheus.yaml",
])("%s sets each external label that the alert rules use, and drops the label from sent alerts", (file) => {
  const { global, alerting } = parse(read(file));
  const used = new Set(Array.from(RULES.matchAll(/\$externalLabels\.(\w+)/g), ([, label]) => label));
  expect([...used]).toEqual(["runbook_base"]);
  expect(Object.keys(global.external_labels)).toEqual([...used]);
  const dropped = [...used].map((regex) => ({ action: "labeldrop", regex }));
  expect(alerting.alert_relabel_configs).toEqual(dropped);
});

const checked = hasPromtool();

describe.runIf(checked)("Prometheus", () => {
  it("Prometheus accepts every expression of the dashboard", () => {
    const rules = DASHBOARD_EXPRESSIONS.map((expression, index) => ({
      record: `dashboard:${index}`,
      expr: expression.replaceAll("$__rate_interval", "1m"),
    }));
    const directory = mkdtempSync(join(tmpdir(), "voucher-dashboard-"));
    const file = join(directory, "dashboard.yml");
    // JSON is valid YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    const { ok, output } = runPromtool(["check", "rules", file]);
    rmSync(directory, { recursive: true });
    expect(output).toContain(`${rules.length} rules found`);
    expect(ok).toBe(true);
  });

  it("Prometheus finds no fault in the names, help texts and types that the processes report", async () => {
    for (const { metricsUrl } of [api, worker]) {
      const { text } = await scrape(metricsUrl);
      const { output } = runPromtool(["check", "metrics"], text);
      // promtool may criticise Node's own metrics, which prom-client names.
      expect(output.split("\n").filter((line) => line.startsWith("voucher_"))).toEqual([]);
      expect(output).not.toContain("error while linting");
    }
  });
});

/**
 * Finds the faults of the selectors in an expression. @param mayDescribe whether a histogram may lack the suffix of its
 * series.
 */
function faultsOf(expression: string, mayDescribe = false): string[] {
  return selectorsOf(expression).flatMap(({ metric, matchers }) => {
    if (metric.includes(":")) return RECORDED.includes(metric) ? [] : [`no rule records ${metric}`];
    if (PROMETHEUS_OWN.includes(metric)) return [];
    const series = samples.filter(({ name }) => name === metric || (mayDescribe && name === `${metric}_count`));
    if (series.length === 0) return [`no process reports ${metric}`];
    return matchers.flatMap(({ label, operator, value }) => {
      if (TARGET_LABELS.includes(label))
        return label === "instance" || value.split("|").every((job) => JOBS.includes(job))
          ? []
          : [`no job is ${value}`];
      const values = series.map(({ labels }) => labels[label]);
      if (values.every((known) => known === undefined)) return [`${metric} has no label ${label}`];
      // The test can check only a label that must equal plain words.
      if (operator.startsWith("!") || /[.*+\\]/.test(value)) return [];
      return value.split("|").flatMap((word) => (values.includes(word) ? [] : [`no ${metric} has ${label} ${word}`]));
    });
  });
}
