import type { Place } from "../../db/catalog.ts";
import type { ApiContext } from "../../open-api.ts";
import type { Asset } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import { layOut, type Site } from "../pages/layout.ts";

/** The path of the operator pages, after the base path. The queue dashboard is below it. */
export const OPS_PATH = "/ops";

/** Longest text that the search accepts: a verify link with a long base address. */
export const SEARCH_MAX = 500;

/** The path of an operator page. The segments are encoded. */
export function opsPath(site: Site, ...segments: string[]): string {
  return [site.basePath + OPS_PATH, ...segments.map(encodeURIComponent)].join("/");
}

/** A link to an entity's operator page: its name, or else its id. */
export function linkTo(site: Site, collection: string, id: string, name?: string): Html {
  const shown = name === undefined ? html`<code>${id}</code>` : html`<bdi>${name}</bdi>`;
  return html`<a href="${opsPath(site, collection, id)}">${shown}</a>`;
}

/** What a page needs to link to actions: whether there are any. */
export type OperatedSite = Site & Pick<ApiContext["config"], "ops">;

/** Links to the actions on an entity: each with its path after the entity's and its label. Nothing without OPS_WRITABLE. */
export function linkActions(
  site: OperatedSite,
  entity: readonly string[],
  ...actions: readonly (readonly [path: string, label: string])[]
): Html | null {
  if (!site.ops.writable || actions.length === 0) return null;
  const links = actions.map(([path, label]) => html`<a href="${opsPath(site, ...entity)}/${path}">${label}</a> `);
  return html`<p class="actions">${links}</p>`;
}

/** The pages of what an entity belongs to, from the organization down, with its own if it has one. */
function stepsTo(site: Site, place: Place): { path: string; label: string }[] {
  const steps = [
    ["organizations", place.organizationId, place.organizationName],
    ["brands", place.brandId, place.brandName],
    ["products", place.productId, place.productName],
    ["batches", place.batchId, "Batch"],
    ["contracts", place.contractId, `Contract with ${place.userId}`],
    ["webhooks", place.webhookId, place.url],
    ["vouchers", place.voucherId, "Voucher"],
  ] as const;
  return steps.flatMap(([collection, id, label]) =>
    id === null ? [] : [{ path: opsPath(site, collection, id), label: String(label) }],
  );
}

/** The page of an entity; of a key, which has none, that of its organization. */
export function pathOf(site: Site, place: Place): string {
  return String(stepsTo(site, place).at(-1)?.path);
}

/** Links to what an entity belongs to. */
export function renderTrail(site: Site, place: Place): Html {
  const links = stepsTo(site, place).map(
    ({ path, label }) => html`<li><a href="${path}"><bdi>${label}</bdi></a></li> `,
  );
  return html`<nav class="trail" aria-label="Where"><ol>${links}</ol>${renderSandbox(place.sandbox)}</nav>`;
}

const SECTIONS = ["Organizations", "Queues", "Log", "Webhooks", "Audit", "Runbook"];

/** A page for operators: the site's frame, the operators' navigation, and the search field with the text `entered`. */
export function layOutForOperators(
  site: Site,
  title: string,
  main: Html,
  entered = "",
  assets: { scripts?: readonly Asset[]; styles?: readonly Asset[] } = {},
): Html {
  return layOut(site, {
    ...assets,
    title: `${title} · Operations`,
    main: html`<nav class="ops" aria-label="Operations"><a href="${opsPath(site)}">Overview</a>${SECTIONS.map((name) => html` <a href="${opsPath(site, name.toLowerCase())}">${name}</a>`)}</nav>
<form class="check" role="search" action="${opsPath(site, "vouchers")}" method="get">
<label for="words">Find</label>
<p class="fine" id="words-help">A voucher by code, id, verify link, ticket, the partner's reference, redeem code, or batch and serial: <code>bat_… 17</code>. An organization, brand or product by its name. A batch, a webhook target or an API key by its id.</p>
<div class="row"><input id="words" name="words" type="search" value="${entered}" required maxlength="${SEARCH_MAX}" autocomplete="off"
 autocapitalize="off" spellcheck="false" aria-describedby="words-help">
<button type="submit">Find</button></div>
</form>
${main}`,
  });
}

/** A table that scrolls sideways on narrow screens. Shows `none` instead when there are no rows. */
export function renderTable(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly (Html | string)[])[],
  none: Html = html`There are none.`,
): Html {
  if (rows.length === 0) return html`<p class="notice">${none}</p>`;
  return html`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table class="list">
<caption class="hidden">${caption}</caption>
<thead><tr>${columns.map((column) => html`<th scope="col">${column}</th>`)}</tr></thead>
<tbody>
${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`;
}

/** A part of a page, under a heading that is its anchor. */
export function renderSection(id: string, title: string, ...content: (Html | null)[]): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${content.filter((part) => part !== null)}</section>
`;
}

/** The link to the page of a list that follows; nothing when there is none. */
export function linkNext(href: string | null, label = "More"): Html | null {
  return href === null ? null : html`<p><a rel="next" href="${href}">${label}</a></p>`;
}

/** A list of facts, each with a name and a value. Facts with null values are left out. */
export function renderFacts(facts: readonly (readonly [name: string, value: Html | string | null])[]): Html {
  return html`<dl class="facts">
${facts.map(([name, value]) => (value === null ? html`` : html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`))}</dl>`;
}

/** A badge for an entity of a sandbox organization; null for a live one. */
export function renderSandbox(sandbox: boolean | undefined): Html | null {
  return sandbox ? html` <span class="badge waiting">Sandbox</span>` : null;
}

const GOOD_STATUSES = ["Active", "Live", "Delivered"];
const BAD_STATUSES = ["Voided", "Failed", "Revoked"];

/** A badge with the status of a voucher, a reservation, a delivery or a key. */
export function renderStatus(status: string): Html {
  const look = GOOD_STATUSES.includes(status) ? "good" : BAD_STATUSES.includes(status) ? "bad" : "plain";
  return html`<span class="badge ${look}">${status}</span>`;
}

export const USD = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
export const COUNT = new Intl.NumberFormat("en-US");
