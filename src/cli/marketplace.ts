import { type Command, Option } from "commander";
import { selectWindows } from "../db/catalogue.ts";
import { insertMember } from "../db/contracts.ts";
import { insertListing } from "../db/listings.ts";
import { violates } from "../db/transaction.ts";
import { MEMBER_ROLES, type MemberRole } from "../domain/audience.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import { changeContract, makeLink, offerContract } from "../services/manage-contracts.ts";
import { recordAct } from "../services/record-act.ts";
import { action } from "./command.ts";
import { showMomentUtc } from "./figures.ts";
import { isoDate, subject } from "./option-parsers.ts";

/** `member`, `contract`, `link` and `listing`: who may take supply from open windows, and what is offered. */
export function addMarketplaceCommands(program: Command): void {
  addMemberCommands(program);
  addContractCommands(program);
  addLinkCommands(program);
  addListingCommands(program);
}

function addMemberCommands(program: Command): void {
  const member = program.command("member").description("people of an organization");
  action<{ org: string; user: string; role: MemberRole }>(
    member
      .command("add")
      .description("make a user a member, or change their role; owners are never locked out of their own supply")
      .requiredOption("--org <id>", "the organization")
      .requiredOption("--user <sub>", "the subject of the user's tokens", subject)
      .addOption(new Option("--role <role>", "what they are to it").choices(MEMBER_ROLES).makeOptionMandatory()),
    ["member add --org org_… --user alice --role owner"],
    async (ctx, { org, user, role }) => {
      await recordAct(ctx, { type: "Member", id: `${org}/${user}` }, (tx) => insertMember(tx, org, user, role));
      await ctx.print({ organizationId: org, user, role }, () => `${user} is ${role} of ${org}.`);
    },
  );
}

function addContractCommands(program: Command): void {
  const contract = program.command("contract").description("referrer contracts between users and brands");
  action<{ brand: string; user: string; endsAt?: Date }>(
    contract
      .command("offer")
      .description("offer a user a contract; it opens nothing before it is accepted")
      .requiredOption("--brand <id>", "the brand")
      .requiredOption("--user <sub>", "the subject of the user's tokens", subject)
      .option("--ends-at <moment>", "from when on it opens nothing any more", isoDate),
    ["contract offer --brand brd_… --user bob", "contract offer --brand brd_… --user bob --ends-at 2027-12-31"],
    async (ctx, { brand, user, endsAt }) => {
      const id = await offerContract(ctx, { brandId: brand, userId: user, endsAt: endsAt ?? null });
      const end = endsAt === undefined ? "" : `, until ${showMomentUtc(endsAt)}`;
      const ended = endsAt !== undefined && endsAt <= new Date() ? "\nThat is past: it will open nothing." : "";
      await ctx.print({ id }, () => `Contract ${id} is offered to ${user}${end}.${ended}`);
    },
  );
  const moves = [
    ["accept", "Active", "accept an offered contract: it is active now"],
    ["decline", "Declined", "decline an offered contract"],
    ["end", "Ended", "end an active contract; its links lead nowhere any more"],
  ] as const;
  for (const [verb, status, description] of moves) {
    action(
      contract.command(`${verb} <id>`).description(description),
      [`contract ${verb} ctr_…`],
      async (ctx, _options, id = "") => {
        await changeContract(ctx, id, status);
        await ctx.print({ id, status }, () => `Contract ${id} is ${status}.`);
      },
    );
  }
}

function addLinkCommands(program: Command): void {
  const link = program.command("link").description("referrers' own links to products");
  action<{ contract: string; product: string }>(
    link
      .command("create")
      .description("make a link through which everyone may claim, while the contract is active")
      .requiredOption("--contract <id>", "the referrer's contract")
      .requiredOption("--product <id>", "a product of the contract's brand"),
    ["link create --contract ctr_… --product prd_…"],
    async (ctx, { contract, product }) => {
      const code = await makeLink(ctx, contract, product);
      await ctx.print({ code }, () => `Users claim with POST /r/${code}/claim`);
    },
  );
}

function addListingCommands(program: Command): void {
  const listing = program.command("listing").description("batches that are offered on the marketplace");
  action<{ batch: string }>(
    listing
      .command("create")
      .description("offer a batch; it is bought through its buy window")
      .requiredOption("--batch <id>", "the batch"),
    ["listing create --batch bat_…"],
    async (ctx, { batch }) => {
      const id = newId("lst");
      const { buy } = await recordAct(ctx, { type: "Listing", id }, async (tx) => {
        await insertListing(tx, id, batch);
        return selectWindows(tx, batch);
      }).catch((error) => {
        if (!violates(error, "listings_batch_id_key")) throw error;
        throw new AppError("invalid_request", `Batch ${batch} is listed already.`, { cause: error });
      });
      const closed = buy === null ? "\nNobody can buy from it: the batch has no buy window." : "";
      await ctx.print({ id }, () => `Listing ${id} offers batch ${batch}.${closed}`);
    },
  );
}
