import { type Html, html } from "./html.ts";

const SERVED = html`This is the policy that the service serves. Compare its keys with your contract, or paste your own copy: a policy that comes with
the proof proves nothing.`;

/** The form that check-receipt.js shows and handles. `advice` says where the policy comes from. */
export function renderReceiptForm(policy: string, receipt = "", advice = SERVED): Html {
  return html`<form id="receipt-form">
<label for="receipt">Receipt</label>
<textarea id="receipt" rows="6" spellcheck="false" autocomplete="off" autocapitalize="off" placeholder="c2sp.org/tlog-proof@v1…">${receipt}</textarea>
<label for="policy">Policy: the log and the witnesses that you trust</label>
<p class="fine" id="policy-help">${advice}</p>
<textarea id="policy" rows="4" spellcheck="false" autocomplete="off" autocapitalize="off" aria-describedby="policy-help">${policy}</textarea>
<button type="submit">Verify the receipt</button>
</form>
<div id="receipt-result" role="status"></div>`;
}
