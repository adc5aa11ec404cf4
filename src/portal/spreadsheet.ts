import type { ListedRedemptionView } from "../core/redeem/api/redemptions.ts";
import { csvCell } from "../platform/text.ts";

/** For each language: the characters with which its spreadsheets separate columns and decimals in a CSV file. */
const SEPARATORS = { en: [",", "."], de: [";", ","], fr: [";", ","], es: [";", ","], nl: [";", ","] } as const;

export type SpreadsheetLanguage = keyof typeof SEPARATORS;
export const SPREADSHEET_LANGUAGES = Object.keys(SEPARATORS) as SpreadsheetLanguage[];

/** A byte order mark, without which Excel does not read a file as UTF-8. */
const MARK = "\ufeff";

type Column = readonly [
  name: string,
  cell: (redemption: ListedRedemptionView, decimal: string) => string | number | null,
];

const COLUMNS: readonly Column[] = [
  ["externalRef", ({ externalRef }) => externalRef],
  ["voucherInstanceId", ({ voucherInstanceId }) => voucherInstanceId],
  ["redeemCode", ({ redeemCode }) => redeemCode],
  ["serial", ({ serial }) => serial],
  ["productName", ({ productName }) => productName],
  ["productKey", ({ productKey }) => productKey],
  ["discountPriceUsd", ({ discountPriceUsd }, decimal) => discountPriceUsd.toFixed(2).replace(".", decimal)],
  ["currency", () => "USD"],
  ["benefitMonths", ({ benefitMonths }) => benefitMonths],
  ["redeemedAtUtc", ({ redeemedAt }) => redeemedAt.slice(0, 19).replace("T", " ")],
  ["ticket", ({ ticket }) => ticket],
  ["keyId", ({ keyId }) => keyId],
  ["keyLabel", ({ keyLabel }) => keyLabel],
  ["verifyUrl", ({ verifyUrl }) => verifyUrl],
];

/** Redemptions as a CSV file that a spreadsheet in this language opens: yields the header, then each page. */
export async function* spreadsheetCsv(
  pages: AsyncIterable<ListedRedemptionView[]>,
  language: SpreadsheetLanguage,
): AsyncGenerator<string> {
  const [separator, decimal] = SEPARATORS[language];
  const lineOf = (values: readonly (string | number | null)[]) => `${values.map(csvCell).join(separator)}\r\n`;
  yield MARK + lineOf(COLUMNS.map(([name]) => name));
  for await (const page of pages) {
    yield page.map((one) => lineOf(COLUMNS.map(([, cell]) => cell(one, decimal)))).join("");
  }
}
