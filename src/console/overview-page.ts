import type { OrganizationName } from "../core/catalog/db/catalog.ts";
import { ASSETS } from "../pages/assets.ts";
import { runbookPath } from "../pages/documents.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import {
  COUNT,
  describeMs,
  layOutForOperators,
  linkTo,
  type OperatedSite,
  opsPath,
  renderFacts,
  renderFigures,
  renderSection,
  renderTable,
  STACKS,
} from "../pages/operator-frame.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { type Severity, STOCK } from "../watch/facts.ts";
import { type Attention, findExplanation } from "../watch/keep-faults.ts";
import type { Overview, PeriodCounts } from "../watch/read-overview.ts";
import type { SignedIn } from "./sign-in/signed-in.ts";

/**
 * The start page of operators. Every five seconds, a script replaces the parts with `data-live`, and draws the plots
 * from the tables in them.
 */
export function renderOverviewPage(site: OperatedSite, operator: Named, overview: Overview): Html {
  const { minutes, hours, completeUntil } = overview;
  const exactness =
    completeUntil === null
      ? html`Postgres does not tell redemptions and claims.`
      : html`Redemptions and claims are exact up to ${renderTime(completeUntil)}.`;
  const sums = html`<p class="fine">${exactness} Refusals and latencies are approximate.</p>
${renderFacts([
  ["Last hour", renderSum(minutes)],
  ["Last two days", renderSum(hours)],
])}`;
  const sections = [
    renderSection("attention", "Needs attention", live("faults", renderAttention(site, overview))),
    renderSection("now", "Now", live("figures", renderNow(overview))),
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
    renderSection("keys", "Busiest keys, last minute", live("callers", renderKeys(site, overview))),
    renderSection("stock", "Stock in open windows", live("batches", renderStock(site, overview))),
    renderSection("queues", "Queues", live("jobs", renderQueues(site, overview))),
    renderSection("processes", "Processes", live("reports", renderProcesses(overview))),
    renderSection("servers", "Servers", live("health", renderServers(overview))),
  ];
  const assets = { scripts: [ASSETS.overviewScript], styles: [ASSETS.overviewStyle] };
  return layOutForOperators(
    site,
    "Overview",
    html`<h1>Overview</h1>\n${renderOperator(operator)}${sections}`,
    "",
    assets,
  );
}

type Named = Pick<SignedIn, "name" | "role">;

function renderOperator({ name, role }: Named): Html {
  return html`<p class="fine">Signed in as <bdi>${name}</bdi>, with the role ${role}.</p>\n`;
}

const live = (id: string, content: Html) => html`<div id="${id}" data-live>${content}</div>`;
const ms = (value: number | null) => (value === null ? "–" : describeMs(value));
const megabytes = (bytes: number) => `${COUNT.format(Math.round(bytes / 1_048_576))} MB`;

/** The most important figures, large and at the top. */
function renderNow({ redeems, latencyMs, canary, reservations, queues, processes }: Overview): Html {
  // Without redeems, shows how long the service's own test jobs (canaries) took.
  const [latency, p50, p99] =
    latencyMs.p50 === null ? ["Canary", canary.p50Ms, canary.p99Ms] : ["Redeem", latencyMs.p50, latencyMs.p99];
  const waiting = queues.find(({ name }) => name === "redeem")?.waiting ?? null;
  const workers = queues.find(({ name }) => name === "redeem")?.workers ?? 0;
  const apis = processes.filter(({ role, state }) => role === "api" && state === "up").length;
  return renderFigures(
    ["Redeems, last minute", show(redeems?.answered ?? null)],
    ["Without an answer", show(redeems?.unanswered ?? null)],
    [`${latency} latency p50`, ms(p50)],
    [`${latency} latency p99`, ms(p99)],
    ["Redeems that wait", show(waiting)],
    ["APIs + redeem workers", `${show(apis)} + ${show(workers)}`],
    ["Live reservations", show(reservations.live)],
  );
}

const show = (count: number | null) => (count === null ? "–" : COUNT.format(count));

/** The style and the name of each severity. The name is needed because colour alone does not distinguish severities. */
const LOOKS: Record<Severity, string> = { red: "bad", amber: "waiting", grey: "plain" };
const CONSEQUENCES: Record<Severity, string> = { red: "Act now", amber: "In working hours", grey: "Good to know" };

function renderAttention(site: Site, { attention, ended, at }: Overview): Html {
  const over = ended.map(
    ({ what, subject, endedAt }) => html`<li class="verdict good"><strong>${what}</strong>
<p>${subject}: ended at ${renderTime(endedAt ?? at)}, watching.</p></li>\n`,
  );
  if (attention.length === 0) {
    return html`<p class="notice good">Nothing needs attention. Last looked on ${renderTime(at)}.</p>
${over.length === 0 ? null : html`<ul class="faults">${over}</ul>`}`;
  }
  const causes = attention.filter((one) => findExplanation(one, attention) === undefined);
  const cards = causes.map((cause) => {
    const following = attention.filter((one) => followsFrom(one, attention) === cause);
    return renderCard(site, cause, following);
  });
  return html`<ul class="faults">
${cards}${over}</ul>
<p class="fine">Last looked on ${renderTime(at)}.</p>`;
}

/** The first cause in the chain of faults that explain this fault. Null if no fault explains it. */
function followsFrom(one: Attention, all: readonly Attention[]): Attention | null {
  const cause = findExplanation(one, all);
  return cause === undefined ? null : (followsFrom(cause, all) ?? cause);
}

/** The card of one cause, with the faults that follow from it below. */
function renderCard(site: Site, cause: Attention, following: readonly Attention[]): Html {
  const { severity, what, since, subject, runbook, page } = cause;
  const follows = following.map(
    (one) => html`<br>${one.what} (${one.subject}), since ${renderTime(one.since, MINUTES)}`,
  );
  return html`<li class="verdict ${LOOKS[severity]}"><span class="badge ${LOOKS[severity]}">${CONSEQUENCES[severity]}\
</span> <strong>${what}</strong>
<p>${page === null ? subject : html`<a href="${opsPath(site, ...page)}">${subject}</a>`}, \
since ${renderTime(since, MINUTES)}. <a href="${runbookPath(site, runbook)}">What to do<span class="hidden"> \
about: ${what}, ${subject}</span></a></p>\
${follows.length === 0 ? null : html`<p class="fine">From it follows:${follows}</p>`}</li>
`;
}

/** The busiest keys: first those with the most calls over their limits, then those with the most calls. */
function renderKeys(site: Site, { keys }: Overview): Html {
  return renderTable(
    "Busiest keys",
    ["Key", "Organization", "Calls", "Over a limit (429)"],
    (keys ?? []).map(({ organizationId, keyId, label, organization, calls, limited }) => [
      html`<a href="${opsPath(site, "organizations", organizationId, "calls")}?key=${keyId}">\
${label === null ? null : html`<bdi>${label}</bdi><br>`}<code>${keyId}</code></a>`,
      linkTo(site, "organizations", organizationId, organization ?? undefined),
      COUNT.format(calls),
      COUNT.format(limited),
    ]),
    keys === null ? "Redis does not tell calls." : "No key has called.",
    STACKS,
  );
}

/** The form that chooses an organization. Works without script. */
function renderChoice(site: Site, { organization, organizations }: Overview): Html {
  const namesakes = Map.groupBy(organizations, ({ name }) => name);
  const show = ({ id, name }: OrganizationName) => (namesakes.get(name)?.length === 1 ? name : `${name}, ${id}`);
  return html`<form class="choice" method="get" action="${opsPath(site)}">
<label for="organization">Organization</label>
<div class="row"><select id="organization" name="organization">
<option value="">All live organizations</option>
${organizations.map(
  (one) =>
    html`<option value="${one.id}"${one.id === organization ? html` selected` : null}>\
${show(one)}${one.sandbox ? " (sandbox)" : ""}</option>\n`,
)}</select>
<button type="submit">Show</button></div>
</form>`;
}

function renderSum(counts: readonly PeriodCounts[]): string {
  const sums = (["redemptions", "claims", "refusals"] as const).map((field) => {
    const known = counts.flatMap((count) => count[field] ?? []);
    if (known.length === 0) return `unknown ${field}`;
    const sum = known.reduce((total, count) => total + count, 0);
    // The counts of refusals are missing for times before a restore and for times when Redis was unavailable.
    const least = field === "refusals" && known.length < counts.length ? "at least " : "";
    if (least === "" && known.length < counts.length) return `unknown ${field}`;
    return `${least}${COUNT.format(sum)} ${sum === 1 ? field.slice(0, -1) : field}`;
  });
  return sums.join(", ");
}

/** A table, initially collapsed, and the element into which the script draws its plot. */
function renderPlot(caption: string, id: string, kind: string, table: Html): Html {
  return html`<h3>${caption}</h3>
<div class="plot" data-plot="${kind}" data-of="${id}" role="img" aria-label="Plot: ${caption}" hidden></div>
<details><summary>Numbers<span class="hidden">: ${caption}</span></summary>
${live(id, table)}</details>`;
}

/** Counts, newest first. A dash stands for an incomplete count. */
function renderCounts(counts: readonly PeriodCounts[], completeUntil: Date | null): Html {
  return renderTable(
    "Counts",
    ["From", "Redemptions", "Claims", "Refusals", "Without an answer"],
    counts.toReversed().map(({ at, redemptions, claims, refusals, unanswered }) => {
      const exact = (count: number | null) => (completeUntil !== null && at < completeUntil ? String(count) : "–");
      return [
        renderTime(at, MINUTES),
        exact(redemptions),
        exact(claims),
        String(refusals ?? "–"),
        String(unanswered ?? "–"),
      ];
    }),
    "",
  );
}

function renderLatencies(counts: readonly PeriodCounts[]): Html {
  const show = (value: number | null) => String(value ?? "–");
  const rows = counts.map(({ at, latencyMs }) => [renderTime(at, MINUTES), show(latencyMs.p50), show(latencyMs.p99)]);
  return renderTable("Latencies", ["From", "p50", "p99"], rows.toReversed(), "");
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
    STACKS,
  );
}

function renderQueues(site: Site, { queues }: Overview): Html {
  const show = (count: number | null) => (count === null ? "unknown" : COUNT.format(count));
  const rows = queues.map(({ name, paused, waiting, active, failed, workers }) => [
    html`<a href="${opsPath(site, "queues", name)}">${name}</a>\
${paused ? html` <span class="badge bad">Paused</span>` : null}`,
    ...[workers, waiting, active, failed].map(show),
  ]);
  return renderTable("Queues", ["Queue", "Workers", "Waiting", "Active", "Failed"], rows, "", STACKS);
}

function renderProcesses({ processes }: Overview): Html {
  return renderTable(
    "Processes",
    ["Process", "State", "Queues", "Version", "Busy", "Since"],
    processes.map(({ role, host, pid, state, problem, seenAt, queues, version, busy, since }) => [
      html`${role} ${String(pid)}<br>${host}`,
      state === "up"
        ? html`<span class="badge good">up</span>${problem === null ? null : html`<br>not ready: ${problem}`}`
        : html`<span class="badge plain">gone</span><br>${renderTime(seenAt, MINUTES)}`,
      queues.join(", "),
      version,
      state === "up" ? `${Math.round(busy * 100)} %` : "–",
      renderTime(since, MINUTES),
    ]),
    html`No process is known.`,
    STACKS,
  );
}

function renderServers({ servers: { postgres, redis } }: Overview): Html {
  const away = (server: string) => [server, html`<span class="badge bad">does not answer</span>`, "", ""];
  const masters = redis.map(({ address, version, memoryBytes, clients }) => [
    html`Redis ${version} <code>${address}</code>`,
    "master",
    COUNT.format(clients),
    `${megabytes(memoryBytes)} in memory`,
  ]);
  return renderTable(
    "Servers",
    ["Server", "Role", "Connections", "Size"],
    [
      postgres === null ? away("Postgres") : describePostgres(postgres),
      ...(masters.length === 0 ? [away("Redis")] : masters),
    ],
    "",
    STACKS,
  );
}

function describePostgres(postgres: NonNullable<Overview["servers"]["postgres"]>): string[] {
  const { version, isStandby, standbyNames, standbys, lagMs, connections, connectionsMax, sizeBytes } = postgres;
  const connected = standbys.length === 1 ? "1 standby" : `${standbys.length} standbys`;
  const none = standbyNames === "" ? "; none synchronous" : "";
  const lag = lagMs === null ? "" : `, the last one ${COUNT.format(lagMs)} ms late`;
  return [
    `Postgres ${version}`,
    `${isStandby ? "standby" : "primary"}; ${connected} connected${lag}${none}`,
    `${COUNT.format(connections)} of ${COUNT.format(connectionsMax)}`,
    `${megabytes(sizeBytes)} on disk`,
  ];
}
