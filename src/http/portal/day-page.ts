import type { RedemptionsResponse } from "../../contract/redemptions.ts";
import { renderTable, USD } from "../ops/operator-frame.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTime } from "../pages/time.ts";
import { dayOf, startOfDay } from "./overview-page.ts";
import {
  describeTotal,
  layOutForPortal,
  type PortalCaller,
  portalPath,
  renderKey,
  type Total,
} from "./portal-frame.ts";

/** Redemptions on one page of a day: with the longest names, the page stays below 100 kB. */
export const DAY_PAGE_MAX = 100;

/** One page of a day's redemptions, with the total of the day so far. */
export function renderDayPage(
  site: Site,
  caller: PortalCaller,
  { day, total, page, isFirst }: { day: string; total: Total; page: RedemptionsResponse; isFirst: boolean },
): Html {
  const path = portalPath(site, "redemptions");
  const [from, to] = [startOfDay(day), startOfDay(day, 1)];
  const isOver = to.toISOString() <= page.completeUntil;
  const csv = `${path}.csv?from=${from.toISOString()}&to=${to.toISOString()}`;
  const hasNext = page.redemptions.length === DAY_PAGE_MAX && page.nextCursor !== null;
  return layOutForPortal(site, caller, {
    title: `Redemptions of ${day}`,
    main: html`<h1>Redemptions of ${day}</h1>
<p>${describeTotal(total)} ${isOver ? "on this day in UTC." : html`up to ${renderTime(page.completeUntil)}. More may follow until the day ends in UTC.`}</p>
<p><a href="${csv}">The day as CSV</a></p>
<form class="check" action="${path}" method="get"><label for="day">Another day</label>
<div class="row"><input id="day" name="day" type="date" value="${day}" required> <button type="submit">Show</button></div></form>
<p><a rel="prev" href="${path}?day=${dayOf(startOfDay(day, -1))}">The day before</a> · <a rel="next" href="${path}?day=${dayOf(to)}">The day after</a></p>
${renderTable(
  `Redemptions of ${day}`,
  ["Redeemed", "Reference", "Product", "Value", "Redeem code", "Key"],
  page.redemptions.map((redemption) => [
    renderTime(redemption.redeemedAt),
    html`<a href="${portalPath(site, "orders", redemption.externalRef)}"><bdi>${redemption.externalRef}</bdi></a>`,
    html`<bdi>${redemption.productName}</bdi>`,
    USD.format(redemption.discountPriceUsd),
    html`<code>${redemption.redeemCode}</code>`,
    renderKey(redemption.keyId, redemption.keyLabel),
  ]),
  isFirst ? html`There are none.` : html`There are no more.`,
)}
${hasNext ? html`<p><a href="${path}?day=${day}&cursor=${encodeURIComponent(page.nextCursor ?? "")}">Later redemptions of this day</a></p>` : null}`,
  });
}
