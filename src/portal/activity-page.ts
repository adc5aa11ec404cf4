import { EVENT_TYPES, type EventType } from "../core/chain/chain.ts";
import type { FeedEventView } from "../core/feed/api/feed.ts";
import type { VoucherName } from "../core/voucher/db/vouchers.ts";
import { describeEvent } from "../pages/event-words.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";
import { linkNext, renderSection, renderTable } from "../pages/operator-frame.ts";
import { dayOf } from "./calendar.ts";
import { layOutForPortal, linkVoucher, type PortalCaller, portalPath } from "./portal-frame.ts";

/** Maximum number of events on one page. It keeps the page short on a phone. */
export const ACTIVITY_PAGE_MAX = 25;

interface ActivityQuery {
  types: readonly EventType[] | undefined;
  until?: string;
  after?: string;
}

/** Events of the feed, oldest first, the names of their vouchers, and the cursors of the neighbouring pages. */
interface Activity extends Pick<ActivityQuery, "types"> {
  events: readonly FeedEventView[];
  names: ReadonlyMap<string, VoucherName>;
  earlier: string | null;
  later: string | null;
}

/** The address of the page. */
export function activityPath(site: Site, { types = [], ...cursor }: ActivityQuery): string {
  const query = new URLSearchParams({ ...(types.length > 0 && { types: types.join(",") }), ...cursor });
  return [portalPath(site, "activity"), ...(query.size > 0 ? [query] : [])].join("?");
}

/** What happened to the organization's vouchers, newest first, by day. */
export function renderActivityPage(site: Site, caller: PortalCaller, activity: Activity): Html {
  const { events, names, types, earlier, later } = activity;
  const { locale } = caller;
  const { t, markup } = locale;
  const redemptions = html`<a href="${portalPath(site, "redemptions")}">${t("portal.redemptions")}</a>`;
  const days = Map.groupBy(events.toReversed(), ({ occurredAt }) => dayOf(new Date(occurredAt), locale));
  const empty = types === undefined && later === null ? t("portal.noEvents") : t("portal.noSuchEvents");
  const main = html`<h1>${t("portal.activity")}</h1>
<p class="fine">${markup("portal.activityHelp", { redemptions })}</p>
${renderFilter(site, types, locale)}
${
  later &&
  html`<p><a rel="prev" href="${activityPath(site, { types, after: later })}">\
${t("portal.laterEvents")}</a></p>`
}
${days.size === 0 ? html`<p class="notice">${empty}</p>` : null}
${Array.from(days, ([day, ofDay]) => renderSection(`d${day}`, locale.day(day), renderDay(site, ofDay, names, locale)))}
${linkNext(earlier && activityPath(site, { types, until: earlier }), t("portal.earlierEvents"))}`;
  return layOutForPortal(site, caller, t("portal.activity"), main);
}

function renderFilter(site: Site, types: ActivityQuery["types"], locale: Locale): Html {
  const { t } = locale;
  const options = EVENT_TYPES.map(
    (type) =>
      html`<option value="${type}"${types?.includes(type) ? html` selected` : null}>\
${describeEvent(type, locale).title}</option>`,
  );
  return html`<form class="check" action="${activityPath(site, { types: undefined })}" method="get">\
<label for="types">${t("portal.kinds")}</label>
<div class="row"><select id="types" name="types"><option value="">${t("portal.allKinds")}</option>${options}</select> \
<button type="submit">${t("portal.show")}</button></div></form>`;
}

function renderDay(site: Site, events: readonly FeedEventView[], names: Activity["names"], locale: Locale): Html {
  const { t } = locale;
  const rows = events.map(({ occurredAt, eventType, entityId }) => [
    locale.timeOfDay(occurredAt),
    describeEvent(eventType, locale).title,
    linkVoucher(site, entityId, names.get(entityId), locale),
  ]);
  return renderTable(
    t("portal.activity"),
    [t("portal.columns.time"), t("portal.columns.event"), `${t("portal.facts.voucher")}, ${t("portal.columns.order")}`],
    rows,
    "",
  );
}
