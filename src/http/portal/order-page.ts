import type { FoundVoucher, VoucherHistory } from "../../contract/voucher-history.ts";
import { renderFacts, renderStatus, renderTable, USD } from "../ops/operator-frame.ts";
import { ASSETS } from "../pages/assets.ts";
import { describeEvent } from "../pages/event-words.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { renderReceiptForm } from "../pages/receipt-form.ts";
import { MINUTES, renderTime } from "../pages/time.ts";
import { layOutForPortal, type PortalCaller, portalPath, renderKey } from "./portal-frame.ts";

/** What the page of an order shows. */
interface Order {
  history: VoucherHistory;
  redemption: NonNullable<VoucherHistory["redemption"]>;
  priceUsd: number;
  /** Null until the log has it, and without a log. */
  receipt: string | null;
  /** The policy that the service serves; empty without a log. */
  policy: string;
}

/** An order: what was redeemed, when and by which key, its history and its receipt. */
export function renderOrderPage(site: Site, caller: PortalCaller, order: Order): Html {
  const { history, redemption, priceUsd, receipt } = order;
  const { voucher } = history;
  return layOutForPortal(site, caller, {
    title: `Order ${redemption.externalRef}`,
    scripts: receipt === null ? [] : [ASSETS.receiptScript],
    main: html`<h1>Order <bdi>${redemption.externalRef}</bdi></h1>
${renderFacts([
  ["Redeemed", renderTime(redemption.redeemedAt)],
  ["Product", html`<bdi>${voucher.productName}</bdi> (${voucher.productKey}), <bdi>${voucher.brand}</bdi>`],
  ["Value", USD.format(priceUsd)],
  ["Redeem code", html`<code>${redemption.redeemCode}</code>`],
  ["Voucher", html`<code>${voucher.code}</code>, serial ${voucher.serial}`],
  ["Key", renderKey(redemption.keyId, redemption.keyLabel)],
  ["Public history", html`<a href="${voucher.verifyUrl}">${voucher.verifyUrl}</a>`],
])}
<section aria-labelledby="life">
<h2 id="life">What happened</h2>
<ol class="life">
${listEntries(history)}</ol>
</section>
<section aria-labelledby="receipt-heading">
<h2 id="receipt-heading">Receipt</h2>
${renderReceipt(site, order)}
</section>`,
  });
}

/** Events and reservations in order of time. */
function listEntries({ events, reservations }: VoucherHistory): Html[] {
  const entries = [
    ...events.map(({ eventType, occurredAt, sealStatus, sequence }) => ({
      at: occurredAt,
      what: html`<strong>${describeEvent(eventType).title}</strong> ${describeEvent(eventType).sentence} <span class="badge ${sealStatus === "Sealed" ? "good" : "waiting"}">${sealStatus}</span>`,
      detail: html`Entry ${sequence}`,
    })),
    ...reservations.map(({ startedAt, state, keyId, keyLabel, expiresAt, endedAt }) => ({
      at: startedAt,
      what: html`<strong>Reserved</strong> ${renderStatus(state)}`,
      detail: html`By ${renderKey(keyId, keyLabel)}, until ${renderTime(endedAt ?? expiresAt)}`,
    })),
  ].toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  return entries.map(
    ({ at, what, detail }) =>
      html`<li><p class="when">${renderTime(at)}</p>\n<p>${what}</p>\n<p class="fine">${detail}</p></li>\n`,
  );
}

function renderReceipt(site: Site, { receipt, policy, redemption }: Order): Html {
  if (receipt === null) {
    return html`<p class="notice">There is no receipt yet: the transparency log does not have this redemption. That usually takes seconds, where the service has a log.</p>`;
  }
  const advice = html`This is the policy that the service serves. Compare its keys with your contract, or paste your own copy: a policy that comes with
the proof proves nothing.`;
  return html`<p>Proves the redemption without this service. <a href="${portalPath(site, "orders", redemption.externalRef, "receipt")}" download>Download the receipt</a></p>
<noscript><p class="fine">Verifying it on this page needs JavaScript. <a href="${site.basePath}/docs/proof">There are other tools</a>.</p></noscript>
<div id="receipt-check" hidden>
${renderReceiptForm(advice, policy, receipt)}
</div>`;
}

/** What a search found, unless it is one order, whose page is shown instead. */
export function renderFoundPage(site: Site, caller: PortalCaller, words: string, found: readonly FoundVoucher[]): Html {
  return layOutForPortal(site, caller, {
    title: "Search",
    entered: words,
    main: html`<h1>${found.length === 0 ? "Nothing found" : `${found.length} ${found.length === 1 ? "voucher" : "vouchers"}`}</h1>
${renderTable(
  "Vouchers found",
  ["Status", "Product", "Valid until", "Order"],
  found.map(({ status, productName, validUntil, externalRef }) => [
    renderStatus(status),
    html`<bdi>${productName}</bdi>`,
    renderTime(validUntil, MINUTES),
    externalRef === null
      ? "none"
      : html`<a href="${portalPath(site, "orders", externalRef)}"><bdi>${externalRef}</bdi></a>`,
  ]),
  html`No order of your organization has this reference, and no voucher of it has this code.`,
)}`,
  });
}
