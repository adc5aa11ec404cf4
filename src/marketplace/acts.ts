import { hash } from "node:crypto";
import { z } from "zod";
import { type Act, act, CREATED, type Definition } from "../acts/act.ts";
import type { AnyAct } from "../acts/acts.ts";
import { optional, product, subject, time } from "../acts/fields.ts";
import { type AuditContext, refuseIfTaken, withAuditEntry } from "../acts/with-audit-entry.ts";
import { formatUtcWithZone } from "../acts/words.ts";
import { selectWindows } from "../core/catalog/db/catalog.ts";
import { linkAddress, makeLinkCode } from "../core/voucher/codes.ts";
import { newId } from "../core/voucher/ids.ts";
import { AppError } from "../platform/api/errors.ts";
import { EXAMPLE } from "../platform/api/example.ts";
import { text as shown } from "../platform/api/fields.ts";
import type { Config } from "../platform/config.ts";
import { CONTRACT_MOVES } from "./audience.ts";
import { findContractStatus, insertContract, insertLink, moveContract } from "./db/contracts.ts";
import { insertListing } from "./db/listings.ts";

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

export const offerContract = act({
  name: "contract offer",
  on: "brand",
  creates: "contract",
  role: "operator",
  scope: "issuer",
  title: "Offer a referrer a contract",
  about: "It has no effect until it is accepted.",
  examples: ["--brand brd_… --user bob", "--brand brd_… --user bob --ends-at 2027-12-31"],
  fields: {
    user: subject("User", { hint: "The subject of the referrer's tokens." }),
    endsAt: optional(time("Ends at", "end", { future: true })),
  },
  refused: "user",
  refusals: ["already_exists"],
  async run(ctx, brandId, { user: userId, endsAt }) {
    const id = newId("ctr");
    const offered = withAuditEntry(ctx, { type: "ReferrerContract", id }, (tx) =>
      insertContract(tx, { id, brandId, userId, endsAt }),
    );
    await refuseIfTaken("referrer_contracts_one_open", (t) => t("inDetail.exists.contract"), offered);
    return { id };
  },
  said: ({ id }, { user, endsAt }) =>
    `Offered contract ${id} to ${user}.${endsAt === null ? "" : ` It ends at ${formatUtcWithZone(endsAt)}.`}`,
  next: ({ id }) => `voucherctl contract accept ${id}`,
});

type None = Record<never, never>;
type Move = { id: string; status: keyof typeof CONTRACT_MOVES };
type Words = Pick<Definition<None, Move, object>, "title" | "about" | "confirm" | "next">;

/** A change of a contract's status, if CONTRACT_MOVES allows the change. */
const move = (verb: string, status: Move["status"], words: Words): Act<None, Move> =>
  act<None, Move>({
    ...words,
    name: `contract ${verb}`,
    on: "contract",
    role: "operator",
    scope: "issuer",
    examples: ["ctr_…"],
    fields: {},
    refusals: ["wrong_status"],
    result: z.object({ id: shown("The contract's id."), status: shown("Its status.", status) }),
    async run(ctx, id) {
      await withAuditEntry(ctx, { type: "ReferrerContract", id }, async (tx) => {
        if (await moveContract(tx, { id, status, allowed: CONTRACT_MOVES[status] })) return;
        const found = await findContractStatus(tx, id);
        if (found === null) throw new AppError("not_found", `There is no contract ${id}.`);
        throw new AppError("wrong_status", (t) =>
          t("inDetail.contractCannotBecome", { wanted: status, status: found }),
        );
      });
      return { id, status };
    },
    said: ({ id }) => `Contract ${id} is ${status}.`,
  });

export const acceptContract = move("accept", "Active", {
  title: "Accept the contract",
  about: "The referrer has accepted: links can be made.",
  next: ({ id }) => `voucherctl link create --contract ${id} --product ID`,
});

export const declineContract = move("decline", "Declined", {
  title: "Decline the contract",
  about: "The referrer has declined the contract.",
});

export const endContract = move("end", "Ended", {
  title: "End the contract",
  about: "Its links stop working at once, for good.",
  confirm: { loss: (_ctx, id) => `This permanently ends contract ${id} and its links.` },
});

/** The process's configuration, which has the service's public address. */
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

/** All acts on listings, contracts and links, in the order of the help. */
export const ACTS: readonly AnyAct[] = [
  createListing,
  offerContract,
  acceptContract,
  declineContract,
  endContract,
  createLink,
];
