import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderFacts, renderStatus, renderTable } from "../pages/operator-frame.ts";
import { renderEvent, renderLife } from "../pages/render-history.ts";
import { MINUTES } from "../pages/time.ts";
import { layOutForPortal, orderPath, type PortalCaller, renderKey } from "./portal-frame.ts";

interface Order {
  history: VoucherHistory;
  redemption: NonNullable<VoucherHistory["redemption"]>;
  priceUsd: number;
  /** The sections that wings add. */
  sections: readonly Html[];
}

/** An order: the redeemed voucher, the time and the key of its redemption, its history, and the sections of wings. */
export function renderOrderPage(site: Site, caller: PortalCaller, order: Order): Html {
  const { history, redemption, priceUsd, sections } = order;
  const { voucher, events } = history;
  const { locale } = caller;
  const { portal } = locale.texts;
  const { columns, facts } = portal;
  const main = html`<h1>${columns.order} <bdi>${redemption.externalRef}</bdi></h1>
${renderFacts([
  [columns.redeemed, locale.time(redemption.redeemedAt)],
  [columns.product, html`<bdi>${voucher.productName}</bdi> (${voucher.productKey}), <bdi>${voucher.brand}</bdi>`],
  [columns.value, locale.usd.format(priceUsd)],
  [columns.redeemCode, html`<code>${redemption.redeemCode}</code>`],
  [facts.voucher, html`<code>${voucher.code}</code>, ${facts.serial(voucher.serial)}`],
  [columns.key, renderKey(redemption)],
  [facts.publicHistory, html`<a href="${voucher.verifyUrl}">${voucher.verifyUrl}</a>`],
])}
${renderLife(
  events.map((event) => renderEvent(event, null, true, locale)),
  locale,
)}
${sections}`;
  return layOutForPortal(site, caller, `${columns.order} ${redemption.externalRef}`, main);
}

/** The results of a search. A search that finds one order shows that order's page instead. */
export function renderFoundPage(site: Site, caller: PortalCaller, words: string, found: readonly FoundVoucher[]): Html {
  const { locale } = caller;
  const { portal } = locale.texts;
  const { columns } = portal;
  const main = html`<h1>${found.length === 0 ? portal.nothingFound : portal.found}</h1>
${renderTable(
  portal.vouchersFound,
  [columns.status, columns.product, columns.validUntil, columns.order],
  found.map(({ status, productName, validUntil, externalRef }) => [
    renderStatus(status, portal.statuses[status]),
    html`<bdi>${productName}</bdi>`,
    locale.time(validUntil, MINUTES),
    externalRef ? html`<a href="${orderPath(site, externalRef)}"><bdi>${externalRef}</bdi></a>` : portal.noOrder,
  ]),
  portal.noReference,
)}`;
  return layOutForPortal(site, caller, portal.search, main, words);
}
