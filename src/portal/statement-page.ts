import type { Statement } from "../core/redeem/api/statement.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderFacts } from "../pages/operator-frame.ts";
import { layOutForPortal, type PortalCaller, portalPath } from "./portal-frame.ts";
import { renderSumTables, renderTotal } from "./redemption-pages.ts";

/** Maximum number of rows in a table, not counting the rest and the total. Three such tables fit on one side of A4. */
const ROWS_MAX = 8;

/** The statement of a month by brand, product and key, on one side of A4. */
export function renderStatementPage(site: Site, caller: PortalCaller, statement: Statement): Html {
  const { month, lines, rowsHash } = statement;
  const { locale } = caller;
  const { t, markup } = locale;
  const title = t("portal.statement", { month: locale.month(month) });
  const sums = lines.map(({ amountUsd, ...line }) => ({ ...line, cents: Math.round(amountUsd * 100) }));
  const timeOf = (at: string | null) => at && locale.time(at);
  const until = locale.time(statement.completeUntil);
  const main = html`<div class="statement"><h1>${title}</h1>
<p>${renderTotal(sums, locale)}. \
${statement.final ? t("portal.statementFinal") : markup("portal.statementEnds", { time: until })}</p>
<p class="fine">${t("portal.statementZone")}</p>
<p class="screen"><a href="${portalPath(site, "statement.csv")}?month=${month}">${t("portal.statementCsv")}</a> · \
<a href="${portalPath(site, "redemptions")}?month=${month}">${t("portal.eachOfMonth")}</a></p>
${renderFacts([
  [t("portal.facts.counted"), locale.count.format(statement.redemptions)],
  [t("portal.facts.first"), timeOf(statement.firstRedeemedAt)],
  [t("portal.facts.last"), timeOf(statement.lastRedeemedAt)],
  [t("portal.facts.rowsHash"), rowsHash && html`<code>${rowsHash}</code>`],
])}
${renderSumTables(title, sums, locale, ["brand", "product", "key"], ROWS_MAX)}</div>`;
  return layOutForPortal(site, caller, title, main);
}
