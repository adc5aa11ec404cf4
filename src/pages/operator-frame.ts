import type { RequestHandler } from "express";
import type { Lineage } from "../core/catalog/db/catalog.ts";
import { wantsPage } from "../platform/http/negotiate.ts";
import { ASSETS, type Asset } from "./assets.ts";
import { describeError } from "./error-page.ts";
import { type Html, html } from "./html.ts";
import { layOut, linkInMenu, renderMenu, type Site } from "./layout.ts";
import { ENGLISH } from "./locale.ts";

/** The path of the operator pages, after the base path. The queue dashboard is below it. */
export const OPS_PATH = "/ops";

/** Maximum length of a text in the search: enough for a verify link with a long base address. */
export const SEARCH_MAX = 500;

/** The path of an operator page. The segments are encoded. */
export function opsPath(site: Site, ...segments: string[]): string {
  return [site.basePath + OPS_PATH, ...segments.map(encodeURIComponent)].join("/");
}

/** A link to an entity's operator page. Its text is the entity's name, or the id if there is no name. */
export function linkTo(site: Site, collection: string, id: string, name?: string): Html {
  const shown = name === undefined ? html`<code>${id}</code>` : html`<bdi>${name}</bdi>`;
  return html`<a href="${opsPath(site, collection, id)}">${shown}</a>`;
}

/** What an operator page's links need. `sections` are of optional features (wings), `shown` is the page's path. */
type NavigatedSite = Site & { sections?: readonly string[]; shown?: string };

/** A site whose pages can offer actions. */
export type OperatedSite = NavigatedSite & {
  /** Whether the operator may use the action at this path after `/ops`. */
  offers(path: string): boolean;
};

/** The verbs of irreversible acts. */
const FINAL = /^(?:clean|decline|end|erase|revoke|void)\b/;

/** Whether an act is irreversible. `path` ends with its verb. */
export const isFinal = (path: string): boolean => FINAL.test(path.slice(path.lastIndexOf("/") + 1));

/**
 * Links to the actions on an entity, from each action's label and path after the entity's path. Leaves out actions that
 * the operator may not use. Irreversible actions stand apart, after the others.
 */
export function linkActions(
  site: OperatedSite,
  entity: readonly string[],
  ...actions: readonly (readonly [path: string, label: string])[]
): Html | null {
  const offered = actions.filter(([path]) => site.offers(`/${[...entity, path].join("/")}`));
  if (offered.length === 0) return null;
  const { final = [], others = [] } = Object.groupBy(offered, ([path]) => (isFinal(path) ? "final" : "others"));
  const link = ([path, label]: readonly [string, string]) =>
    html`<a href="${opsPath(site, ...entity)}/${path}">${label}</a> `;
  const apart = final.length === 0 ? null : html`<span class="final">${final.map(link)}</span>`;
  return html`<p class="actions">${others.map(link)}${apart}</p>`;
}

/** A page in a trail. */
interface Step {
  path: string;
  label: string;
}

/** A section of the navigation, as the first step of breadcrumbs. */
export const sectionStep = (site: Site, name: string): Step => ({
  path: opsPath(site, name.toLowerCase()),
  label: name,
});

/**
 * Links to the pages of an entity's parents, from the organization down, and to the entity's own page if it has one.
 */
function stepsTo(site: Site, lineage: Lineage): Step[] {
  const steps = [
    ["organizations", lineage.organizationId, lineage.organizationName],
    ["brands", lineage.brandId, lineage.brandName],
    ["products", lineage.productId, lineage.productName],
    ["batches", lineage.batchId, "Batch"],
    ["contracts", lineage.contractId, `Contract with ${lineage.userId}`],
    // The query may contain a token of the receiver, so only the endpoint's own page shows it, to admins.
    ["webhooks", lineage.webhookId, lineage.url?.replace(/\?.*/s, "?…")],
    ["vouchers", lineage.voucherId, "Voucher"],
  ] as const;
  return steps.flatMap(([collection, id, label]) =>
    id === null ? [] : [{ path: opsPath(site, collection, id), label: String(label) }],
  );
}

/** The path of an entity's page. A key has no page, so its path is that of its organization. */
export function pathOf(site: Site, lineage: Lineage): string {
  return String(stepsTo(site, lineage).at(-1)?.path);
}

/** The breadcrumbs of an entity's page, or of a page below it. */
export function renderTrail(site: Site, lineage: Lineage, ...below: readonly Step[]): Html {
  return renderSteps([sectionStep(site, "Organizations"), ...stepsTo(site, lineage), ...below], lineage);
}

/** Breadcrumbs. The last step is the page itself. */
export function renderSteps(steps: readonly Step[], { sandbox }: { sandbox?: boolean } = {}): Html {
  const links = steps.map(({ path, label }, at) => {
    const shown = at === steps.length - 1 ? path : undefined;
    return html`<li>${linkInMenu(path, html`<bdi>${label}</bdi>`, shown)}</li> `;
  });
  return html`<nav class="trail" aria-label="Where"><ol>${links}</ol>${renderSandbox(sandbox)}</nav>`;
}

/** The entities whose pages belong to the section of organizations. */
const OF_ORGANIZATIONS = /^\/(?:brands|products|batches|contracts|keys|vouchers)\//;

function renderNavigation(site: NavigatedSite): Html {
  const names = ["Organizations", "Queues", ...(site.sections ?? []), "Audit", "Operators", "Runbook"];
  const sections = names.map((name) => [opsPath(site, name.toLowerCase()), name] as const);
  const links = [[opsPath(site), "Overview"], ...sections, [opsPath(site, "sign-out"), "Sign out"]] as const;
  const shown = site.shown?.slice(opsPath(site).length).replace(OF_ORGANIZATIONS, "/organizations/");
  return renderMenu("Operations", links, shown === undefined ? shown : opsPath(site) + shown, true);
}

/** The site of an operator's request. */
export function siteOfRequest<Given extends Site>(site: Given, { path }: { path: string }): Given & { shown: string } {
  return { ...site, shown: opsPath(site) + (path === "/" ? "" : path) };
}

/** A page for operators: the site's frame, the operators' navigation, and the search field with the text `entered`. */
export function layOutForOperators(
  site: NavigatedSite,
  title: string,
  main: Html,
  entered = "",
  assets: { scripts?: readonly Asset[]; styles?: readonly Asset[] } = {},
): Html {
  return layOut(site, {
    ...assets,
    styles: [ASSETS.operatorStyle, ...(assets.styles ?? [])],
    title: `${title} · Operations`,
    main: html`<div class="bar">${renderNavigation(site)}
${renderSearch(site, entered)}</div>
${main}`,
  });
}

/** Adds the navigation of operator pages to error pages. Mount it after the sign-in. */
export function frameErrors(site: Site): RequestHandler {
  return (request, response, next) => {
    if (wantsPage(response)) {
      response.locals.errorPage = (...refusal) => {
        const { title, main } = describeError(site, ...refusal);
        return layOutForOperators(siteOfRequest(site, request), title, main);
      };
    }
    next();
  };
}

/** The search field in the header, with a collapsed list of what operators can find. */
function renderSearch(site: Site, entered: string): Html {
  return html`<form class="find" role="search" action="${opsPath(site, "vouchers")}" method="post">
<label class="hidden" for="words">Find</label>
<input id="words" name="words" type="search" value="${entered}" placeholder="Voucher, partner, call" required \
maxlength="${SEARCH_MAX}"
 autocomplete="off" autocapitalize="off" spellcheck="false">
<button type="submit">Find</button>
<details><summary><span class="hidden">What can be found</span></summary>
<p class="fine">${SEARCH_HELP}</p></details>
</form>`;
}

const SEARCH_HELP = html`A voucher by id, verify link, the partner's reference, or batch and serial: \
<code>bat_… 17</code>. For all but viewers also by code, ticket or redeem code. An organization, brand or product by \
its name. A batch, a webhook endpoint or an API key by its id. A partner's call of the last hour by its request id.`;

/**
 * A table that scrolls sideways on narrow screens. With `stacks`, a narrow screen shows each row as a list instead.
 * Without rows, shows `none`, which says what is missing and how to add it (empty for a table that always has rows).
 * Columns of numbers are aligned at the right. Pass texts that people have chosen as markup, because a text of digits
 * would count as a number. `total` is a last row with sums.
 */
export function renderTable(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly (Html | string)[])[],
  none: Html | string,
  { stacks = false, total = [] }: { stacks?: boolean; total?: readonly (Html | string)[] } = {},
): Html {
  if (rows.length === 0) return html`<p class="notice">${none}</p>`;
  const looks = columns.map((_, at) => (hasFigures(rows.map((cells) => cells[at])) ? html` class="figure"` : null));
  const named = columns.map((column) => (stacks ? html` data-name="${column}"` : null));
  const renderRow = (cells: readonly (Html | string)[]) =>
    html`<tr>${cells.map((cell, at) => html`<td${looks[at] ?? null}${named[at] ?? null}>${cell}</td>`)}</tr>\n`;
  return html`<div class="scroll${stacks ? " stacks" : ""}" role="group" aria-label="${caption}" tabindex="0">\
<table class="list">
<caption class="hidden">${caption}</caption>
<thead><tr>${columns.map((column, at) => html`<th scope="col"${looks[at] ?? null}>${column}</th>`)}</tr></thead>
<tbody>
${rows.map(renderRow)}</tbody>${total.length === 0 ? null : html`<tfoot>${renderRow(total)}</tfoot>`}
</table></div>`;
}

/** Shown after the last page of a list. */
export const NO_FURTHER = "The list ends here. There are no further entries.";

/** The option of {@link renderTable} for a table with too many columns for a phone. */
export const STACKS = { stacks: true } as const;

/** A number, with or without a unit. */
const FIGURE = /^(?:more than )?(?=.*\d)[\d\s.,'’$USD]+(?:%|ms|s|min|h|MB on disk|MB in memory|MB|of [\d,]+)?$/;
/** The texts that stand for a missing number. */
const NO_FIGURE = ["", "–", "unknown", "none", "no window"];

function hasFigures(cells: readonly (Html | string | undefined)[]): boolean {
  const isFigure = (cell: Html | string | undefined) => typeof cell === "string" && FIGURE.test(cell);
  return cells.some(isFigure) && cells.every((cell) => isFigure(cell) || NO_FIGURE.includes(cell as string));
}

/** The most important figures of a page, in large type, each with a name. */
export function renderFigures(...figures: readonly (readonly [name: string, figure: Html | string])[]): Html {
  return html`<dl class="figures">
${figures.map(([name, figure]) => html`<div><dt>${name}</dt><dd>${figure}</dd></div>\n`)}</dl>`;
}

/** A part of a page under a heading, with an anchor for links. */
export function renderSection(id: string, title: Html | string, ...content: (Html | null)[]): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${content.filter((part) => part !== null)}</section>
`;
}

/** The link to the next page of a list. Null if there is none. */
export function linkNext(href: string | null, label = "More"): Html | null {
  return href === null ? null : html`<p><a rel="next" href="${href}">${label}</a></p>`;
}

/** A fact with its name. */
export type Fact = readonly [name: string, value: Html | string | null];

/** A list of facts. Facts whose value is null are left out. */
export function renderFacts(facts: readonly Fact[]): Html {
  return html`<dl class="facts">
${facts.map(([name, value]) => (value === null ? html`` : html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`))}</dl>`;
}

/** A badge for an entity of a sandbox organization. Null for a live one. */
export function renderSandbox(sandbox: boolean | undefined): Html | null {
  return sandbox ? html` <span class="badge waiting">Sandbox</span>` : null;
}

const GOOD_STATUSES = ["Active", "Live", "Delivered"];
const BAD_STATUSES = ["Voided", "Suspended", "Failed", "Revoked"];

/** A badge with a status, for example of a voucher, a reservation, a delivery or a key. */
export function renderStatus(status: string, shown = status): Html {
  const look = GOOD_STATUSES.includes(status) ? "good" : BAD_STATUSES.includes(status) ? "bad" : "plain";
  return html`<span class="badge ${look}">${shown}</span>`;
}

export const { usd: USD, count: COUNT } = ENGLISH;

/** A duration in a suitable unit, with two digits or with all digits before the decimal point. */
export function describeMs(ms: number): string {
  const units = [
    ["ms", 1, 1_000],
    ["s", 1_000, 120_000],
    ["min", 60_000, 7_200_000],
    ["h", 3_600_000, Number.POSITIVE_INFINITY],
  ] as const;
  const [unit, length] = units.find(([, , below]) => ms < below) ?? units[3];
  const value = ms / length;
  return `${COUNT.format(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))} ${unit}`;
}
