import type { OrganizationName } from "../../db/catalog.ts";
import { type Attention, STOCK } from "../../services/ops/find-attention.ts";
import type { Counts, Overview } from "../../services/ops/read-overview.ts";
import { ASSETS } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import {
  COUNT,
  layOutForOperators,
  linkTo,
  opsPath,
  renderFacts,
  renderSection,
  renderTable,
} from "./operator-frame.ts";

/** The start page of operators. Parts with `data-live` are replaced every five seconds; the script draws the plots from the tables. */
export function renderOverviewPage(site: Site, overview: Overview): Html {
  const { look, minutes, hours, latencyMs, completeUntil } = overview;
  const sums = html`<p class="fine">Redemptions and claims are exact up to ${renderTime(completeUntil)}. Refusals and latencies are approximate: sums of what processes report.</p>
${renderFacts([
  ["Last hour", renderSum(minutes)],
  ["Last two days", renderSum(hours)],
  ["Redeem latency", `p50 ${ms(latencyMs.p50)}, p99 ${ms(latencyMs.p99)} in the last five minutes`],
  ["Reservations", `${COUNT.format(overview.liveReservations)} live`],
])}`;
  const sections = [
    renderSection("attention", "Needs attention", live("faults", renderAttention(site, look.attention, look.at))),
    renderSection(
      "activity",
      "Activity",
      renderChoice(site, overview),
      live("sums", sums),
      renderPlot("Last hour, per minute", "minutes", "counts", renderCounts(minutes, completeUntil)),
      renderPlot(
        "Redeem latency of the last hour, in milliseconds",
        "latencies",
        "latencies",
        renderLatencies(minutes),
      ),
      renderPlot("Last two days, per hour", "hours", "counts", renderCounts(hours, completeUntil)),
    ),
    renderSection("stock", "Stock in open windows", live("batches", renderStock(site, overview))),
    renderSection("queues", "Queues", live("jobs", renderQueues(overview))),
    renderSection("processes", "Processes", live("reports", renderProcesses(overview))),
    renderSection("servers", "Servers", live("health", renderServers(overview))),
  ];
  const assets = { scripts: [ASSETS.overviewScript], styles: [ASSETS.overviewStyle] };
  return layOutForOperators(site, "Overview", html`<h1>Overview</h1>\n${sections}`, "", assets);
}

const live = (id: string, content: Html) => html`<div id="${id}" data-live>${content}</div>`;
const ms = (value: number | null) => (value === null ? "–" : `${COUNT.format(value)} ms`);
const megabytes = (bytes: number) => `${COUNT.format(Math.round(bytes / 1_048_576))} MB`;

function renderAttention(site: Site, attention: readonly Attention[], at: string): Html {
  if (attention.length === 0) {
    return html`<p class="notice good">Nothing needs attention. Last looked on ${renderTime(at)}.</p>`;
  }
  return html`<ul class="faults">
${attention.map(
  ({ what, since, subject, runbook, page }) => html`<li class="verdict bad"><strong>${what}</strong>
<p>${page === null ? subject : html`<a href="${opsPath(site, ...page)}">${subject}</a>`}, since ${renderTime(since, MINUTES)}. <a href="${opsPath(site, "runbook")}#${runbook}">What to do<span class="hidden"> about: ${what}, ${subject}</span></a></p></li>
`,
)}</ul>
<p class="fine">Last looked on ${renderTime(at)}.</p>`;
}

/** The form that chooses an organization. Works without script. */
function renderChoice(site: Site, { organizationId, organizations }: Overview): Html {
  const namesakes = Map.groupBy(organizations, ({ name }) => name);
  const show = ({ id, name }: OrganizationName) => (namesakes.get(name)?.length === 1 ? name : `${name}, ${id}`);
  return html`<form class="choice" method="get" action="${opsPath(site)}">
<label for="organization">Organization</label>
<div class="row"><select id="organization" name="organization">
<option value="">All live organizations</option>
${organizations.map(
  (one) =>
    html`<option value="${one.id}"${one.id === organizationId ? html` selected` : null}>${show(one)}${one.sandbox ? " (sandbox)" : ""}</option>\n`,
)}</select>
<button type="submit">Show</button></div>
</form>`;
}

function renderSum(counts: readonly Counts[]): string {
  const sums = (["redemptions", "claims", "refusals"] as const).map((field) => {
    const sum = counts.reduce((total, count) => total + count[field], 0);
    return `${COUNT.format(sum)} ${sum === 1 ? field.slice(0, -1) : field}`;
  });
  return sums.join(", ");
}

/** A table, folded, and the place of its plot. */
function renderPlot(caption: string, id: string, kind: string, table: Html): Html {
  return html`<h3>${caption}</h3>
<div class="plot" data-plot="${kind}" data-of="${id}" role="img" aria-label="Plot: ${caption}" hidden></div>
<details><summary>Numbers<span class="hidden">: ${caption}</span></summary>
${live(id, table)}</details>`;
}

/** Newest first. What is not complete yet is a dash. */
function renderCounts(counts: readonly Counts[], completeUntil: Date): Html {
  return renderTable(
    "Counts",
    ["From", "Redemptions", "Claims", "Refusals"],
    counts.toReversed().map(({ at, redemptions, claims, refusals }) => {
      const exact = (count: number) => (at < completeUntil ? String(count) : "–");
      return [renderTime(at, MINUTES), exact(redemptions), exact(claims), String(refusals)];
    }),
  );
}

function renderLatencies(counts: readonly Counts[]): Html {
  const show = (value: number | null) => String(value ?? "–");
  const rows = counts.map(({ at, latencyMs }) => [renderTime(at, MINUTES), show(latencyMs.p50), show(latencyMs.p99)]);
  return renderTable("Latencies", ["From", "p50", "p99"], rows.toReversed());
}

function renderStock(site: Site, { stock }: Overview): Html {
  return renderTable(
    "Stock in open windows",
    ["Product", "Left", "Runs out at the pace of the last day", "Ends"],
    stock.map(({ batchId, product, organizationId, brand, left, runsOutAt, endsAt }) => [
      html`${linkTo(site, "batches", batchId, product)}<br>${linkTo(site, "organizations", organizationId, brand)}`,
      left > STOCK.leftMax ? `more than ${COUNT.format(STOCK.leftMax)}` : COUNT.format(left),
      left === 0 ? "sold out" : runsOutAt === null ? "–" : renderTime(runsOutAt, MINUTES),
      renderTime(endsAt, MINUTES),
    ]),
    html`No batch has an open window.`,
  );
}

function renderQueues({ queues }: Overview): Html {
  const show = (count: number | null) => (count === null ? "unknown" : COUNT.format(count));
  const rows = queues.map(({ name, waiting, active, failed }) => [name, ...[waiting, active, failed].map(show)]);
  return renderTable("Queues", ["Queue", "Waiting", "Active", "Failed"], rows);
}

function renderProcesses({ processes }: Overview): Html {
  return renderTable(
    "Processes",
    ["Process", "State", "Queues", "Version", "CPU", "Memory", "Since"],
    processes.map(({ role, host, pid, state, queues, version, cpu, memoryBytes, since }) => [
      html`${role} ${String(pid)}<br>${host}`,
      html`<span class="badge ${state === "up" ? "good" : "bad"}">${state}</span>`,
      queues.join(", "),
      version,
      `${Math.round(cpu * 100)} %`,
      megabytes(memoryBytes),
      renderTime(since, MINUTES),
    ]),
    html`No process reports.`,
  );
}

function renderServers({ postgres, redis }: Overview): Html {
  const { standbyNames, streaming, lagMs, connections, connectionsMax, sizeBytes } = postgres;
  const lag = lagMs === null ? "" : `, the last one ${COUNT.format(lagMs)} ms late`;
  return renderTable(
    "Servers",
    ["Server", "Role", "Connections", "Size"],
    [
      [
        `Postgres ${postgres.version}`,
        `${postgres.isStandby ? "standby" : "primary"}; ${streaming} ${streaming === 1 ? "standby" : "standbys"} connected${lag}${standbyNames === "" ? "; none synchronous" : ""}`,
        `${COUNT.format(connections)} of ${COUNT.format(connectionsMax)}`,
        `${megabytes(sizeBytes)} on disk`,
      ],
      ...redis.map(({ address, version, memoryBytes, clients }) => [
        html`Redis ${version} <code>${address}</code>`,
        "master",
        COUNT.format(clients),
        `${megabytes(memoryBytes)} in memory`,
      ]),
      ...(redis.length === 0 ? [["Redis", html`<span class="badge bad">does not answer</span>`, "", ""]] : []),
    ],
  );
}
