import { insertListing, selectWindows } from "../../core/catalog/db/catalog.ts";
import { newId } from "../../core/voucher/ids.ts";
import { act, CREATED } from "../act.ts";
import { refuseIfTaken, withAuditEntry } from "../with-audit-entry.ts";

export const createListing = act({
  name: "listing create",
  on: "batch",
  creates: "listing",
  role: "operator",
  scope: "issuer",
  title: "List the batch on the marketplace",
  about: "Users can buy the listed vouchers while the batch is open to buy.",
  examples: ["--batch bat_…"],
  fields: {},
  refusals: ["already_exists"],
  result: CREATED,
  async run(ctx, batchId) {
    const id = newId("lst");
    const created = withAuditEntry(ctx, { type: "Listing", id }, async (tx) => {
      await insertListing(tx, { id, batchId });
      return selectWindows(tx, batchId);
    });
    const { buy } = await refuseIfTaken("listings_batch_id_key", (t) => t("inDetail.exists.listing"), created);
    return { id, canBeBought: buy !== null };
  },
  said: ({ id, canBeBought }, _values, batchId) =>
    `Listing ${id} offers batch ${batchId}.${
      canBeBought ? "" : "\nWarning: users cannot buy these vouchers, because the batch has no buy window."
    }`,
  next: ({ id }) => `GET /marketplace/listings/${id} shows the listing as users see it`,
});
