import { insertProduct } from "../../core/catalog/db/catalog.ts";
import { newId } from "../../core/voucher/ids.ts";
import { VOUCHER_TYPES } from "../../core/voucher/voucher.ts";
import { act } from "../act.ts";
import { choice, dollars, integer, optional, text } from "../fields.ts";
import { refuseIfTaken, withAuditEntry } from "../with-audit-entry.ts";

export const createProduct = act({
  name: "product create",
  on: "brand",
  creates: "product",
  role: "admin",
  scope: "issuer",
  title: "Create a product",
  examples: [
    '--brand brd_… --key day --name "Day pass" --type Service --retail-price-usd 19.90 --price-usd 15',
    '--brand brd_… --key club --name "Club, a year" --type Subscription --retail-price-usd 120 --price-usd 99 ' +
      "--benefit-months 12",
  ],
  fields: {
    name: text("Name", 200, { hint: "Customers see it." }),
    key: text("Key", 200, { hint: "For programs, unique within the brand: day-pass" }),
    type: choice("Type", VOUCHER_TYPES),
    retailPriceUsd: dollars("List price"),
    priceUsd: dollars("Price of the voucher"),
    benefitMonths: integer("Months", 0, 1_200, {
      hint: "How long the benefit lasts. 0: not stated.",
      initial: 0,
    }),
    usageUnitLabel: optional(text("Usage unit", 200, { hint: "In which uses are counted, such as visit." })),
  },
  refused: "key",
  refusals: ["already_exists"],
  asksNamesake: true,
  async run(ctx, brandId, terms) {
    const id = newId("prd");
    const created = withAuditEntry(ctx, { type: "Product", id }, (tx) => insertProduct(tx, { ...terms, id, brandId }));
    await refuseIfTaken(
      "products_brand_id_key_key",
      (t) => t("inDetail.exists.productKey", { key: terms.key }),
      created,
    );
    return { id };
  },
  said: ({ id }, { name }) => `Product ${name}: ${id}`,
  next: ({ id }) => `voucherctl batch issue --product ${id} --count N --valid-until TIME --out FILE.csv`,
  leadsTo: "batch",
});
