import {
  boolean,
  bytea,
  integer,
  numeric,
  orNull,
  type Row,
  text,
  textOf,
  timestamptz,
} from "../../../platform/db/columns.ts";
import { Statements } from "../../../platform/db/statements.ts";
import type { StoredStatus } from "../../voucher/voucher.ts";

/** What pages show of a brand. `colour` is like `#0a7f5a`. The name `logo` contains a hash of the logo's content. */
const BRAND_FACE = { brand: text, colour: orNull(text), logo: orNull(text) };
export type BrandFace = Row<typeof BRAND_FACE>;

export const sql = new Statements(new URL("./brand-faces.sql", import.meta.url));

export const findBrandFace = sql.row("find_brand_face", BRAND_FACE, { brandId: text });
export const findLogo = sql.value("find_logo", { content: bytea }, { name: text });
export const updateBrandColour = sql.execute("update_brand_colour", { brandId: text, colour: orNull(text) });
export const putLogo = sql.execute("put_logo", {
  brandId: text,
  name: orNull(text),
  content: orNull(bytea),
});
/** What the public page of a voucher shows. Null when there is no such voucher. */
export const findVoucherFace = sql.row(
  "find_voucher_face",
  {
    ...BRAND_FACE,
    status: textOf<StoredStatus>(),
    validUntil: timestamptz,
    suspended: boolean,
    now: timestamptz,
    retailPriceUsd: numeric,
    benefitMonths: integer,
    productName: text,
    timeZone: text,
  },
  { voucherId: text },
);
