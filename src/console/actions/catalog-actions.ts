import { issueBatch } from "../../acts/batch/issue.ts";
import { createBrand } from "../../acts/brand/create.ts";
import { createListing, createOrganization, createProduct } from "../../acts/manage-catalog.ts";
import { voidBatch } from "../../acts/void-batch.ts";
import { voidVoucher } from "../../acts/voucher/void.ts";
import { releaseLease } from "../../core/reserve/lease.ts";
import { VOUCHER_TYPES } from "../../core/voucher/voucher.ts";
import { html } from "../../pages/html.ts";
import { formOf } from "./act-form.ts";
import { defineAction, FieldProblem } from "./action.ts";
import { box, confirmation, dollars, integer, line, oneOf, optionalLine } from "./fields.ts";

const REASON = optionalLine("Reason", 200, "Kept in the sealed history.");

/** Creates what partners sell, each step leading to the next, and voids it. */
export const CATALOG_ACTIONS = [
  defineAction({
    is: ["/organizations/new", "org create", "Create an organization"],
    role: "admin",
    fields: {
      name: line("Name", 200, "The partner, as operators see it."),
      sandbox: box(
        "Sandbox: for tests. Its keys begin with pvt_, its vouchers have no value. This cannot be changed later.",
      ),
    },
    creates: (id) => `/organizations/${id}/brands/new`,
    run: (ctx, _id, { name, sandbox }) => createOrganization(ctx, name, sandbox),
  }),
  formOf(createBrand),
  defineAction({
    is: ["/brands/:id/products/new", "product create", "Create a product"],
    role: "admin",
    fields: {
      name: line("Name", 200, "Customers see it."),
      key: line("Key", 200, "For programs, unique within the brand: day-pass"),
      type: oneOf("Type", VOUCHER_TYPES),
      retailPriceUsd: dollars("List price"),
      priceUsd: dollars("Price of the voucher"),
      benefitMonths: integer("Months", 0, 1_200, "0", "How long the benefit lasts. 0: not stated."),
      usageUnitLabel: optionalLine("Usage unit", 200, "In which uses are counted, such as visit."),
    },
    refused: "key",
    creates: (id) => `/products/${id}/batches/new`,
    run: (ctx, brandId, values) => createProduct(ctx, { ...values, brandId }),
  }),
  formOf(issueBatch),
  defineAction({
    is: ["/batches/:id/listings/new", "listing create", "List the batch on the marketplace"],
    role: "operator",
    about: () => "Users can buy the listed vouchers while the batch is open to buy.",
    creates: (_id, batchId) => `/batches/${batchId}`,
    run: async (ctx, batchId) => (await createListing(ctx, batchId)).id,
  }),
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
