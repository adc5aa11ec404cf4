import { createListing } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { formatUtc } from "./format.ts";
import { addList } from "./list.ts";

export const listing: Noun = {
  name: "listing",
  description: "batches listed on the marketplace",
  addVerbs(noun) {
    action<{ batch: string }>(
      noun
        .command("create")
        .description("list a batch, from which users can buy while its buy window is open")
        .requiredOption("--batch <id>", "the batch"),
      ["listing create --batch bat_…"],
      async (ctx, { batch }) => {
        const { id, canBeBought } = await createListing(ctx, batch);
        const warning = canBeBought
          ? ""
          : "\nWarning: users cannot buy these vouchers, because the batch has no buy window.";
        ctx.print({ id }, () => `Listing ${id} offers batch ${batch}.${warning}`);
        ctx.next(`GET /marketplace/listings/${id} shows the listing as users see it`);
      },
    );
    addList(noun, {
      list: "listings",
      cursor: /^lst_/,
      headings: ["ID", "VALID UNTIL (UTC)", "PRODUCT"],
      toRow: ({ id, batchId, validUntil, audience, productName }) => ({
        cells: [id, formatUtc(validUntil), productName],
        note: `${batchId}, ${audience}`,
      }),
      examples: ["listing list --org org_…"],
    });
  },
};
