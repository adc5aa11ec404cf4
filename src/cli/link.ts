import { makeLink } from "../services/admin/manage-contracts.ts";
import { action, type Noun } from "./command.ts";
import { formatUtc } from "./format.ts";
import { addList } from "./list.ts";

export const link: Noun = {
  name: "link",
  description: "referral links to products",
  addVerbs(noun) {
    action<{ contract: string; product: string }>(
      noun
        .command("create")
        .description("create a link; any user can claim a voucher with it while the contract is active")
        .requiredOption("--contract <id>", "the referrer's contract")
        .requiredOption("--product <id>", "a product of the contract's brand"),
      ["link create --contract ctr_… --product prd_…"],
      async (ctx, { contract, product }) => {
        const code = await makeLink(ctx, contract, product);
        ctx.print({ code }, () => `Users claim a voucher with POST /r/${code}/claim`);
        ctx.next("give the referrer the link; voucherctl batch issue --claim opens a window if the product has none");
      },
    );
    addList(noun, {
      list: "links",
      cursor: /^[0-9a-z]+$/,
      headings: ["CODE", "CREATED (UTC)", "PRODUCT", "REFERRER"],
      toRow: ({ code, createdAt, productId, userId, contractId }) => ({
        cells: [code, formatUtc(createdAt), productId, userId],
        note: contractId,
      }),
      examples: ["link list --contract ctr_…", "link list --user bob"],
    });
  },
};
