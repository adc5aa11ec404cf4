import { type Html, html } from "./html.ts";
import { ENGLISH } from "./locale.ts";

/** The form that check-receipt.js shows and handles. `advice` says where to get the policy. */
export function renderReceiptForm(
  policy: string,
  receipt = "",
  { receipt: texts } = ENGLISH.texts,
  advice: Html | string = texts.served,
): Html {
  return html`<form id="receipt-form">
<label for="receipt">${texts.label}</label>
<textarea id="receipt" rows="6" spellcheck="false" autocomplete="off" autocapitalize="off" \
placeholder="c2sp.org/tlog-proof@v1…">${receipt}</textarea>
<label for="policy">${texts.policy}</label>
<p class="fine" id="policy-help">${advice}</p>
<textarea id="policy" rows="4" spellcheck="false" autocomplete="off" autocapitalize="off" \
aria-describedby="policy-help">${policy}</textarea>
<button type="submit">${texts.button}</button>
</form>
<div id="receipt-result" role="status"></div>`;
}
