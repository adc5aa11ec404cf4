import { type Command, InvalidArgumentError, Option } from "commander";
import { insertMember } from "../db/contracts.ts";
import { insertListing } from "../db/listings.ts";
import { violates } from "../db/transaction.ts";
import { MEMBER_ROLES, type MemberRole } from "../domain/audience.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import { changeContract, makeLink, offerContract } from "../services/manage-contracts.ts";
import { recordAct } from "../services/record-act.ts";
import { action, isoDate } from "./command.ts";

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
    async (ctx, { org, user, role }) => {
      await recordAct(ctx, { type: "Member", id: `${org}/${user}` }, (tx) => insertMember(tx, org, user, role));
      ctx.print({ organizationId: org, user, role }, `${user} is ${role} of ${org}.`);
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
    async (ctx, { brand, user, endsAt }) => {
      const id = await offerContract(ctx, { brandId: brand, userId: user, endsAt: endsAt ?? null });
      ctx.print({ id }, `Contract ${id} is offered to ${user}.`);
    },
  );
  const moves = [
    ["accept", "Active", "accept an offered contract: it is active now"],
    ["decline", "Declined", "decline an offered contract"],
    ["end", "Ended", "end an active contract; its links lead nowhere any more"],
  ] as const;
  for (const [verb, status, description] of moves) {
    action(contract.command(`${verb} <id>`).description(description), async (ctx, _options, id = "") => {
      await changeContract(ctx, id, status);
      ctx.print({ id, status }, `Contract ${id} is ${status}.`);
    });
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
    async (ctx, { contract, product }) => {
      const code = await makeLink(ctx, contract, product);
      ctx.print({ code }, `Users claim with POST /r/${code}/claim`);
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
    async (ctx, { batch }) => {
      const id = newId("lst");
      try {
        await recordAct(ctx, { type: "Listing", id }, (tx) => insertListing(tx, id, batch));
      } catch (error) {
        if (!violates(error, "listings_batch_id_key")) throw error;
        throw new AppError("invalid_request", `Batch ${batch} is listed already.`, { cause: error });
      }
      ctx.print({ id }, `Listing ${id} offers batch ${batch}.`);
    },
  );
}

/** Option parser: the subject of a user's tokens. */
export function subject(text: string): string {
  if (text === "" || text.length > 255 || /\p{Cc}/u.test(text)) {
    throw new InvalidArgumentError("Give 1 to 255 characters on one line.");
  }
  return text;
}
