import type { RedemptionsResponse } from "../../contract/redemptions.ts";
import type { RedemptionSum } from "../../db/redemptions.ts";
import { COUNT, linkNext, renderSection, renderTable, USD } from "../ops/operator-frame.ts";
import { renderBars } from "../pages/bar-chart.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTime } from "../pages/time.ts";
import { layOutForPortal, type PortalCaller, portalPath, renderKey } from "./portal-frame.ts";

/** Rows of one table of sums. The rest is one row more, so that the table adds up to the total. */
const ROWS_MAX = 20;
/** Days of the plot. */
const PLOT_DAYS = 30;
/** Days of sums that the overview needs: those of the plot, and those of the longest month. */
export const OVERVIEW_DAYS = 31;
/** Redemptions on one page of a day. The page stays below 100 kB. */
export const DAY_PAGE_MAX = 100;

/** The day of a moment: `YYYY-MM-DD` in UTC. */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The first moment of a day, or of the day that is some days later. */
export function startOfDay(day: string, daysLater = 0): Date {
  return new Date(Date.parse(day) + daysLater * 86_400_000);
}

function add(sums: readonly RedemptionSum[], field: "redemptions" | "cents"): number {
  return sums.reduce((total, sum) => total + sum[field], 0);
}

/** Their number and value, as cells. Exact below 2^53 cents. */
function total(sums: readonly RedemptionSum[]): [redemptions: string, value: string] {
  return [COUNT.format(add(sums, "redemptions")), USD.format(add(sums, "cents") / 100)];
}

function renderTotal(sums: readonly RedemptionSum[]): Html {
  const [redemptions, value] = total(sums);
  return html`<strong>${redemptions} ${redemptions === "1" ? "redemption" : "redemptions"}, ${value}</strong>`;
}

/** Today, yesterday and this month by product and by key, and thirty days as a plot and as a table. */
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
  const main = html`<h1><bdi>${name}</bdi></h1>
<p class="lead">Redemptions up to ${renderTime(completeUntil)}. Days and months are in UTC.</p>
${renderPeriod("today", `Today, ${today}`, sumsOf.get(today) ?? [], linkDay(today, "Each of today"))}
${renderPeriod("yesterday", `Yesterday, ${yesterday}`, sumsOf.get(yesterday) ?? [], linkDay(yesterday, "Each of yesterday"))}
${renderPeriod(
  "month",
  `This month, ${today.slice(0, 7)}`,
  sums.filter(({ day }) => day.slice(0, 7) === today.slice(0, 7)),
)}
${renderSection(
  "days",
  `${PLOT_DAYS} days`,
  renderBars("Redemptions per day, with the numbers of the table", bars),
  html`<p class="fine">Redemptions per day until ${today}. The highest bar is ${COUNT.format(Math.max(...bars.map(({ count }) => count)))}.</p>`,
  renderTable(
    "Redemptions per day",
    ["Day", "Redemptions", "Sum"],
    days.map((day) => [linkDay(day, day), ...total(sumsOf.get(day) ?? [])]),
  ),
)}`;
  return layOutForPortal(site, caller, "Overview", main);
}

/** The sums of a day or a month, by product and by key. */
function renderPeriod(id: string, title: string, sums: readonly RedemptionSum[], link: Html | null = null): Html {
  const tables = [
    renderSums(title, "Product", sums, "productId", ({ productName }) => html`<bdi>${productName}</bdi>`),
    renderSums(title, "Key", sums, "keyId", renderKey),
  ];
  return renderSection(id, title, html`<p>${renderTotal(sums)} ${link}</p>\n`, ...(sums.length === 0 ? [] : tables));
}

/** A table with a row for each product or key, the largest values first. */
function renderSums(
  title: string,
  column: string,
  sums: readonly RedemptionSum[],
  groupBy: "productId" | "keyId",
  renderName: (sum: RedemptionSum) => Html,
): Html {
  const groups = [...Map.groupBy(sums, (sum) => sum[groupBy]).values()].toSorted(
    (a, b) => add(b, "cents") - add(a, "cents"),
  );
  const rest = groups.slice(ROWS_MAX);
  const rows = groups.slice(0, ROWS_MAX).map((group) => [...group.slice(0, 1).map(renderName), ...total(group)]);
  if (rest.length > 0) rows.push([`${COUNT.format(rest.length)} others`, ...total(rest.flat())]);
  return renderTable(`${title}, by ${column.toLowerCase()}`, [column, "Redemptions", "Sum"], rows);
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
  const main = html`<h1>Redemptions of ${day}</h1>
<p>${renderTotal(sums)} ${to <= page.completeUntil ? "on this day in UTC." : html`up to ${renderTime(page.completeUntil)}. The day ends at 00:00 UTC.`}</p>
<p><a href="${path}.csv?from=${from}&to=${to}">The day as CSV</a></p>
<form class="check" action="${path}" method="get"><label for="day">Another day</label>
<div class="row"><input id="day" name="day" type="date" value="${day}" required> <button type="submit">Show</button></div></form>
<p><a href="${path}?day=${dayOf(startOfDay(day, -1))}">The day before</a> · <a href="${path}?day=${to.slice(0, 10)}">The day after</a></p>
${renderTable(
  `Redemptions of ${day}`,
  ["Redeemed", "Reference", "Product", "Value", "Redeem code", "Key"],
  page.redemptions.map((redemption) => [
    renderTime(redemption.redeemedAt),
    html`<a href="${portalPath(site, "orders", redemption.externalRef)}"><bdi>${redemption.externalRef}</bdi></a>`,
    html`<bdi>${redemption.productName}</bdi>`,
    USD.format(redemption.discountPriceUsd),
    html`<code>${redemption.redeemCode}</code>`,
    renderKey(redemption),
  ]),
)}
${linkNext(hasNext ? `${path}?day=${day}&cursor=${encodeURIComponent(page.nextCursor ?? "")}` : null, "Later redemptions of this day")}`;
  return layOutForPortal(site, caller, `Redemptions of ${day}`, main);
}
