import { expect, it } from "vitest";
import type { ListedRedemptionView } from "../../src/core/redeem/api/redemptions.ts";
import { type SpreadsheetLanguage, spreadsheetCsv } from "../../src/portal/spreadsheet.ts";

const REDEMPTION: ListedRedemptionView = {
  externalRef: "order-1",
  voucherInstanceId: "vch_1",
  redeemCode: "K3Q8-2MZX-9HTB",
  serial: 7,
  productName: "Day pass",
  productKey: "day",
  discountPriceUsd: 12.5,
  benefitMonths: 0,
  ticket: null,
  redeemedAt: "2026-11-24T10:05:09.123Z",
  keyId: "key_1",
  keyLabel: null,
  verifyUrl: "https://v.test/1",
};

const COLUMNS = [
  ...["externalRef", "voucherInstanceId", "redeemCode", "serial", "productName", "productKey", "discountPriceUsd"],
  ...["currency", "benefitMonths", "redeemedAtUtc", "ticket", "keyId", "keyLabel", "verifyUrl"],
];

it("a CSV file for spreadsheets has amounts, a currency and times that Excel can read", async () => {
  const quoted = (cells: readonly string[]) => cells.map((cell) => `"${cell}"`).join();
  expect(await linesIn("en", {}, { discountPriceUsd: 10 })).toEqual([
    `\ufeff${quoted(COLUMNS)}`,
    quoted([
      ...["order-1", "vch_1", "K3Q8-2MZX-9HTB", "7", "Day pass", "day", "12.50", "USD", "0", "2026-11-24 10:05:09"],
      ...["", "key_1", "", "https://v.test/1"],
    ]),
    expect.stringContaining(',"10.00","USD",'),
  ]);
});

it("a CSV file for spreadsheets has a semicolon as its separator in languages with a decimal comma", async () => {
  for (const language of ["de", "fr", "es", "nl"] as const) {
    const [head, line] = await linesIn(language, { productName: "Tag; Nacht" });
    expect(head).toContain('"serial";"productName";');
    expect(line).toContain(';"7";"Tag; Nacht";"day";"12,50";"USD";"0";');
  }
});

it("a CSV file for spreadsheets puts an apostrophe before formulas, and changes no other text", async () => {
  const formulas = ["=1+1", "+49", "-1", "@SUM(A1)", "\tx", '=HYPERLINK("http://x","y")', "\r=1"];
  const others = ["order-1", "00123", "1E5", "MAR-1", "a=b", " =1", "O'Neill", '"x"'];
  for (const [texts, mark] of [
    [formulas, "'"],
    [others, ""],
  ] as const) {
    for (const text of texts) {
      const cell = `"${mark}${text.replaceAll('"', '""')}"`;
      const [, line] = await linesIn("en", { externalRef: text, productName: text, keyLabel: text });
      expect(line?.startsWith(`${cell},"vch_1",`)).toBe(true);
      expect(line).toContain(`"7",${cell},"day",`);
      expect(line).toContain(`"key_1",${cell},`);
    }
  }
});

async function linesIn(language: SpreadsheetLanguage, ...changes: Partial<ListedRedemptionView>[]) {
  async function* pages() {
    yield changes.map((change) => ({ ...REDEMPTION, ...change }));
  }
  let text = "";
  for await (const part of spreadsheetCsv(pages(), language)) text += part;
  return text.split("\r\n").slice(0, -1);
}
