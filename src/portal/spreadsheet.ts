import type { ListedRedemptionView } from "../core/redeem/api/redemptions.ts";
import { mayBeChanged } from "./spreadsheet-text.ts";

/** How spreadsheets of a language separate columns and decimals in a CSV file. */
const SEPARATORS = { en: [",", "."], de: [";", ","], fr: [";", ","], es: [";", ","], nl: [";", ","] } as const;

export type SpreadsheetLanguage = keyof typeof SEPARATORS;
export const SPREADSHEET_LANGUAGES = Object.keys(SEPARATORS) as SpreadsheetLanguage[];

/** A byte order mark, without which Excel does not read UTF-8. */
const MARK = "\ufeff";

/** A text that a spreadsheet does not change: with an apostrophe before it if needed. */
const asText = (value: string | null) => (value !== null && mayBeChanged(value) ? `'${value}` : (value ?? ""));

type Column = readonly [name: string, cell: (redemption: ListedRedemptionView, decimal: string) => string | number];

const COLUMNS: readonly Column[] = [
  ["externalRef", ({ externalRef }) => asText(externalRef)],
  ["voucherInstanceId", ({ voucherInstanceId }) => voucherInstanceId],
  ["redeemCode", ({ redeemCode }) => asText(redeemCode)],
  ["serial", ({ serial }) => serial],
  ["productName", ({ productName }) => asText(productName)],
  ["productKey", ({ productKey }) => asText(productKey)],
  ["discountPriceUsd", ({ discountPriceUsd }, decimal) => discountPriceUsd.toFixed(2).replace(".", decimal)],
  ["currency", () => "USD"],
  ["benefitMonths", ({ benefitMonths }) => benefitMonths],
  ["redeemedAtUtc", ({ redeemedAt }) => redeemedAt.slice(0, 19).replace("T", " ")],
  ["ticket", ({ ticket }) => ticket ?? ""],
  ["keyId", ({ keyId }) => keyId],
  ["keyLabel", ({ keyLabel }) => asText(keyLabel)],
  ["verifyUrl", ({ verifyUrl }) => verifyUrl],
];

/**
 * Redemptions as a CSV file that a spreadsheet in this language opens correctly: the header first, then a part for each
 * page.
 */
export async function* spreadsheetCsv(
  pages: AsyncIterable<ListedRedemptionView[]>,
  language: SpreadsheetLanguage,
): AsyncGenerator<string> {
  const [separator, decimal] = SEPARATORS[language];
  const special = new RegExp(`["${separator}\\r\\n]`);
  const quote = (value: string | number) =>
    special.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : value;
  const lineOf = (values: (string | number)[]) => `${values.map(quote).join(separator)}\r\n`;
  yield MARK + lineOf(COLUMNS.map(([name]) => name));
  for await (const page of pages) {
    yield page.map((one) => lineOf(COLUMNS.map(([, cell]) => cell(one, decimal)))).join("");
  }
}
