import type { RedemptionsResponse } from "../core/redeem/api/redemptions.ts";
import type { RedemptionSum } from "../core/redeem/db/redemptions.ts";
import { renderBars } from "../pages/bar-chart.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";
import { linkNext, renderSection, renderTable } from "../pages/operator-frame.ts";
import { layOutForPortal, orderPath, type PortalCaller, portalPath, renderKey } from "./portal-frame.ts";

/** Maximum rows in a table of sums. One more row sums up the rest, so that the table adds up to the total. */
const ROWS_MAX = 20;
/** Days of the plot. */
const PLOT_DAYS = 30;
/** Days of sums that the overview reads: enough for the plot and for the longest month. */
export const OVERVIEW_DAYS = 31;
/** Maximum redemptions on one page of a day. It keeps the page below 100 kB. */
export const DAY_PAGE_MAX = 100;

/** The day that contains a moment: `YYYY-MM-DD` in UTC. */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The start of a day, or of the day that is some days later. */
export function startOfDay(day: string, daysLater = 0): Date {
  return new Date(Date.parse(day) + daysLater * 86_400_000);
}

function add(sums: readonly RedemptionSum[], field: "redemptions" | "cents"): number {
  return sums.reduce((total, sum) => total + sum[field], 0);
}

/** The number and the value of redemptions, as cells. Exact below 2^53 cents. */
export function total(sums: readonly RedemptionSum[], { count, usd }: Locale): [redemptions: string, value: string] {
  return [count.format(add(sums, "redemptions")), usd.format(add(sums, "cents") / 100)];
}

export function renderTotal(sums: readonly RedemptionSum[], locale: Locale): Html {
  const { portal } = locale.texts;
  return html`<strong>${portal.total(add(sums, "redemptions"), ...total(sums, locale))}</strong>`;
}

/** Today, yesterday and this month by product and by key; and the last thirty days as a plot and a table. */
export function renderOverview(
  site: Site,
  caller: PortalCaller,
  { name, sums, completeUntil }: { name: string; sums: readonly RedemptionSum[]; completeUntil: Date },
): Html {
  const days = Array.from({ length: PLOT_DAYS }, (_, ago) => dayOf(startOfDay(dayOf(completeUntil), -ago)));
  const [today = "", yesterday = ""] = days;
  const sumsOf = Map.groupBy(sums, ({ day }) => day);
  const linkDay = (day: string, text: string) =>
    html`<a href="${portalPath(site, "redemptions")}?day=${day}">${text}</a>`;
  const bars = days.toReversed().map((day) => ({ label: day, count: add(sumsOf.get(day) ?? [], "redemptions") }));
  const { locale } = caller;
  const { portal } = locale.texts;
  const { columns } = portal;
  const highest = locale.count.format(Math.max(...bars.map(({ count }) => count)));
  const main = html`<h1><bdi>${name}</bdi></h1>
<p class="lead">${portal.upTo(locale.time(completeUntil))} ${portal.utc}</p>
${renderPeriod("today", portal.today(today), sumsOf.get(today) ?? [], locale, linkDay(today, portal.eachOfToday))}
${renderPeriod(
  "yesterday",
  portal.yesterday(yesterday),
  sumsOf.get(yesterday) ?? [],
  locale,
  linkDay(yesterday, portal.eachOfYesterday),
)}
${renderPeriod(
  "month",
  portal.month(today.slice(0, 7)),
  sums.filter(({ day }) => day.slice(0, 7) === today.slice(0, 7)),
  locale,
  html`<a href="${portalPath(site, "redemptions")}?month=${today.slice(0, 7)}">${portal.eachOfMonth}</a>`,
)}
${renderSection(
  "days",
  portal.days(PLOT_DAYS),
  renderBars(portal.plot, bars),
  html`<p class="fine">${portal.highest(today, highest)}</p>`,
  renderTable(
    portal.perDay,
    [columns.day, columns.redemptions, columns.sum],
    days.map((day) => [linkDay(day, day), ...total(sumsOf.get(day) ?? [], locale)]),
  ),
)}`;
  return layOutForPortal(site, caller, portal.overview, main);
}

/** The sums of a day or a month, by product and by key. */
function renderPeriod(
  id: string,
  title: string,
  sums: readonly RedemptionSum[],
  locale: Locale,
  link: Html | null = null,
): Html {
  const lead = html`<p>${renderTotal(sums, locale)} ${link}</p>\n`;
  return renderSection(id, title, lead, ...renderSumTables(title, sums, locale));
}

/** A table by product and a table by key. No table without redemptions. */
export function renderSumTables(title: string, sums: readonly RedemptionSum[], locale: Locale): Html[] {
  if (sums.length === 0) return [];
  const { product, key } = locale.texts.portal.columns;
  return [
    renderSums(title, product, sums, "productId", locale, ({ productName }) => html`<bdi>${productName}</bdi>`),
    renderSums(title, key, sums, "keyId", locale, renderKey),
  ];
}

/** A table with a row for each product or key, the largest values first. */
function renderSums(
  title: string,
  column: string,
  sums: readonly RedemptionSum[],
  groupBy: "productId" | "keyId",
  locale: Locale,
  renderName: (sum: RedemptionSum) => Html,
): Html {
  const groups = [...Map.groupBy(sums, (sum) => sum[groupBy]).values()].toSorted(
    (a, b) => add(b, "cents") - add(a, "cents"),
  );
  const rest = groups.slice(ROWS_MAX);
  const rows = groups
    .slice(0, ROWS_MAX)
    .map((group) => [...group.slice(0, 1).map(renderName), ...total(group, locale)]);
  const { portal } = locale.texts;
  if (rest.length > 0) rows.push([portal.others(locale.count.format(rest.length)), ...total(rest.flat(), locale)]);
  return renderTable(portal.by(title, column), [column, portal.columns.redemptions, portal.columns.sum], rows);
}

/** One page of a day's redemptions, with the total of the day so far. */
export function renderDayPage(
  site: Site,
  caller: PortalCaller,
  { day, sums, page }: { day: string; sums: readonly RedemptionSum[]; page: RedemptionsResponse },
): Html {
  const path = portalPath(site, "redemptions");
  const [from, to] = [startOfDay(day).toISOString(), startOfDay(day, 1).toISOString()];
  const hasNext = page.redemptions.length === DAY_PAGE_MAX && page.nextCursor !== null;
  const { locale } = caller;
  const { portal } = locale.texts;
  const { columns } = portal;
  const main = html`<h1>${portal.ofDay(day)}</h1>
<p>${renderTotal(sums, locale)} \
${to <= page.completeUntil ? portal.onDay : portal.endsAt(locale.time(page.completeUntil))}</p>
<p><a href="${path}.csv?from=${from}&to=${to}">${portal.csv}</a></p>
<form class="check" action="${path}" method="get"><label for="day">${portal.anotherDay}</label>
<div class="row"><input id="day" name="day" type="date" value="${day}" required> <button type="submit">${portal.show}\
</button></div></form>
<p><a href="${path}?day=${dayOf(startOfDay(day, -1))}">${portal.dayBefore}</a> · \
<a href="${path}?day=${to.slice(0, 10)}">${portal.dayAfter}</a> · \
<a href="${path}?month=${day.slice(0, 7)}">${portal.wholeMonth}</a></p>
${renderTable(
  portal.ofDay(day),
  [columns.redeemed, columns.reference, columns.product, columns.value, columns.redeemCode, columns.key],
  page.redemptions.map((redemption) => [
    locale.time(redemption.redeemedAt),
    html`<a href="${orderPath(site, redemption.externalRef)}"><bdi>${redemption.externalRef}</bdi></a>`,
    html`<bdi>${redemption.productName}</bdi>`,
    locale.usd.format(redemption.discountPriceUsd),
    html`<code>${redemption.redeemCode}</code>`,
    renderKey(redemption),
  ]),
  portal.none,
)}
${linkNext(hasNext ? `${path}?day=${day}&cursor=${encodeURIComponent(page.nextCursor ?? "")}` : null, portal.next)}`;
  return layOutForPortal(site, caller, portal.ofDay(day), main);
}
