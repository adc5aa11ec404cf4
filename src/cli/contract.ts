import { addMember, changeContract, makeLink, offerContract } from "../acts/manage-contracts.ts";
import { MEMBER_ROLES } from "../core/catalog/audience.ts";
import { confirmLoss, type Noun, type Verb, verb } from "./command.ts";
import { formatUtc, formatUtcWithZone } from "./format.ts";
import { listVerb } from "./list.ts";
import { ORG, option, required, subject, time, YES } from "./options.ts";

const USER = required("<sub>", "the subject of the user's tokens", subject);

export const member: Noun = {
  name: "member",
  description: "members of an organization",
  verbs: {
    add: verb({
      description: "add a member or change a member's role; owners can claim and buy vouchers of any audience",
      options: { org: ORG, user: USER, role: required("<role>", "their role", MEMBER_ROLES) },
      examples: ["--org org_… --user alice --role owner"],
      async run(ctx, { org, user, role }) {
        const member = { organizationId: org, user, role };
        await addMember(ctx, member);
        ctx.print(member, () => `${user} is ${role} of ${org}.`);
      },
    }),
  },
};

export const contract: Noun = {
  name: "contract",
  description: "referrer contracts between users and brands",
  verbs: {
    offer: verb({
      description: "offer a user a contract; it has no effect until it is accepted",
      options: {
        brand: required("<id>", "the brand"),
        user: USER,
        endsAt: option("<time>", "when it ends, or its last day", time("end")),
      },
      examples: ["--brand brd_… --user bob", "--brand brd_… --user bob --ends-at 2027-12-31"],
      async run(ctx, { brand, user, endsAt }) {
        const id = await offerContract(ctx, { brandId: brand, userId: user, endsAt: endsAt ?? null });
        const end = endsAt === undefined ? "" : ` It ends at ${formatUtcWithZone(endsAt)}.`;
        ctx.print({ id }, () => `Offered contract ${id} to ${user}.${end}`);
        ctx.next(`voucherctl contract accept ${id}`);
      },
    }),
    "accept <id>": transition("Active", "accept an offered contract, which activates it"),
    "decline <id>": transition("Declined", "decline an offered contract"),
    "end <id>": transition("Ended", "end an active contract; its links stop working"),
    list: listVerb("contracts", {
      cursor: /^ctr_/,
      headings: ["ID", "STATUS", "ENDS (UTC)", "USER"],
      toRow: ({ id, status, offeredAt, endsAt, userId, brand, brandId }) => ({
        cells: [id, status, endsAt === null ? "-" : formatUtc(endsAt), userId],
        note: `offered ${formatUtc(offeredAt)} by ${brand}, ${brandId}`,
      }),
      examples: ["--brand brd_… --status Active", "--user bob"],
    }),
  },
};

function transition(status: "Active" | "Declined" | "Ended", description: string): Verb {
  const isLoss = status === "Ended";
  return verb({
    description,
    options: (isLoss ? { yes: YES } : {}) as { yes: typeof YES },
    examples: ["ctr_…"],
    async run(ctx, { yes }, id) {
      if (isLoss) await confirmLoss(ctx, yes, `This permanently ends contract ${id} and its links.`);
      await changeContract(ctx, id, status);
      ctx.print({ id, status }, () => `Contract ${id} is ${status}.`);
      if (status === "Active") ctx.next(`voucherctl link create --contract ${id} --product ID`);
    },
  });
}

export const link: Noun = {
  name: "link",
  description: "referral links to products",
  verbs: {
    create: verb({
      description: "create a link; any user can claim a voucher with it while the contract is active",
      options: {
        contract: required("<id>", "the referrer's contract"),
        product: required("<id>", "a product of the contract's brand"),
      },
      examples: ["--contract ctr_… --product prd_…"],
      async run(ctx, { contract, product }) {
        const code = await makeLink(ctx, contract, product);
        ctx.print({ code }, () => `Users claim a voucher with POST /r/${code}/claim`);
        ctx.next("give the referrer the link; voucherctl batch issue --claim opens a window if the product has none");
      },
    }),
    list: listVerb("links", {
      cursor: /^[0-9a-z]+$/,
      headings: ["CODE", "CREATED (UTC)", "PRODUCT", "REFERRER"],
      toRow: ({ code, createdAt, productId, userId, contractId }) => ({
        cells: [code, formatUtc(createdAt), productId, userId],
        note: contractId,
      }),
      examples: ["--contract ctr_…", "--user bob"],
    }),
  },
};
