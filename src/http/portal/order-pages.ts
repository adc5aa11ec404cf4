import type { FoundVoucher, VoucherHistory } from "../../contract/voucher-history.ts";
import type { DeliveriesResponse } from "../../contract/webhook-deliveries.ts";
import type { WebhookView } from "../../contract/webhooks.ts";
import { renderFacts, renderSection, renderStatus, renderTable, USD } from "../ops/operator-frame.ts";
import { renderEvent, renderLife } from "../ops/voucher-page.ts";
import { REASONS } from "../ops/webhook-page.ts";
import { ASSETS } from "../pages/assets.ts";
import { type Html, html } from "../pages/html.ts";
import { assetPath, type Site } from "../pages/layout.ts";
import { renderReceiptForm } from "../pages/receipt-form.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { layOutForPortal, type PortalCaller, portalPath, renderKey } from "./portal-frame.ts";

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
  const main = html`<h1>Order <bdi>${redemption.externalRef}</bdi></h1>
${renderFacts([
  ["Redeemed", renderTime(redemption.redeemedAt)],
  ["Product", html`<bdi>${voucher.productName}</bdi> (${voucher.productKey}), <bdi>${voucher.brand}</bdi>`],
  ["Value", USD.format(priceUsd)],
  ["Redeem code", html`<code>${redemption.redeemCode}</code>`],
  ["Voucher", html`<code>${voucher.code}</code>, serial ${voucher.serial}`],
  ["Key", renderKey(redemption)],
  ["Public history", html`<a href="${voucher.verifyUrl}">${voucher.verifyUrl}</a>`],
])}
${renderLife(events.map((event) => renderEvent(event, null, true)))}
${renderSection("proof", "Receipt", renderReceipt(site, order))}`;
  return layOutForPortal(site, caller, `Order ${redemption.externalRef}`, main);
}

function renderReceipt(site: Site, { receipt, policy, redemption }: Order): Html {
  if (receipt === null) {
    return html`<p class="notice">There is no receipt yet: the transparency log does not have this redemption. That usually takes seconds, where the service has a log.</p>`;
  }
  return html`<p>Proves the redemption without this service. <a href="${portalPath(site, "orders", redemption.externalRef, "receipt")}">Download the receipt</a></p>
<noscript><p class="fine">Verifying it on this page needs JavaScript. <a href="${site.basePath}/docs/proof">There are other tools</a>.</p></noscript>
<div id="receipt-check" hidden>
${renderReceiptForm(policy, receipt)}
</div>
<script type="module" src="${assetPath(site, ASSETS.receiptScript)}"></script>`;
}

/** What a search found, unless it is one order, whose page is shown instead. */
export function renderFoundPage(site: Site, caller: PortalCaller, words: string, found: readonly FoundVoucher[]): Html {
  const main = html`<h1>${found.length === 0 ? "Nothing found" : "Found"}</h1>
${renderTable(
  "Vouchers found",
  ["Status", "Product", "Valid until", "Order"],
  found.map(({ status, productName, validUntil, externalRef }) => [
    renderStatus(status),
    html`<bdi>${productName}</bdi>`,
    renderTime(validUntil, MINUTES),
    externalRef ? html`<a href="${portalPath(site, "orders", externalRef)}"><bdi>${externalRef}</bdi></a>` : "none",
  ]),
  html`No order of your organization has this reference, and no voucher of it has this code.`,
)}`;
  return layOutForPortal(site, caller, "Search", main, words);
}

/** An endpoint with its last deliveries. */
type Endpoint = WebhookView & Pick<DeliveriesResponse, "deliveries">;

/** The organization's webhook endpoints. */
export function renderWebhooksPage(site: Site, caller: PortalCaller, endpoints: readonly Endpoint[]): Html {
  const main = html`<h1>Webhook endpoints</h1>
${endpoints.length === 0 ? html`<p class="notice">There are none.</p>` : endpoints.map(renderEndpoint)}`;
  return layOutForPortal(site, caller, "Webhooks", main);
}

function renderEndpoint({ id, url, description, disabledReason, failingSince, deliveries }: Endpoint): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}"><bdi>${description || url}</bdi></h2>
${renderFacts([
  ["URL", html`<code>${url}</code>`],
  ["State", disabledReason === null ? "Enabled" : `Disabled. ${REASONS[disabledReason]}`],
  ["Failing since", failingSince === null ? null : renderTime(failingSince)],
])}
${renderTable(
  `Last deliveries to ${description || url}`,
  ["Event", "Happened", "State", "Attempts", "Last answer"],
  deliveries.map(({ eventType, createdAt, state, attempts, lastStatus, lastFailure }) => [
    eventType,
    renderTime(createdAt),
    renderStatus(state),
    String(attempts),
    String(lastStatus ?? lastFailure?.replaceAll("_", " ") ?? ""),
  ]),
)}
</section>
`;
}
