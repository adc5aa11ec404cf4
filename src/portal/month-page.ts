import type { RedemptionSum } from "../core/redeem/db/redemptions.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTable } from "../pages/operator-frame.ts";
import { layOutForPortal, type PortalCaller, portalPath } from "./portal-frame.ts";
import { dayOf, renderSumTables, renderTotal, startOfDay, total } from "./redemption-pages.ts";

/** The start of a month, `YYYY-MM`, or of the month that is some months later. */
export function startOfMonth(month: string, monthsLater = 0): Date {
  const start = startOfDay(`${month}-01`);
  start.setUTCMonth(start.getUTCMonth() + monthsLater);
  return start;
}

/** The month that contains a moment: `YYYY-MM` in UTC. */
export function monthOf(at: Date): string {
  return dayOf(at).slice(0, 7);
}

/** A month's redemptions by day, product and key, up to the time before which they are final. */
export function renderMonthPage(
  site: Site,
  caller: PortalCaller,
  { month, sums, completeUntil }: { month: string; sums: readonly RedemptionSum[]; completeUntil: Date },
): Html {
  const path = portalPath(site, "redemptions");
  const [from, to] = [startOfMonth(month), startOfMonth(month, 1)];
  const { locale } = caller;
  const { t, markup } = locale;
  const title = t("portal.ofMonth", { month });
  const sumsOf = Map.groupBy(sums, ({ day }) => day);
  const days: string[] = [];
  for (let at = from; at < to && at < completeUntil; at = startOfDay(dayOf(at), 1)) days.push(dayOf(at));
  const main = html`<h1>${title}</h1>
<p>${renderTotal(sums, locale)} \
${to <= completeUntil ? t("portal.inMonth") : markup("portal.monthEnds", { time: locale.time(completeUntil) })}</p>
<p><a href="${path}.csv?from=${from.toISOString()}&to=${to.toISOString()}">${t("portal.monthCsv")}</a></p>
<form class="check" action="${path}" method="get"><label for="month">${t("portal.anotherMonth")}</label>
<div class="row"><input id="month" name="month" type="month" value="${month}" placeholder="2026-11" required> \
<button type="submit">${t("portal.show")}</button></div></form>
<p><a href="${path}?month=${monthOf(startOfMonth(month, -1))}">${t("portal.monthBefore")}</a> · \
<a href="${path}?month=${monthOf(to)}">${t("portal.monthAfter")}</a></p>
${renderTable(
  title,
  [t("portal.columns.day"), t("portal.columns.redemptions"), t("portal.columns.sum")],
  days.map((day) => [html`<a href="${path}?day=${day}">${day}</a>`, ...total(sumsOf.get(day) ?? [], locale)]),
)}
${renderSumTables(title, sums, locale)}`;
  return layOutForPortal(site, caller, title, main);
}
