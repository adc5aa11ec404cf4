import { Option } from "commander";
import { VOUCHER_TYPES } from "../domain/voucher.ts";
import { createProduct } from "../services/admin/manage-catalog.ts";
import { action, type Noun } from "./command.ts";
import { confirmName } from "./confirm.ts";
import { formatUsd } from "./format.ts";
import { addList } from "./list.ts";
import { dollars, FORCE_NAME, integer, name } from "./option-parsers.ts";

type Options = Omit<Parameters<typeof createProduct>[1], "brandId" | "usageUnitLabel"> & {
  brand: string;
  usageUnitLabel?: string;
  force?: boolean;
};

export const product: Noun = {
  name: "product",
  description: "products of a brand; each batch of vouchers is for one product",
  addVerbs(noun) {
    action<Options>(
      noun
        .command("create")
        .description("create a product")
        .requiredOption("--brand <id>", "the brand it belongs to")
        .requiredOption("--key <key>", "its key, unique within the brand", name)
        .requiredOption("--name <name>", "its name, which partners see", name)
        .addOption(new Option("--type <type>", "the type of voucher").choices(VOUCHER_TYPES).makeOptionMandatory())
        .requiredOption("--retail-price-usd <dollars>", "list price", dollars)
        .requiredOption("--price-usd <dollars>", "price of the voucher", dollars)
        .option(
          "--benefit-months <months>",
          "duration of the benefit; 0 means that none is stated",
          integer(0, 1_200),
          0,
        )
        .option("--usage-unit-label <label>", "unit in which uses are counted, such as visit", name)
        .option("--force", FORCE_NAME),
      [
        'product create --brand brd_… --key day --name "Day pass" --type Service --retail-price-usd 19.90 --price-usd 15',
        'product create --brand brd_… --key club --name "Club, a year" --type Subscription --retail-price-usd 120 --price-usd 99 --benefit-months 12',
      ],
      async (ctx, { brand, usageUnitLabel, force, ...options }) => {
        await confirmName(ctx, brand, { name: options.name, ...(force && { force }) });
        const id = await createProduct(ctx, { ...options, brandId: brand, usageUnitLabel: usageUnitLabel ?? null });
        ctx.print({ id }, () => `Product ${options.name}: ${id}`);
        ctx.next(`voucherctl batch issue --product ${id} --count N --valid-until TIME --out FILE.csv`);
      },
    );
    addList(noun, {
      list: "products",
      cursor: /^prd_/,
      headings: ["ID", "PRICE", "TYPE", "NAME"],
      toRow: ({ id, priceUsd, type, key, name, brandId }) => ({
        cells: [id, formatUsd(priceUsd), type, name],
        note: `${key}, ${brandId}`,
      }),
      examples: ["product list --brand brd_…", 'product list --org org_… --name "pass"'],
    });
  },
};
