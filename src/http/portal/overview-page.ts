import type { RedemptionSum } from "../../db/redemptions.ts";
import { COUNT, renderTable } from "../ops/operator-frame.ts";
import { renderBars } from "../pages/bar-chart.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderTime } from "../pages/time.ts";
import {
  describeTotal,
  formatCents,
  layOutForPortal,
  type PortalCaller,
  portalPath,
  renderKey,
  totalOf,
} from "./portal-frame.ts";

/** Rows of one table. The rest is one row more, so that the table adds up to the total. */
const ROWS_MAX = 20;
/** Days of the plot. */
const PLOT_DAYS = 30;

/** The day of a moment: `YYYY-MM-DD` in UTC. */
export function dayOf(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The first moment of a day, or of a day that is some days later. */
export function startOfDay(day: string, daysLater = 0): Date {
  const start = new Date(`${day}T00:00:00.000Z`);
  start.setUTCDate(start.getUTCDate() + daysLater);
  return start;
}

/** The first moment that the overview needs at `now`: of this month or of the plot. */
export function startOfOverview(now: Date): Date {
  const [month, plot] = [startOfDay(`${dayOf(now).slice(0, 7)}-01`), startOfDay(dayOf(now), 1 - PLOT_DAYS)];
  return month < plot ? month : plot;
}

/** Today, yesterday and this month by product and by key, and thirty days as a plot and as a table. */
export function renderOverview(
  site: Site,
  caller: PortalCaller,
  { name, sums, completeUntil }: { name: string; sums: readonly RedemptionSum[]; completeUntil: Date },
): Html {
  const today = dayOf(completeUntil);
  const yesterday = dayOf(startOfDay(today, -1));
  const month = today.slice(0, 7);
  const days = Array.from({ length: PLOT_DAYS }, (_, at) => {
    const day = dayOf(startOfDay(today, 1 - PLOT_DAYS + at));
    return { day, ...totalOf(sums.filter((sum) => sum.day === day)) };
  });
  return layOutForPortal(site, caller, {
    title: "Overview",
    main: html`<h1><bdi>${name}</bdi></h1>
<p class="lead">Redemptions up to ${renderTime(completeUntil)}. Days and months are in UTC.</p>
${renderPeriod(site, "today", `Today, ${today}`, today, sums)}
${renderPeriod(site, "yesterday", `Yesterday, ${yesterday}`, yesterday, sums)}
${renderPeriod(site, "month", `This month, ${month}`, month, sums)}
<section aria-labelledby="days">
<h2 id="days">${PLOT_DAYS} days</h2>
<figure class="chart">${renderBars(
      `Redemptions per day, with the numbers of the table`,
      days.map(({ day, redemptions }) => ({ label: day, count: redemptions })),
    )}<figcaption class="fine">Redemptions per day from ${days[0]?.day ?? today} to ${today}. The highest bar is ${COUNT.format(Math.max(...days.map(({ redemptions }) => redemptions)))}.</figcaption></figure>
${renderTable(
  "Redemptions per day",
  ["Day", "Redemptions", "Sum"],
  days
    .toReversed()
    .map(({ day, redemptions, cents }) => [linkDay(site, day, day), COUNT.format(redemptions), formatCents(cents)]),
)}
</section>`,
  });
}

function linkDay(site: Site, day: string, text: string): Html {
  return html`<a href="${portalPath(site, "redemptions")}?day=${day}">${text}</a>`;
}

/** The sums of a day or month: those whose day begins with `prefix`. */
function renderPeriod(site: Site, id: string, title: string, prefix: string, all: readonly RedemptionSum[]): Html {
  const sums = all.filter(({ day }) => day.startsWith(prefix));
  const isDay = prefix.length === "YYYY-MM-DD".length;
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
<p>${describeTotal(totalOf(sums))}${isDay ? html`. ${linkDay(site, prefix, "Each redemption")}<span class="hidden"> of ${prefix}</span>` : null}</p>
${
  sums.length === 0
    ? null
    : html`${renderSums(
        title,
        "Product",
        Map.groupBy(sums, ({ productId }) => productId),
        ({ productName }) => html`<bdi>${productName}</bdi>`,
      )}${renderSums(
        title,
        "Key",
        Map.groupBy(sums, ({ keyId }) => keyId),
        ({ keyId, keyLabel }) => renderKey(keyId, keyLabel),
      )}`
}
</section>
`;
}

/** A table with a row for each group, the largest sums first. */
function renderSums(
  title: string,
  column: string,
  groups: Map<string, RedemptionSum[]>,
  nameOf: (sum: RedemptionSum) => Html,
): Html {
  const rows = [...groups.values()].toSorted((a, b) => totalOf(b).cents - totalOf(a).cents);
  const rest = rows.slice(ROWS_MAX);
  const rowOf = (name: Html | string, sums: readonly RedemptionSum[]) => {
    const { redemptions, cents } = totalOf(sums);
    return [name, COUNT.format(redemptions), formatCents(cents)];
  };
  return renderTable(
    `${title}, by ${column.toLowerCase()}`,
    [column, "Redemptions", "Sum"],
    [
      ...rows.slice(0, ROWS_MAX).flatMap((sums) => (sums[0] === undefined ? [] : [rowOf(nameOf(sums[0]), sums)])),
      ...(rest.length === 0 ? [] : [rowOf(`${COUNT.format(rest.length)} others`, rest.flat())]),
    ],
  );
}
