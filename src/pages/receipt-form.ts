import { type Html, html } from "./html.ts";
import { ENGLISH } from "./locale.ts";

/** The form that check-receipt.js shows and handles. `advice` tells where to get the policy. */
export function renderReceiptForm(
  policy: string,
  receipt = "",
  { t } = ENGLISH,
  advice: Html | string = t("receipt.served"),
): Html {
  return html`<form id="receipt-form">
<label for="receipt">${t("receipt.label")}</label>
<textarea id="receipt" rows="6" spellcheck="false" autocomplete="off" autocapitalize="off" \
placeholder="c2sp.org/tlog-proof@v1…">${receipt}</textarea>
<label for="policy">${t("receipt.policy")}</label>
<p class="fine" id="policy-help">${advice}</p>
<textarea id="policy" rows="4" spellcheck="false" autocomplete="off" autocapitalize="off" \
aria-describedby="policy-help">${policy}</textarea>
<button type="submit">${t("receipt.button")}</button>
</form>
<div id="receipt-result" role="status"></div>`;
}
