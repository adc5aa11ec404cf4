import { hash } from "node:crypto";
import { z } from "zod";
import { insertLink } from "../../core/catalog/db/contracts.ts";
import { linkAddress, makeLinkCode } from "../../core/voucher/codes.ts";
import { AppError } from "../../platform/api/errors.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { text as shown } from "../../platform/api/fields.ts";
import type { Config } from "../../platform/config.ts";
import { act } from "../act.ts";
import { product } from "../fields.ts";
import { type AuditContext, withAuditEntry } from "../with-audit-entry.ts";

/** The public address, from a process's configuration. */
export interface LinkSite {
  config: Pick<Config, "baseUrl">;
}

export const linkFields = {
  code: shown("The link's code.", EXAMPLE.linkCode),
  url: shown("The link's address: users claim with it.", `${EXAMPLE.baseUrl}/r/${EXAMPLE.linkCode}`),
};

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
  result: z.object(linkFields),
  async run(ctx: AuditContext & LinkSite, contractId, { product: productId }) {
    const code = makeLinkCode(ctx.randomBytes);
    await withAuditEntry(ctx, { type: "ReferralLink", id: hash("sha256", code) }, async (tx) => {
      if (await insertLink(tx, { code, contractId, productId })) return;
      throw new AppError("not_found", (t) =>
        t("inDetail.noProductOfContract", { contract: contractId, product: productId }),
      );
    });
    return { code, url: linkAddress(ctx.config, code) };
  },
  said: ({ url }) => `The link: ${url}`,
  next: () => "give the referrer the link; voucherctl batch issue --claim opens a window if the product has none",
});
