import type { Statement } from "../core/redeem/api/statement.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";
import { renderFacts } from "../pages/operator-frame.ts";
import { addMonths } from "./calendar.ts";
import { layOutForPortal, type PortalCaller, portalPath } from "./portal-frame.ts";
import { renderSumTables, renderTotal } from "./redemption-pages.ts";

/** Maximum number of rows in a table, without the rest and the total. Three such tables fit on one side of A4. */
const ROWS_MAX = 8;

/** The statement of a month by brand, product and key, on one side of A4. */
export function renderStatementPage(site: Site, caller: PortalCaller, statement: Statement): Html {
  const { month, lines, rowsHash, completeUntil } = statement;
  const path = portalPath(site, "statement");
  const { locale } = caller;
  const { t } = locale;
  const title = t("portal.statement", { month: locale.month(month) });
  const sums = lines.map(({ amountUsd, ...line }) => ({ ...line, cents: Math.round(amountUsd * 100) }));
  const next = addMonths(month, 1);
  const timeOf = (at: string | null) => at && locale.time(at);
  const main = html`<div class="statement"><h1>${title}</h1>
<p>${renderTotal(sums, locale)}. ${describeState(statement, locale)}</p>
<p class="fine">${t("portal.statementZone")}</p>
<p class="screen"><a href="${path}.csv?month=${month}">${t("portal.statementCsv")}</a> · \
<a href="${portalPath(site, "redemptions")}?month=${month}">${t("portal.eachOfMonth")}</a></p>
<p class="screen"><a href="${path}?month=${addMonths(month, -1)}">${t("portal.monthBefore")}</a>\
${next <= completeUntil ? html` · <a href="${path}?month=${next}">${t("portal.monthAfter")}</a>` : null}</p>
${renderFacts([
  [t("portal.facts.counted"), locale.count.format(statement.redemptions)],
  [t("portal.facts.first"), timeOf(statement.firstRedeemedAt)],
  [t("portal.facts.last"), timeOf(statement.lastRedeemedAt)],
  [t("portal.facts.rowsHash"), rowsHash && html`<code>${rowsHash}</code>`],
])}
${renderSumTables(title, sums, locale, ["brand", "product", "key"], ROWS_MAX)}</div>`;
  return layOutForPortal(site, caller, title, main);
}

/** Whether a statement is final, and if not, what is still missing. Compares times and months in UTC as text. */
function describeState({ month, final, completeUntil }: Statement, { t, markup, time }: Locale): Html | string {
  if (final) return t("portal.statementFinal");
  if (completeUntil < month) return t("portal.statementFuture");
  if (completeUntil >= addMonths(month, 1)) return t("portal.statementPending");
  return markup("portal.statementEnds", { time: time(completeUntil) });
}
