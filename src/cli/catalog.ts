import { createListing, createOrganization, createProduct } from "../acts/manage-catalog.ts";
import { findNamesake } from "../core/catalog/db/catalog.ts";
import { VOUCHER_TYPES } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { formatUsd, formatUtc } from "./format.ts";
import { listVerb } from "./list.ts";
import { dollars, flag, integer, name, option, required } from "./options.ts";

const FORCE = flag("do not ask when the name is already in use");

/**
 * Asks before creating a second organization, brand or product with the same name. Without a terminal, only warns. With
 * `--force` or `--json` it does neither, because scripts may reuse a name.
 * @param parentId the organization of a brand or the brand of a product; null for an organization.
 * @throws AppError `invalid_request` when the answer is no.
 */
async function confirmName(
  ctx: CommandContext,
  parentId: string | null,
  { name, force }: { name: string; force: true | undefined },
): Promise<void> {
  const namesake = force ? null : await findNamesake(ctx.pool, { parentId, name });
  if (namesake === null) return;
  const found = `There is already ${namesake} with the name ${name}.`;
  const answer = await ctx.confirm(`${found} Create another one?`);
  if (answer === false) throw new AppError("invalid_request", "Nothing was created.");
  if (answer === null) ctx.warn(`${found} Another one is created.`);
}

export const org: Noun = {
  name: "org",
  description: "organizations, which own brands and API keys",
  verbs: {
    create: verb({
      description: "create an organization",
      options: {
        name: required("<name>", "its name", name),
        sandbox: flag("for tests: its keys begin with pvt_ and its vouchers have no value; permanent"),
        force: FORCE,
      },
      examples: ['--name "Corner Shop"', '--name "Corner Shop tests" --sandbox'],
      async run(ctx, options) {
        await confirmName(ctx, null, options);
        const { name, sandbox = false } = options;
        const id = await createOrganization(ctx, name, sandbox);
        const kind = sandbox ? "Sandbox organization" : "Organization";
        ctx.print({ id, ...markSandbox(sandbox) }, () => `${kind} ${name}: ${id}`);
        ctx.next(`voucherctl brand create --org ${id} --name NAME`);
      },
    }),
    list: listVerb("organizations", {
      cursor: /^org_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, sandbox }) => ({
        cells: [id, formatUtc(createdAt), `${name}${sandbox ? " (sandbox)" : ""}`],
      }),
      examples: ['--name "corner"', "--limit 1000 --json"],
    }),
  },
};

export const brand: Noun = {
  name: "brand",
  description: "brands of an organization",
  verbs: {
    list: listVerb("brands", {
      cursor: /^brd_/,
      headings: ["ID", "CREATED (UTC)", "NAME"],
      toRow: ({ id, createdAt, name, organizationId }) => ({
        cells: [id, formatUtc(createdAt), name],
        note: organizationId,
      }),
      examples: ["--org org_…"],
    }),
  },
};

export const product: Noun = {
  name: "product",
  description: "products of a brand; each batch of vouchers is for one product",
  verbs: {
    create: verb({
      description: "create a product",
      options: {
        brand: required("<id>", "the brand it belongs to"),
        key: required("<key>", "its key, unique within the brand", name),
        name: required("<name>", "its name, which partners see", name),
        type: required("<type>", "the type of voucher", VOUCHER_TYPES),
        retailPriceUsd: required("<dollars>", "list price", dollars),
        priceUsd: required("<dollars>", "price of the voucher", dollars),
        benefitMonths: option("<months>", "duration of the benefit; 0 means that none is stated", integer(0, 1_200), 0),
        usageUnitLabel: option("<label>", "unit in which uses are counted, such as visit", name),
        force: FORCE,
      },
      examples: [
        '--brand brd_… --key day --name "Day pass" --type Service --retail-price-usd 19.90 --price-usd 15',
        '--brand brd_… --key club --name "Club, a year" --type Subscription --retail-price-usd 120 --price-usd 99 ' +
          "--benefit-months 12",
      ],
      async run(ctx, { brand: brandId, force, usageUnitLabel = null, ...terms }) {
        await confirmName(ctx, brandId, { name: terms.name, force });
        const id = await createProduct(ctx, { ...terms, brandId, usageUnitLabel });
        ctx.print({ id }, () => `Product ${terms.name}: ${id}`);
        ctx.next(`voucherctl batch issue --product ${id} --count N --valid-until TIME --out FILE.csv`);
      },
    }),
    list: listVerb("products", {
      cursor: /^prd_/,
      headings: ["ID", "PRICE", "TYPE", "NAME"],
      toRow: ({ id, priceUsd, type, key, name, brandId }) => ({
        cells: [id, formatUsd(priceUsd), type, name],
        note: `${key}, ${brandId}`,
      }),
      examples: ["--brand brd_…", '--org org_… --name "pass"'],
    }),
  },
};

export const listing: Noun = {
  name: "listing",
  description: "batches listed on the marketplace",
  verbs: {
    create: verb({
      description: "list a batch, from which users can buy while its buy window is open",
      options: { batch: required("<id>", "the batch") },
      examples: ["--batch bat_…"],
      async run(ctx, { batch }) {
        const { id, canBeBought } = await createListing(ctx, batch);
        const warning = "\nWarning: users cannot buy these vouchers, because the batch has no buy window.";
        ctx.print({ id }, () => `Listing ${id} offers batch ${batch}.${canBeBought ? "" : warning}`);
        ctx.next(`GET /marketplace/listings/${id} shows the listing as users see it`);
      },
    }),
    list: listVerb("listings", {
      cursor: /^lst_/,
      headings: ["ID", "VALID UNTIL (UTC)", "PRODUCT"],
      toRow: ({ id, batchId, validUntil, audience, productName }) => ({
        cells: [id, formatUtc(validUntil), productName],
        note: `${batchId}, ${audience}`,
      }),
      examples: ["--org org_…"],
    }),
  },
};
