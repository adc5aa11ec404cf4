import { hash } from "node:crypto";
import { z } from "zod";
import { insertLink } from "../../core/catalog/db/contracts.ts";
import { makeLinkCode } from "../../core/voucher/codes.ts";
import { AppError } from "../../platform/api/errors.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { product } from "../fields.ts";
import { withAuditEntry } from "../with-audit-entry.ts";

export const createLink = act({
  name: "link create",
  on: "contract",
  creates: "link",
  role: "operator",
  scope: "issuer",
  title: "Create a link",
  about: "Each signed-in user can claim a voucher with the link while the contract is active.",
  examples: ["--contract ctr_… --product prd_…"],
  fields: { product: product("Product") },
  refused: "product",
  result: z.object({ code: shown("The link's code: users claim with it under `/r/{code}`.", EXAMPLE.linkCode) }),
  async run(ctx, contractId, { product: productId }) {
    const code = makeLinkCode(ctx.randomBytes);
    await withAuditEntry(ctx, { type: "ReferralLink", id: hash("sha256", code) }, async (tx) => {
      if (await insertLink(tx, { code, contractId, productId })) return;
      throw new AppError("not_found", (t) =>
        t("inDetail.noProductOfContract", { contract: contractId, product: productId }),
      );
    });
    return { code };
  },
  said: ({ code }) => `Users claim a voucher with POST /r/${code}/claim`,
  next: () => "give the referrer the link; voucherctl batch issue --claim opens a window if the product has none",
});
