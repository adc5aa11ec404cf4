import { issueBatch } from "../../acts/batch/issue.ts";
import { createBrand } from "../../acts/brand/create.ts";
import { createListing } from "../../acts/listing/create.ts";
import { createOrganization } from "../../acts/org/create.ts";
import { createProduct } from "../../acts/product/create.ts";
import { voidBatch } from "../../acts/void-batch.ts";
import { voidVoucher } from "../../acts/voucher/void.ts";
import { releaseLease } from "../../core/reserve/lease.ts";
import { html } from "../../pages/html.ts";
import { formOf } from "./act-form.ts";
import { defineAction, FieldProblem } from "./action.ts";
import { confirmation, optionalLine } from "./fields.ts";

const REASON = optionalLine("Reason", 200, "Kept in the sealed history.");

/** Creates what partners sell, each step leading to the next, and voids it. */
export const CATALOG_ACTIONS = [
  formOf(createOrganization),
  formOf(createBrand),
  formOf(createProduct),
  formOf(issueBatch),
  formOf(createListing),
  formOf(voidVoucher, ({ api }) => ({
    async releaseLeaseOf({ voucherId, endedTicket }) {
      if (endedTicket !== null) await releaseLease(api, voucherId, endedTicket);
    },
  })),
  defineAction({
    is: ["/batches/:id/void", "batch void", "Void the batch"],
    role: "admin",
    about: ({
      productName,
    }) => html`All active vouchers of this batch of <bdi>${productName}</bdi> can never be used again.
If you stop the run, another one continues it.`,
    fields: { product: confirmation("The product's name, to confirm,"), reason: REASON },
    partly: (done, total) => `${done} of ${total} vouchers are done, and stay so.`,
    run: async (ctx, id, { product, reason }, { productName, voucherCount }) => {
      // Browsers show several blanks as one.
      const [typed, right] = [product, productName].map((name) =>
        String(name).normalize().trim().replaceAll(/\s+/g, " "),
      );
      if (typed !== right) throw new FieldProblem("product", "is not the name of this batch's product");
      const { voided, alreadyFinal } = await voidBatch(ctx, id, reason, (soFar) =>
        ctx.advance(soFar.voided + soFar.alreadyFinal, Number(voucherCount)),
      );
      return html`${voided} voided. ${alreadyFinal} were redeemed, voided or expired before.`;
    },
  }),
];
