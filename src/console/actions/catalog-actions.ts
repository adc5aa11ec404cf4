import { COUNT_MAX, issueBatch } from "../../acts/issue-batch.ts";
import { createBrand, createListing, createOrganization, createProduct } from "../../acts/manage-catalog.ts";
import { voidBatch } from "../../acts/void-batch.ts";
import { voidVoucher } from "../../acts/void-voucher.ts";
import { releaseLease } from "../../core/reserve/lease.ts";
import { normaliseCode } from "../../core/voucher/codes.ts";
import { AUDIENCES, VOUCHER_TYPES } from "../../core/voucher/voucher.ts";
import { html } from "../../pages/html.ts";
import { defineAction, FieldProblem } from "./action.ts";
import {
  box,
  confirmation,
  dollars,
  integer,
  line,
  oneOf,
  optionalLine,
  optionalTime,
  someOf,
  time,
} from "./fields.ts";

const REASON = optionalLine("Reason", 200, "Kept in the sealed history.");

/** Creates what partners sell, each step leading to the next, and voids it. */
export const CATALOG_ACTIONS = [
  defineAction({
    is: ["/organizations/new", "org create", "Create an organization"],
    fields: {
      name: line("Name", 200, "The partner, as operators see it."),
      sandbox: box(
        "Sandbox: for tests. Its keys begin with pvt_, its vouchers have no value. This cannot be changed later.",
      ),
    },
    creates: (id) => `/organizations/${id}/brands/new`,
    run: (ctx, _id, { name, sandbox }) => createOrganization(ctx, name, sandbox),
  }),
  defineAction({
    is: ["/organizations/:id/brands/new", "brand create", "Create a brand"],
    fields: { name: line("Name", 200, "Partners and customers see it.") },
    creates: (id) => `/brands/${id}/products/new`,
    run: (ctx, organizationId, { name }) => createBrand(ctx, organizationId, name),
  }),
  defineAction({
    is: ["/brands/:id/products/new", "product create", "Create a product"],
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
  defineAction({
    is: ["/products/:id/batches/new", "batch issue", "Issue a batch of vouchers"],
    about: () =>
      "If you leave the page while it counts, nothing is issued. A batch of up to 1,000 vouchers is issued at once.",
    creates: (id) => `/batches/${id}`,
    fields: {
      count: integer("Number of vouchers", 1, COUNT_MAX),
      validUntil: time("Valid until", "end"),
      audience: oneOf("Who may claim or buy", AUDIENCES, "This cannot be changed later."),
      windows: someOf("Open to users", ["claim", "buy"], { hint: "None: only who has a code can use it." }),
      opensAt: optionalTime("Opens at", "start"),
      closesAt: optionalTime("Closes at", "end"),
    },
    run: async (ctx, productId, { count, validUntil, audience, windows: kinds, opensAt, closesAt }) => {
      const refuse = (field: string, sentence: string) => {
        throw new FieldProblem(field, sentence);
      };
      if (kinds.length === 0 && (opensAt ?? closesAt) !== null)
        refuse("windows", "needs a choice, because a time is given");
      if (opensAt !== null && opensAt >= validUntil) refuse("opensAt", "must be earlier than the end of the vouchers");
      if (opensAt !== null && closesAt !== null && closesAt <= opensAt)
        refuse("closesAt", "must be later than the opening");
      const windows = Object.fromEntries(kinds.map((kind) => [kind, { opensAt, closesAt }]));
      const { id } = await issueBatch(
        ctx,
        { productId, count, validUntil, audience, windows, codes: null },
        (vouchers) => {
          const { serial = 0 } = vouchers.at(-1) ?? {};
          if (serial < count) ctx.advance(serial, count);
        },
      );
      return id;
    },
  }),
  defineAction({
    is: ["/batches/:id/listings/new", "listing create", "List the batch on the marketplace"],
    about: () => "Users can buy the listed vouchers while the batch is open to buy.",
    creates: (_id, batchId) => `/batches/${batchId}`,
    run: async (ctx, batchId) => (await createListing(ctx, batchId)).id,
  }),
  defineAction({
    is: ["/vouchers/:id/void", "voucher void", "Void the voucher"],
    about: () => "It can never be used again, and its reservation ends.",
    fields: { code: confirmation("The voucher's code, to confirm,"), reason: REASON },
    run: async (ctx, id, { code, reason }, lineage) => {
      const isRight = normaliseCode(code) === normaliseCode(String(lineage.code));
      if (!isRight) throw new FieldProblem("code", "is not the code of this voucher");
      const { endedTicket } = await voidVoucher(ctx, lineage.organizationId, code, reason);
      if (endedTicket !== null) await releaseLease(ctx.api, id, endedTicket);
      return `/vouchers/${id}`;
    },
  }),
  defineAction({
    is: ["/batches/:id/void", "batch void", "Void the batch"],
    about: ({
      productName,
    }) => html`All active vouchers of this batch of <bdi>${productName}</bdi> can never be used again.
If you stop the run, another one continues it.`,
    fields: { product: confirmation("The product's name, to confirm,"), reason: REASON },
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
