import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { addMonths, daysBetween, startOfDay, startOfMonth } from "./calendar.ts";
import { layOutForPortal, type PortalCaller, portalPath } from "./portal-frame.ts";
import { type DaySum, renderDays, renderSumTables, renderTotal } from "./redemption-pages.ts";

/** A month's redemptions by day, product and key, up to the time before which they are final. */
export function renderMonthPage(
  site: Site,
  caller: PortalCaller,
  { month, sums, completeUntil }: { month: string; sums: readonly DaySum[]; completeUntil: Date },
): Html {
  const path = portalPath(site, "redemptions");
  const { locale } = caller;
  const next = addMonths(month, 1);
  const [from, to] = [startOfMonth(month, locale), startOfMonth(next, locale)];
  const { t, markup } = locale;
  const title = t("portal.ofMonth", { month: locale.month(month) });
  const statement = t("portal.statement", { month: locale.month(month) });
  const days = daysBetween(`${month}-01`, `${next}-01`);
  const begun = days.filter((day) => startOfDay(day, locale) < completeUntil);
  const main = html`<h1>${title}</h1>
<p>${renderTotal(sums, locale)} \
${to <= completeUntil ? t("portal.inMonth") : markup("portal.monthEnds", { time: locale.time(completeUntil) })}</p>
<p class="fine">${t("portal.zone", { zone: locale.timeZone })}</p>
<p class="screen">\
<a href="${path}.csv?from=${from.toISOString()}&to=${to.toISOString()}">${t("portal.monthCsv")}</a> · \
<a href="${portalPath(site, "statement")}?month=${month}">${statement}</a></p>
<form class="check" action="${path}" method="get"><label for="month">${t("portal.anotherMonth")}</label>
<div class="row"><input id="month" name="month" type="month" value="${month}" placeholder="2026-11" required> \
<button type="submit">${t("portal.show")}</button></div></form>
<p class="screen"><a href="${path}?month=${addMonths(month, -1)}">${t("portal.monthBefore")}</a>\
${to <= completeUntil ? html` · <a href="${path}?month=${next}">${t("portal.monthAfter")}</a>` : null}</p>
${renderDays(site, title, begun, sums, locale)}
${renderSumTables(title, sums, locale)}`;
  return layOutForPortal(site, caller, title, main);
}
