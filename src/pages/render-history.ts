import type { PartnerEvent } from "../core/chain/api/events.ts";
import { keepsPayload, reasonIn } from "../core/chain/chain.ts";
import type { VoucherHistory } from "../core/look-up/api/voucher-history.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { ENGLISH } from "./locale.ts";
import { type Fact, renderFacts, renderSection } from "./operator-frame.ts";

/** A voucher's history: its entries, in order of time. */
export function renderLife(entries: readonly Html[], { t } = ENGLISH): Html {
  return renderSection("life", t("chain.happened"), html`<ol class="life">\n${entries}</ol>\n`);
}

/** What an entry shows: only its sentence, also the redemption's facts, or also the payload. */
type Detail = "sentence" | "facts" | "payload";

function factsOf({ payload }: PartnerEvent, redeemed: VoucherHistory["redemption"]): Fact[] {
  const reason = reasonIn(payload);
  if (redeemed === null) return reason === null ? [] : [["Reason", reason]];
  return [
    ["Reference", redeemed.externalRef],
    ["Redeem code", html`<code>${redeemed.redeemCode}</code>`],
    ["Ticket", redeemed.ticket === null ? null : html`<code>${redeemed.ticket}</code>`],
    ["Job", html`<code>${redeemed.attemptId}</code>`],
  ];
}

/** An entry of a history. */
export function renderEvent(
  event: PartnerEvent,
  redemption: VoucherHistory["redemption"],
  detail: Detail,
  locale = ENGLISH,
): Html {
  const { t, markup } = locale;
  const { title, sentence } = describeEvent(event.eventType, locale);
  const redeemed = event.eventType === "voucher.instance.redeemed" ? redemption : null;
  const sealed = event.sealStatus === "Sealed";
  const isLost = sealed && event.erasedBy === undefined && !keepsPayload(event);
  const label = redeemed?.keyLabel ? html`<bdi>${redeemed.keyLabel}</bdi>` : null;
  const id = html`<code>${event.actorConnectedId}</code>`;
  const actor = label === null ? id : detail === "sentence" ? label : html`${id} (${label})`;
  const facts = detail === "sentence" ? [] : factsOf(event, redeemed);
  return html`<li><p class="when">${locale.time(event.occurredAt)}</p>
<p><strong>${title}</strong> ${sentence} \
<span class="badge ${sealed ? "good" : "waiting"}">${sealed ? t("chain.sealed") : t("chain.pending")}</span>\
${event.erasedBy === undefined ? null : html` ${markup("chain.erasedBy", { entry: event.erasedBy })}`}\
${isLost ? html` <em>${t("chain.lost")}</em>` : null}</p>
<p class="fine">${t("portal.entry", { sequence: event.sequence })}${
    event.actorConnectedId === null ? null : html`, ${t("portal.byActor")} ${actor}`
  }</p>
${facts.length === 0 ? null : renderFacts(facts)}
${
  event.payload === null || detail !== "payload"
    ? null
    : html`<details><summary>Payload\
<span class="hidden"> ${t("chain.ofEntry", { sequence: event.sequence })}</span></summary>\
<pre><code>${event.payload}</code></pre>\
</details>`
}
</li>
`;
}
