import { type Command, Option } from "commander";
import { insertProduct } from "../db/catalogue.ts";
import { violates } from "../db/transaction.ts";
import { AppError } from "../domain/errors.ts";
import { newId } from "../domain/ids.ts";
import { VOUCHER_TYPES, type VoucherType } from "../domain/voucher.ts";
import { recordAct } from "../services/record-act.ts";
import { action } from "./command.ts";
import { dollars, integer, name } from "./option-parsers.ts";

interface Options {
  brand: string;
  key: string;
  name: string;
  type: VoucherType;
  retailPriceUsd: number;
  priceUsd: number;
  benefitMonths: number;
  usageUnitLabel?: string;
}

/** `product`: what a voucher stands for. */
export function addProductCommands(program: Command): void {
  const product = program.command("product").description("products of a brand, which batches of vouchers stand for");
  action<Options>(
    product
      .command("create")
      .description("make a product")
      .requiredOption("--brand <id>", "the brand it belongs to")
      .requiredOption("--key <key>", "its key, unique within the brand", name)
      .requiredOption("--name <name>", "its name, as partners read it", name)
      .addOption(new Option("--type <type>", "the kind of voucher").choices(VOUCHER_TYPES).makeOptionMandatory())
      .requiredOption("--retail-price-usd <dollars>", "list price", dollars)
      .requiredOption("--price-usd <dollars>", "price of the voucher", dollars)
      .option("--benefit-months <months>", "length of the benefit; 0: no term is stated", integer(0, 1_200), 0)
      .option("--usage-unit-label <label>", "what one use is called", name),
    [
      'product create --brand brd_… --key day --name "Day pass" --type Service --retail-price-usd 19.90 --price-usd 15',
      'product create --brand brd_… --key club --name "Club, a year" --type Subscription --retail-price-usd 120 --price-usd 99 --benefit-months 12',
    ],
    async (ctx, options) => {
      const id = newId("prd");
      try {
        await recordAct(ctx, { type: "Product", id }, (tx) =>
          insertProduct(tx, {
            id,
            brandId: options.brand,
            key: options.key,
            name: options.name,
            type: options.type,
            retailPriceUsd: options.retailPriceUsd,
            priceUsd: options.priceUsd,
            benefitMonths: options.benefitMonths,
            usageUnitLabel: options.usageUnitLabel ?? null,
          }),
        );
      } catch (error) {
        if (!violates(error, "products_brand_id_key_key")) throw error;
        throw new AppError("invalid_request", `The brand has a product with the key ${options.key} already.`, {
          cause: error,
        });
      }
      await ctx.print({ id }, () => `Product ${options.name}: ${id}`);
    },
  );
}
