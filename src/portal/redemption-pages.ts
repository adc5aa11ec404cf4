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
  const { t } = locale;
  const [shown, value] = total(sums, locale);
  return html`<strong>${t("portal.total", { shown, count: add(sums, "redemptions"), value })}</strong>`;
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
  const { t, markup } = locale;
  const highest = locale.count.format(Math.max(...bars.map(({ count }) => count)));
  const main = html`<h1><bdi>${name}</bdi></h1>
<p class="lead">${markup("portal.upTo", { time: locale.time(completeUntil) })} ${t("portal.utc")}</p>
${renderPeriod(
  "today",
  t("portal.today", { day: today }),
  sumsOf.get(today) ?? [],
  locale,
  linkDay(today, t("portal.eachOfToday")),
)}
${renderPeriod(
  "yesterday",
  t("portal.yesterday", { day: yesterday }),
  sumsOf.get(yesterday) ?? [],
  locale,
  linkDay(yesterday, t("portal.eachOfYesterday")),
)}
${renderPeriod(
  "month",
  t("portal.month", { month: today.slice(0, 7) }),
  sums.filter(({ day }) => day.slice(0, 7) === today.slice(0, 7)),
  locale,
  html`<a href="${portalPath(site, "redemptions")}?month=${today.slice(0, 7)}">${t("portal.eachOfMonth")}</a>`,
)}
${renderSection(
  "days",
  t("portal.days", { count: PLOT_DAYS }),
  renderBars(t("portal.plot"), bars),
  html`<p class="fine">${t("portal.highest", { until: today, count: highest })}</p>`,
  renderTable(
    t("portal.perDay"),
    [t("portal.columns.day"), t("portal.columns.redemptions"), t("portal.columns.sum")],
    days.map((day) => [linkDay(day, day), ...total(sumsOf.get(day) ?? [], locale)]),
  ),
)}`;
  return layOutForPortal(site, caller, t("portal.overview"), main);
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
  return [
    renderSums(title, "product", sums, locale, ({ productName }) => html`<bdi>${productName}</bdi>`),
    renderSums(title, "key", sums, locale, renderKey),
  ];
}

/** A table with a row for each product or key, the largest values first. */
function renderSums(
  title: string,
  column: "product" | "key",
  sums: readonly RedemptionSum[],
  locale: Locale,
  renderName: (sum: RedemptionSum) => Html,
): Html {
  const groups = [...Map.groupBy(sums, (sum) => sum[`${column}Id`]).values()].toSorted(
    (a, b) => add(b, "cents") - add(a, "cents"),
  );
  const rest = groups.slice(ROWS_MAX);
  const rows = groups
    .slice(0, ROWS_MAX)
    .map((group) => [...group.slice(0, 1).map(renderName), ...total(group, locale)]);
  const { t } = locale;
  if (rest.length > 0)
    rows.push([t("portal.others", { count: locale.count.format(rest.length) }), ...total(rest.flat(), locale)]);
  return renderTable(
    t(column === "product" ? "portal.byProduct" : "portal.byKey", { period: title }),
    ([column, "redemptions", "sum"] as const).map((name) => t(`portal.columns.${name}`)),
    rows,
  );
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
  const { t, markup } = locale;
  const main = html`<h1>${t("portal.ofDay", { day })}</h1>
<p>${renderTotal(sums, locale)} \
${to <= page.completeUntil ? t("portal.onDay") : markup("portal.endsAt", { time: locale.time(page.completeUntil) })}</p>
<p><a href="${path}.csv?from=${from}&to=${to}">${t("portal.csv")}</a></p>
<form class="check" action="${path}" method="get"><label for="day">${t("portal.anotherDay")}</label>
<div class="row"><input id="day" name="day" type="date" value="${day}" required> \
<button type="submit">${t("portal.show")}</button></div></form>
<p><a href="${path}?day=${dayOf(startOfDay(day, -1))}">${t("portal.dayBefore")}</a> · \
<a href="${path}?day=${to.slice(0, 10)}">${t("portal.dayAfter")}</a> · \
<a href="${path}?month=${day.slice(0, 7)}">${t("portal.wholeMonth")}</a></p>
${renderTable(
  t("portal.ofDay", { day }),
  [
    t("portal.columns.redeemed"),
    t("portal.columns.reference"),
    t("portal.columns.product"),
    t("portal.columns.value"),
    t("portal.columns.redeemCode"),
    t("portal.columns.key"),
  ],
  page.redemptions.map((redemption) => [
    locale.time(redemption.redeemedAt),
    html`<a href="${orderPath(site, redemption.externalRef)}"><bdi>${redemption.externalRef}</bdi></a>`,
    html`<bdi>${redemption.productName}</bdi>`,
    locale.usd.format(redemption.discountPriceUsd),
    html`<code>${redemption.redeemCode}</code>`,
    renderKey(redemption),
  ]),
  t("portal.none"),
)}
${linkNext(
  hasNext ? `${path}?day=${day}&cursor=${encodeURIComponent(page.nextCursor ?? "")}` : null,
  t("portal.next"),
)}`;
  return layOutForPortal(site, caller, t("portal.ofDay", { day }), main);
}
