import { changeContract, offerContract } from "../services/admin/manage-contracts.ts";
import { action, type Noun } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { formatUtc, formatUtcWithZone } from "./format.ts";
import { addList } from "./list.ts";
import { isoDate, subject } from "./option-parsers.ts";

const TRANSITIONS = [
  ["accept", "Active", "accept an offered contract, which activates it"],
  ["decline", "Declined", "decline an offered contract"],
  ["end", "Ended", "end an active contract; its links stop working"],
] as const;

export const contract: Noun = {
  name: "contract",
  description: "referrer contracts between users and brands",
  addVerbs(noun) {
    action<{ brand: string; user: string; endsAt?: Date }>(
      noun
        .command("offer")
        .description("offer a user a contract; it has no effect until it is accepted")
        .requiredOption("--brand <id>", "the brand")
        .requiredOption("--user <sub>", "the subject of the user's tokens", subject)
        .option("--ends-at <time>", "when it ends", isoDate),
      ["contract offer --brand brd_… --user bob", "contract offer --brand brd_… --user bob --ends-at 2027-12-31"],
      async (ctx, { brand, user, endsAt }) => {
        const id = await offerContract(ctx, { brandId: brand, userId: user, endsAt: endsAt ?? null });
        const end = endsAt === undefined ? "" : ` It ends at ${formatUtcWithZone(endsAt)}.`;
        const ended =
          endsAt !== undefined && endsAt <= new Date()
            ? "\nWarning: this time is in the past, so the contract has no effect."
            : "";
        ctx.print({ id }, () => `Offered contract ${id} to ${user}.${end}${ended}`);
        ctx.next(`voucherctl contract accept ${id}`);
      },
    );
    for (const [verb, status, description] of TRANSITIONS) {
      const command = noun.command(`${verb} <id>`).description(description);
      action<{ yes?: true }>(
        verb === "end" ? withYes(command) : command,
        [`contract ${verb} ctr_…`],
        async (ctx, options, id = "") => {
          if (verb === "end") await confirmLoss(ctx, options, `This permanently ends contract ${id} and its links.`);
          await changeContract(ctx, id, status);
          ctx.print({ id, status }, () => `Contract ${id} is ${status}.`);
          if (status === "Active") ctx.next(`voucherctl link create --contract ${id} --product ID`);
        },
      );
    }
    addList(noun, {
      list: "contracts",
      cursor: /^ctr_/,
      headings: ["ID", "STATUS", "ENDS (UTC)", "USER"],
      toRow: ({ id, status, offeredAt, endsAt, userId, brand, brandId }) => ({
        cells: [id, status, endsAt === null ? "-" : formatUtc(endsAt), userId],
        note: `offered ${formatUtc(offeredAt)} by ${brand}, ${brandId}`,
      }),
      examples: ["contract list --brand brd_… --status Active", "contract list --user bob"],
    });
  },
};
