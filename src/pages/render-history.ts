import type { PartnerEvent } from "../core/chain/api/events.ts";
import { keepsPayload } from "../core/chain/chain.ts";
import type { VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { ENGLISH } from "./locale.ts";
import { renderFacts, renderSection } from "./operator-frame.ts";

/** A voucher's history: its entries, in order of time. */
export function renderLife(entries: readonly Html[], { texts } = ENGLISH): Html {
  return renderSection("life", texts.chain.happened, html`<ol class="life">\n${entries}</ol>\n`);
}

/** An entry of a history. */
export function renderEvent(
  event: PartnerEvent,
  redemption: VoucherHistory["redemption"],
  showsPayload: boolean,
  locale = ENGLISH,
): Html {
  const { chain, portal } = locale.texts;
  const { title, sentence } = describeEvent(event.eventType, locale);
  const redeemed = event.eventType === "voucher.instance.redeemed" ? redemption : null;
  const sealed = event.sealStatus === "Sealed";
  const isLost = sealed && event.erasedBy === undefined && !keepsPayload(event);
  return html`<li><p class="when">${locale.time(event.occurredAt)}</p>
<p><strong>${title}</strong> ${sentence} \
<span class="badge ${sealed ? "good" : "waiting"}">${sealed ? chain.sealed : chain.pending}</span>\
${event.erasedBy === undefined ? null : html` ${chain.erased(null, event.erasedBy)}`}\
${isLost ? html` <em>${chain.lost}</em>` : null}</p>
<p class="fine">${portal.entry(event.sequence)}${
    event.actorConnectedId === null
      ? null
      : html`, ${portal.byActor} \
<code>${event.actorConnectedId}</code>${redeemed?.keyLabel ? ` (${redeemed.keyLabel})` : ""}`
  }</p>
${
  redeemed === null
    ? null
    : renderFacts([
        ["Reference", redeemed.externalRef],
        ["Redeem code", html`<code>${redeemed.redeemCode}</code>`],
        ["Ticket", redeemed.ticket === null ? null : html`<code>${redeemed.ticket}</code>`],
        ["Job", html`<code>${redeemed.attemptId}</code>`],
      ])
}
${
  event.payload === null || !showsPayload
    ? null
    : html`<details><summary>${portal.payload}\
<span class="hidden"> ${chain.ofEntry(event.sequence)}</span></summary><pre><code>${event.payload}</code></pre>\
</details>`
}
</li>
`;
}
