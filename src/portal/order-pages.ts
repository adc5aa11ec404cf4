import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderFacts, renderStatus, renderTable } from "../pages/operator-frame.ts";
import { renderEvent, renderLife } from "../pages/render-history.ts";
import { layOutForPortal, orderPath, type PortalCaller, renderKey } from "./portal-frame.ts";

interface Order {
  history: VoucherHistory;
  redemption: NonNullable<VoucherHistory["redemption"]>;
  priceUsd: number;
  /** The sections that wings add. */
  sections: readonly Html[];
}

/** Renders an order: the redeemed voucher, the time and key of its redemption, its history, and added sections. */
export function renderOrderPage(site: Site, caller: PortalCaller, order: Order): Html {
  const { history, redemption, priceUsd, sections } = order;
  const { voucher, events } = history;
  const { locale } = caller;
  const { t } = locale;
  const main = html`<h1>${t("portal.columns.order")} <bdi>${redemption.externalRef}</bdi></h1>
${renderFacts([
  [t("portal.columns.redeemed"), locale.time(redemption.redeemedAt)],
  [
    t("portal.columns.product"),
    html`<bdi>${voucher.productName}</bdi> (${voucher.productKey}), <bdi>${voucher.brand}</bdi>`,
  ],
  [t("portal.columns.price"), locale.usd.format(priceUsd)],
  [t("portal.columns.redeemCode"), html`<code>${redemption.redeemCode}</code>`],
  [
    t("portal.facts.voucher"),
    html`<code>${voucher.code}</code>, ${t("portal.facts.serial", { serial: voucher.serial })}`,
  ],
  [t("portal.columns.key"), renderKey(redemption)],
  [t("portal.facts.publicHistory"), html`<a href="${voucher.verifyUrl}">${voucher.verifyUrl}</a>`],
])}
${renderLife(
  events.map((event) => renderEvent(event, redemption, "sentence", locale)),
  locale,
)}
${sections}`;
  return layOutForPortal(site, caller, `${t("portal.columns.order")} ${redemption.externalRef}`, main);
}

/** The results of a search that found several orders or none. */
export function renderFoundPage(site: Site, caller: PortalCaller, words: string, found: readonly FoundVoucher[]): Html {
  const { locale } = caller;
  const { t } = locale;
  const main = html`<h1>${found.length === 0 ? t("portal.nothingFound") : t("portal.found")}</h1>
${renderTable(
  t("portal.vouchersFound"),
  [t("portal.columns.status"), t("portal.columns.product"), t("portal.columns.validUntil"), t("portal.columns.order")],
  found.map(({ status, productName, validUntil, externalRef }) => [
    renderStatus(status, t(`portal.statuses.${status}`)),
    html`<bdi>${productName}</bdi>`,
    locale.end(new Date(validUntil)),
    externalRef ? html`<a href="${orderPath(site, externalRef)}"><bdi>${externalRef}</bdi></a>` : t("portal.noOrder"),
  ]),
  t("portal.noReference"),
  { stacks: true },
)}`;
  return layOutForPortal(site, caller, t("portal.search"), main, words);
}
