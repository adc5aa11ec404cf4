import { z } from "zod";
import { findLineage, updateBrandName } from "../../core/catalog/db/catalog.ts";
import { AppError } from "../../platform/api/errors.ts";
import { brand, text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { text } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const renameBrand = act({
  name: "brand rename",
  on: "brand",
  role: "admin",
  scope: "issuer",
  title: "Rename the brand",
  about: "Partners and customers see the new name at once, on old vouchers too.",
  examples: ['brd_… --name "Corner Coffee"'],
  fields: { name: text("Name", 200) },
  present: async (db, id) => ({ name: (await findLineage(db, id))?.brandName ?? "" }),
  result: z.object({ id: shown("The brand's id."), name: brand }),
  async run(ctx, id, { name }) {
    await withAuditEntry(ctx, { type: "Brand", id }, async (tx) => {
      if (!(await updateBrandName(tx, { id, name }))) throw new AppError("not_found", `There is no brand ${id}.`);
    });
    return { id, name };
  },
  said: ({ id, name }) => `Brand ${id} is now called ${name}.`,
});
