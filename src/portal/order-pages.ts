import type { FoundVoucher, VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { ASSETS } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import { assetPath, renderScriptTexts, type Site } from "../pages/layout.ts";
import type { Locale } from "../pages/locale.ts";
import { renderFacts, renderSection, renderStatus, renderTable } from "../pages/operator-frame.ts";
import { renderReceiptForm } from "../pages/receipt-form.ts";
import { renderEvent, renderLife } from "../pages/render-history.ts";
import { MINUTES } from "../pages/time.ts";
import type { DeliveriesResponse } from "../webhooks/api/webhook-deliveries.ts";
import type { WebhookView } from "../webhooks/api/webhooks.ts";
import { layOutForPortal, orderPath, type PortalCaller, renderKey } from "./portal-frame.ts";

interface Order {
  history: VoucherHistory;
  redemption: NonNullable<VoucherHistory["redemption"]>;
  priceUsd: number;
  /** Null until the log has the redemption. Without a log, the policy is empty. */
  receipt: string | null;
  policy: string;
}

/** An order: what was redeemed, when and by which key, the voucher's history, and the receipt. */
export function renderOrderPage(site: Site, caller: PortalCaller, order: Order): Html {
  const { history, redemption, priceUsd } = order;
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
${renderSection("proof", portal.receipt, renderReceipt(site, order, locale))}`;
  return layOutForPortal(site, caller, `${columns.order} ${redemption.externalRef}`, main);
}

function renderReceipt(site: Site, { receipt, policy, redemption }: Order, locale: Locale): Html {
  const { portal } = locale.texts;
  if (receipt === null) return html`<p class="notice">${portal.noReceipt}</p>`;
  return html`<p>${portal.receiptAbout} <a href="${orderPath(site, redemption.externalRef, "receipt")}">${portal.download}</a></p>
<noscript><p class="fine">${portal.noScript} <a href="${site.basePath}/docs/proof">${portal.otherTools}</a>.</p></noscript>
<div id="receipt-check" hidden>
${renderReceiptForm(policy, receipt, locale.texts)}
</div>
${renderScriptTexts(locale)}<script type="module" src="${assetPath(site, ASSETS.receiptScript)}"></script>`;
}

/** What a search found, unless it is one order, whose page is shown instead. */
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

/** An endpoint with its last deliveries. */
type Endpoint = WebhookView & Pick<DeliveriesResponse, "deliveries">;

/** The organization's webhook endpoints. */
export function renderWebhooksPage(site: Site, caller: PortalCaller, endpoints: readonly Endpoint[]): Html {
  const { portal } = caller.locale.texts;
  const main = html`<h1>${portal.endpoints}</h1>
${endpoints.length === 0 ? html`<p class="notice">${portal.none}</p>` : endpoints.map((endpoint) => renderEndpoint(endpoint, caller.locale))}`;
  return layOutForPortal(site, caller, portal.webhooks, main);
}

function renderEndpoint(
  { id, url, description, disabledReason, failingSince, deliveries }: Endpoint,
  { texts: { portal }, time }: Locale,
): Html {
  const { state, enabled, disabled, failingSince: since } = portal.endpointFacts;
  const { deliveryColumns: columns } = portal;
  return html`<section aria-labelledby="${id}"><h2 id="${id}"><bdi>${description || url}</bdi></h2>
${renderFacts([
  ["URL", html`<code>${url}</code>`],
  [state, disabledReason === null ? enabled : `${disabled} ${portal.reasons[disabledReason]}`],
  [since, failingSince === null ? null : time(failingSince)],
])}
${renderTable(
  portal.lastDeliveries(description || url),
  [columns.event, columns.happened, columns.state, columns.attempts, columns.lastAnswer],
  deliveries.map(({ eventType, createdAt, state, attempts, lastStatus, lastFailure }) => [
    eventType,
    time(createdAt),
    renderStatus(state),
    String(attempts),
    String(lastStatus ?? lastFailure?.replaceAll("_", " ") ?? ""),
  ]),
  portal.none,
)}
</section>
`;
}
