import { insertBrand } from "../../core/catalog/db/catalog.ts";
import { newId } from "../../core/voucher/ids.ts";
import { act } from "../act.ts";
import { text } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const createBrand = act({
  name: "brand create",
  on: "organization",
  creates: "brand",
  role: "admin",
  title: "Create a brand",
  examples: ['--org org_… --name "Corner Coffee"'],
  fields: { name: text("Name", 200, { hint: "Partners and customers see it." }) },
  asksNamesake: true,
  async run(ctx, organizationId, { name }) {
    const id = newId("brd");
    await withAuditEntry(ctx, { type: "Brand", id }, (tx) => insertBrand(tx, { id, organizationId, name }));
    return { id };
  },
  said: ({ id }, { name }) => `Brand ${name}: ${id}`,
  next: ({ id }) => `voucherctl product create --brand ${id} --key KEY --name NAME --type TYPE …`,
  leadsTo: "product",
});
