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

/** A link to a voucher's operator page. */
export function linkVoucher(site: Site, id: string): Html {
  return html`<a href="${opsPath(site, "vouchers", id)}"><code>${id}</code></a>`;
}

/** A link to an organization's operator page. */
export function linkOrganization(site: Site, id: string, name: Html | string = html`<code>${id}</code>`): Html {
  return html`<a href="${opsPath(site, "organizations", id)}">${name}</a>`;
}

/** A link to a batch's operator page. */
export function linkBatch(site: Site, id: string): Html {
  return html`<a href="${opsPath(site, "batches", id)}"><code>${id}</code></a>`;
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
