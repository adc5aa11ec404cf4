import type pg from "pg";
import { parseProof } from "#tlog/receipt.ts";
import type { Bulkhead } from "../../core/callers/bulkhead.ts";
import { ASSETS } from "../../pages/assets.ts";
import { type Html, html } from "../../pages/html.ts";
import { assetPath, type Site } from "../../pages/layout.ts";
import { renderScriptTexts } from "../../pages/locale.ts";
import { renderSection } from "../../pages/operator-frame.ts";
import { renderReceiptForm } from "../../pages/receipt-form.ts";
import { AppError } from "../../platform/api/errors.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import { type OrderPart, orderPath, type PortalCaller } from "../../portal/portal-frame.ts";
import { findCheckpoint } from "../read-log.ts";
import { readRedemptionReceipt, receiptOfRedemption } from "../read-receipt.ts";

type Deps = DepsOf<typeof readRedemptionReceipt> & {
  pool: pg.Pool;
  portalReads: Bulkhead<"organization">;
  config: Site;
};

/**
 * The receipt of an order: what it proves in a sentence, a file, and a form that verifies it. Empty if the payload was
 * erased, which the page's history says.
 */
export const orderReceipt: OrderPart<Deps> = {
  async section(deps, caller, externalRef) {
    const receipt = await deps
      .portalReads(caller, () => receiptOfRedemption(deps.pool, caller.organizationId, externalRef))
      .catch((error: unknown) => {
        if (error instanceof AppError && error.code === "not_logged_yet") return null;
        if (error instanceof AppError && error.code === "payload_erased") return "erased";
        throw error;
      });
    if (receipt === "erased") return html``;
    const policy = (await deps.portalReads(caller, () => findCheckpoint(deps.pool)))?.policy ?? "";
    const content = renderReceipt(deps.config, caller, { externalRef, receipt, policy });
    return renderSection("proof", caller.locale.t("transparency.order.receipt"), content);
  },
  file: { segment: "receipt", name: "receipt.txt", read: readRedemptionReceipt },
};

interface Receipt {
  externalRef: string;
  /** Null until the log contains the redemption. Without a log, the policy is empty. */
  receipt: string | null;
  policy: string;
}

function renderReceipt(site: Site, { locale }: PortalCaller, { externalRef, receipt, policy }: Receipt): Html {
  const { t } = locale;
  if (receipt === null) return html`<p class="notice">${t("transparency.order.noReceipt")}</p>`;
  const { index } = parseProof(receipt);
  return html`<p class="verdict good"><strong>${t("transparency.order.valid", { index })}</strong></p>
<p>${t("transparency.order.receiptAbout")} \
<a href="${orderPath(site, externalRef, "receipt")}">${t("transparency.order.download")}</a></p>
<noscript><p class="fine">${t("transparency.order.noScript")} \
<a href="${site.basePath}/docs/proof">${t("transparency.order.otherTools")}</a>.</p>\
</noscript>
<details id="receipt-check" hidden><summary>${t("receipt.button")}</summary>
${renderReceiptForm(policy, receipt, locale)}
</details>
${renderScriptTexts(locale, "receipt.")}<script type="module" src="${assetPath(site, ASSETS.receiptScript)}"></script>`;
}
