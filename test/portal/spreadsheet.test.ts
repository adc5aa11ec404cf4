import { expect, it } from "vitest";
import type { ListedRedemptionView } from "../../src/core/redeem/api/redemptions.ts";
import { type SpreadsheetLanguage, spreadsheetCsv } from "../../src/portal/spreadsheet.ts";
import { mayBeChanged } from "../../src/portal/spreadsheet-text.ts";

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
  const kept = ["order-1", "123456789012345", "7-ELEVEN", "O'Neill", "a=b", "0", "1E5x"];
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

it.each(
  Object.entries({
    numbers: [
      "10.001",
      ".5",
      "5.",
      "1.50",
      "1'234",
      "1 234",
      "12 34",
      "(12)",
      "5-",
      "5%",
      "12,5 %",
      "1e-7",
      "1.E3",
      "１２.０",
    ],
    amounts: ["$5", "5 €", "£1.20", "US$ 7", "CHF 10", "10.50 EUR", "(€5)"],
    dates: ["1/2", "12345/2", "1.2.", "12-2026", "1-2345", "2026-1-2", "1/2/2026 10:05", "2026-11-24T10:05:09.123Z"],
    months: [
      "MAR-1",
      "SEP 10",
      "Sept1",
      "MARCH1",
      "1-Dec",
      "5. Mai",
      "24 nov. 2026",
      "Febr 3",
      "3 août",
      "1 ene",
      "2 mrt",
    ],
    "days and months": [
      "Tue, 24 Nov 2026",
      "4 March 2026 10:05 pm",
      "Mrz 26",
      "DEC-2001",
      "may5",
      "Fri, 27 Nov 2026",
      "dimanche 29 novembre 2026",
    ],
    times: ["12:30", "1:2:3.4", "100:00", "7 pm", "7PM", "7 a", "7 p.m."],
    constants: ["TRUE", "false", "Wahr", "VRAI", "#N/A", "#REF!", "#NAME?", "#NV", "#\u00a1DIV/0!", "#\u00bfNOMBRE?"],
    spaces: [" 5", "ORDER-1 ", "\u00a0x", " =1+1", "\n1"],
  }),
)("a spreadsheet may change %s", (_, texts) => {
  expect(texts.filter((text) => !mayBeChanged(text))).toEqual([]);
});

it("a spreadsheet changes no plain reference, name or code", () => {
  const references = [
    "ORDER-1001",
    "A-1",
    "P 12",
    "12A",
    "E5",
    "e-5",
    "INV/2026/17",
    "#1001",
    "SEPA-1",
    "MARK-12",
    "1_2",
    "MO-12",
    "so 7",
    "SUN 12",
  ];
  const numbers = ["1001-55501", "100-2000", "2026-000123", "1234-5678-9012", "1-2-3-4", "7", "DEC-10010", "0x1F"];
  const names = ["May Day pass", "March", "Till 1", "2 for 1", "50 % off", "Sun 12b", "24 h", "true story", "Mars"];
  const codes = ["K3Q8-2MZX-9HTB", "1E52-3456-7890", "MAR1-2026-XK4T", "", "org_1"];
  const kept = [...references, ...numbers, ...names, ...codes];
  expect(kept.filter((text) => mayBeChanged(text))).toEqual([]);
});

async function linesIn(language: SpreadsheetLanguage, ...changes: Partial<ListedRedemptionView>[]) {
  async function* pages() {
    yield changes.map((change) => ({ ...REDEMPTION, ...change }));
  }
  let text = "";
  for await (const part of spreadsheetCsv(pages(), language)) text += part;
  return text.split("\r\n").slice(0, -1);
}
