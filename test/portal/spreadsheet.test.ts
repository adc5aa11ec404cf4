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

it("a CSV file for spreadsheets has amounts, a currency and times that Excel reads", async () => {
  expect(await linesIn("en", {}, { discountPriceUsd: 10 })).toEqual([
    `\ufeff${COLUMNS.join()}`,
    "order-1,vch_1,K3Q8-2MZX-9HTB,7,Day pass,day,12.50,USD,0,2026-11-24 10:05:09,,key_1,,https://v.test/1",
    expect.stringContaining(",10.00,USD,"),
  ]);
});

it("a CSV file for spreadsheets has the separators of languages with a decimal comma", async () => {
  for (const language of ["de", "fr", "es", "nl"] as const) {
    const [head, line] = await linesIn(language, { productName: "Tag; Nacht" });
    expect(head).toContain("serial;productName;");
    expect(line).toContain(';7;"Tag; Nacht";day;12,50;USD;0;');
  }
});

it("a CSV file for spreadsheets has no text that a spreadsheet runs or changes", async () => {
  const changed = ["=1+1", "+49", "-1", "@SUM(A1)", "\tx", "＝1", "00123", "1234567890123456", "1E5", "1.5e+20"];
  const dates = ["2026-11-24", "1-2", "3/4/26", "01.03.2026"];
  const kept = ["order-1", "123456789012345", "7-ELEVEN", "12 34", "O'Neill", "a=b", "0", "1E5x"];
  for (const [texts, mark] of [
    [[...changed, ...dates], "'"],
    [kept, ""],
  ] as const) {
    const lines = await linesIn(
      "en",
      ...texts.map((externalRef) => ({ externalRef, productName: externalRef, keyLabel: externalRef })),
    );
    for (const [at, text] of texts.entries()) {
      const [reference, , , , name, , , , , , , , label] = lines[at + 1]?.split(",") ?? [];
      expect([reference, name, label]).toEqual(Array(3).fill(mark + text));
    }
  }
  expect((await linesIn("en", { externalRef: '=HYPERLINK("http://x","y")' }))[1]).toMatch(
    /^"'=HYPERLINK\(""http:\/\/x"",""y""\)",vch_1,/,
  );
});

async function linesIn(language: SpreadsheetLanguage, ...changes: Partial<ListedRedemptionView>[]) {
  async function* pages() {
    yield changes.map((change) => ({ ...REDEMPTION, ...change }));
  }
  let text = "";
  for await (const part of spreadsheetCsv(pages(), language)) text += part;
  return text.split("\r\n").slice(0, -1);
}
