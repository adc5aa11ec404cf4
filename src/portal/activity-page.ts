import { keepsPayload } from "../core/chain/chain.ts";
import type { FeedEventView } from "../core/feed/api/feed.ts";
import { verifyUrl } from "../core/voucher/resolve-voucher.ts";
import { describeEvent } from "../pages/event-words.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { linkNext, renderTable } from "../pages/operator-frame.ts";
import { layOutForPortal, orderPath, type PortalCaller, portalPath } from "./portal-frame.ts";

/** Maximum number of events on one page. It keeps the page below 100 kB. */
export const ACTIVITY_PAGE_MAX = 100;
/** The number of characters of a voucher's id that the page shows. */
const ID_END = 8;

/** Events of the feed, oldest first, and the cursors of the neighbouring pages with earlier and later events. */
interface Activity {
  events: readonly FeedEventView[];
  earlier: string | null;
  later: string | null;
}

/** What happened to the organization's vouchers, newest first. */
export function renderActivityPage(site: Site, caller: PortalCaller, { events, earlier, later }: Activity): Html {
  const path = portalPath(site, "activity");
  const { locale } = caller;
  const { t } = locale;
  const main = html`<h1>${t("portal.activity")}</h1>
${renderTable(
  t("portal.activity"),
  [t("portal.columns.time"), t("chain.happened"), t("portal.facts.voucher"), t("portal.columns.order")],
  events
    .toReversed()
    .map((event) => [
      locale.time(event.occurredAt),
      describeEvent(event.eventType, locale).title,
      html`<a href="${verifyUrl({ config: site }, event.entityId)}"><code>…${event.entityId.slice(-ID_END)}</code></a>`,
      linkOrder(site, event),
    ]),
  t("portal.none"),
  { stacks: true },
)}
${later && html`<p><a rel="prev" href="${path}?after=${later}">${t("portal.laterEvents")}</a></p>`}
${linkNext(earlier && `${path}?until=${earlier}`, t("portal.earlierEvents"))}`;
  return layOutForPortal(site, caller, t("portal.activity"), main);
}

/** A link to the order of a redemption. Empty for other events, and after an erasure. */
function linkOrder(site: Site, event: FeedEventView): Html | string {
  if (event.eventType !== "voucher.instance.redeemed" || !keepsPayload(event)) return "";
  const externalRef = String(JSON.parse(String(event.payload)).data.externalRef);
  return html`<a href="${orderPath(site, externalRef)}"><bdi>${externalRef}</bdi></a>`;
}
