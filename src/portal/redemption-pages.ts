import type { RedemptionsResponse } from "../core/redeem/api/redemptions.ts";
import type { RedemptionSum } from "../core/redeem/db/redemptions.ts";
import { renderBars } from "../pages/bar-chart.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";
import { linkNext, renderSection, renderTable } from "../pages/operator-frame.ts";
import { addDays, dayOf, daysBetween, startOfDay } from "./calendar.ts";
import { layOutForPortal, orderPath, type PortalCaller, portalPath, renderKey } from "./portal-frame.ts";

/** Maximum number of rows in a table of sums, without the row with the sum of the rest. */
const ROWS_MAX = 20;
const PLOT_DAYS = 30;
/** Number of days for which the overview reads sums. Enough for the plot and for the longest month. */
export const OVERVIEW_DAYS = 31;
/** Maximum number of redemptions on one page of a day. It keeps the page below 100 kB. */
export const DAY_PAGE_MAX = 100;

/** The sum of one product and key. */
export type Sum = Pick<
  RedemptionSum,
  "brand" | "productId" | "productName" | "keyId" | "keyLabel" | "redemptions" | "cents"
>;

/** The sum of one day, product and key. */
export type DaySum = Sum & { day: string };

function add(sums: readonly Sum[], field: "redemptions" | "cents"): number {
  return sums.reduce((total, sum) => total + sum[field], 0);
}

/** The number and the value of redemptions, as table cells. Exact below 2^53 cents. */
function total(sums: readonly Sum[], { count, usd }: Locale): [redemptions: string, value: string] {
  return [count.format(add(sums, "redemptions")), usd.format(add(sums, "cents") / 100)];
}

export function renderTotal(sums: readonly Sum[], locale: Locale): Html {
  const { t } = locale;
  const [shown, value] = total(sums, locale);
  return html`<strong>${t("portal.total", { shown, count: add(sums, "redemptions"), value })}</strong>`;
}

/** Today, yesterday and this month by product and by key, and the last thirty days as a plot and a table. */
export function renderOverview(
  site: Site,
  caller: PortalCaller,
  { sums, completeUntil }: { sums: readonly DaySum[]; completeUntil: Date },
): Html {
  const { locale } = caller;
  const { t, markup } = locale;
  const today = dayOf(completeUntil, locale);
  const yesterday = addDays(today, -1);
  const month = today.slice(0, 7);
  const days = daysBetween(addDays(today, 1 - PLOT_DAYS), addDays(today, 1));
  const linkEach = (what: string, text: string) =>
    html`<a class="screen" href="${portalPath(site, "redemptions")}?${what}">${text}</a>`;
  const main = html`<h1>${t("portal.overview")}</h1>
<p class="lead">${markup("portal.upTo", { time: locale.time(completeUntil) })} \
${t("portal.zone", { zone: locale.timeZone })}</p>
${renderPeriod(
  "today",
  t("portal.today", { day: locale.day(today) }),
  sums.filter(({ day }) => day === today),
  locale,
  linkEach(`day=${today}`, t("portal.eachOfToday")),
)}
${renderPeriod(
  "yesterday",
  t("portal.yesterday", { day: locale.day(yesterday) }),
  sums.filter(({ day }) => day === yesterday),
  locale,
  linkEach(`day=${yesterday}`, t("portal.eachOfYesterday")),
)}
${renderPeriod(
  "month",
  t("portal.month", { month: locale.month(month) }),
  sums.filter(({ day }) => day.startsWith(month)),
  locale,
  linkEach(`month=${month}`, t("portal.eachOfMonth")),
)}
${renderSection(
  "days",
  t("portal.days", { count: PLOT_DAYS }),
  renderPlot(days, sums, locale),
  renderDays(site, t("portal.perDay"), days.toReversed(), sums, locale),
)}`;
  return layOutForPortal(site, caller, t("portal.overview"), main);
}

/** A bar for each day. The last day, and each seventh day before it, are labelled with their dates. */
function renderPlot(days: readonly string[], sums: readonly DaySum[], locale: Locale): Html {
  const sumsOf = Map.groupBy(sums, ({ day }) => day);
  const bars = days.map((day, at) => ({
    label: locale.day(day),
    tick: (days.length - 1 - at) % 7 === 0 ? locale.day(day, "tick") : undefined,
    count: add(sumsOf.get(day) ?? [], "redemptions"),
  }));
  return renderBars(locale.t("portal.plot"), bars, locale.count);
}

/** A table with a row for each day. */
export function renderDays(
  site: Site,
  caption: string,
  days: readonly string[],
  sums: readonly DaySum[],
  locale: Locale,
): Html {
  const { t } = locale;
  const sumsOf = Map.groupBy(sums, ({ day }) => day);
  const path = portalPath(site, "redemptions");
  return renderTable(
    caption,
    [t("portal.columns.day"), t("portal.columns.redemptions"), t("portal.columns.sum")],
    days.map((day) => [
      html`<a class="day" href="${path}?day=${day}">${locale.day(day)}</a>`,
      ...total(sumsOf.get(day) ?? [], locale),
    ]),
    t("portal.statementFuture"),
    {
      total: totalRow(
        days.flatMap((day) => sumsOf.get(day) ?? []),
        locale,
      ),
    },
  );
}

function totalRow(sums: readonly Sum[], locale: Locale): (Html | string)[] {
  return [locale.t("portal.sumOfAll"), ...total(sums, locale)];
}

function renderPeriod(
  id: string,
  title: string,
  sums: readonly DaySum[],
  locale: Locale,
  link: Html | null = null,
): Html {
  const lead = html`<p>${renderTotal(sums, locale)} ${link}</p>\n`;
  return renderSection(id, title, lead, ...renderSumTables(title, sums, locale));
}

/** The columns by which tables of sums can group. */
const GROUPINGS = {
  brand: { caption: "portal.byBrand", idOf: ({ brand }: Sum) => brand, name: ({ brand }: Sum) => isolate(brand) },
  product: {
    caption: "portal.byProduct",
    idOf: ({ productId }: Sum) => productId,
    name: ({ productName }: Sum) => isolate(productName),
  },
  key: { caption: "portal.byKey", idOf: ({ keyId }: Sum) => keyId, name: renderKey },
} as const;

const isolate = (name: string) => html`<bdi>${name}</bdi>`;

/** One table per grouping. By default, one by product and one by key. No tables if there are no redemptions. */
export function renderSumTables(
  title: string,
  sums: readonly Sum[],
  locale: Locale,
  groupings: readonly (keyof typeof GROUPINGS)[] = ["product", "key"],
  rowsMax = ROWS_MAX,
): Html[] {
  return sums.length === 0 ? [] : groupings.map((column) => renderSums(title, column, sums, locale, rowsMax));
}

/** A table with one row per brand, product or key, largest values first. */
function renderSums(
  title: string,
  column: keyof typeof GROUPINGS,
  sums: readonly Sum[],
  locale: Locale,
  rowsMax: number,
): Html {
  const { caption, idOf, name } = GROUPINGS[column];
  const groups = [...Map.groupBy(sums, idOf).values()].toSorted((a, b) => add(b, "cents") - add(a, "cents"));
  const rest = groups.slice(rowsMax);
  const rows = groups.slice(0, rowsMax).map((group) => [...group.slice(0, 1).map(name), ...total(group, locale)]);
  const { t } = locale;
  if (rest.length > 0)
    rows.push([t("portal.others", { count: locale.count.format(rest.length) }), ...total(rest.flat(), locale)]);
  return renderTable(
    t(caption, { period: title }),
    ([column, "redemptions", "sum"] as const).map((each) => t(`portal.columns.${each}`)),
    rows,
    "",
    { total: totalRow(sums, locale) },
  );
}

/** One page of a day's redemptions, with the total of the day so far. */
export function renderDayPage(
  site: Site,
  caller: PortalCaller,
  { day, sums, page }: { day: string; sums: readonly DaySum[]; page: RedemptionsResponse },
): Html {
  const path = portalPath(site, "redemptions");
  const { locale } = caller;
  const { t, markup } = locale;
  const [from, to] = [day, addDays(day, 1)].map((each) => startOfDay(each, locale).toISOString()) as [string, string];
  const hasNext = page.redemptions.length === DAY_PAGE_MAX && page.nextCursor !== null;
  const title = t("portal.ofDay", { day: locale.day(day) });
  const main = html`<h1>${title}</h1>
<p>${renderTotal(sums, locale)} \
${to <= page.completeUntil ? t("portal.onDay") : markup("portal.endsAt", { time: locale.time(page.completeUntil) })}</p>
<p class="fine">${t("portal.zone", { zone: locale.timeZone })}</p>
<p class="screen"><a href="${path}.csv?from=${from}&to=${to}">${t("portal.csv")}</a></p>
<form class="check" action="${path}" method="get"><label for="day">${t("portal.anotherDay")}</label>
<div class="row"><input id="day" name="day" type="date" value="${day}" required> \
<button type="submit">${t("portal.show")}</button></div></form>
<p class="screen"><a href="${path}?day=${addDays(day, -1)}">${t("portal.dayBefore")}</a> · \
${to <= page.completeUntil ? html`<a href="${path}?day=${addDays(day, 1)}">${t("portal.dayAfter")}</a> · ` : null}\
<a href="${path}?month=${day.slice(0, 7)}">${t("portal.wholeMonth")}</a></p>
${renderTable(
  title,
  [
    t("portal.columns.redeemed"),
    t("portal.columns.reference"),
    t("portal.columns.product"),
    t("portal.columns.price"),
    t("portal.columns.redeemCode"),
    t("portal.columns.key"),
  ],
  page.redemptions.map((redemption) => [
    locale.timeOfDay(redemption.redeemedAt),
    html`<a href="${orderPath(site, redemption.externalRef)}"><bdi>${redemption.externalRef}</bdi></a>`,
    html`<bdi>${redemption.productName}</bdi>`,
    locale.usd.format(redemption.discountPriceUsd),
    html`<code>${redemption.redeemCode}</code>`,
    renderKey(redemption),
  ]),
  t("portal.noRedemptions"),
  { stacks: true },
)}
${linkNext(
  hasNext ? `${path}?day=${day}&cursor=${encodeURIComponent(page.nextCursor ?? "")}` : null,
  t("portal.next"),
)}`;
  return layOutForPortal(site, caller, title, main);
}
