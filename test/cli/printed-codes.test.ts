import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CodesSummary } from "../../src/acts/printed-code-formats.ts";
import { readPrintedCodes } from "../../src/acts/printed-codes.ts";
import { openPrintedCodes } from "../../src/cli/printed-codes.ts";
import { normaliseCode } from "../../src/core/voucher/codes.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "printed-codes-"));
});

afterAll(() => rmSync(folder, { recursive: true }));

async function read(content: Uint8Array): Promise<string[]> {
  const file = join(folder, "codes");
  writeFileSync(file, content);
  const codes: string[] = [];
  for await (const { code } of readPrintedCodes(await openPrintedCodes(file))) codes.push(code);
  return codes;
}

const TEXT = "WXYZ-1234\nABCD-5678";
const ENCODINGS: [string, (text: string) => Buffer][] = [
  ["UTF-8", (text) => Buffer.from(text)],
  ["UTF-16 with the low byte first", (text) => Buffer.from(text, "utf16le")],
  ["UTF-16 with the high byte first", (text) => Buffer.from(text, "utf16le").swap16()],
];

it.each(
  ENCODINGS,
)("a file of printed codes in %s is read completely, with and without a final line end", async (_, encode) => {
  for (const end of ["", "\n", "\r\n", "\n\n"])
    expect(await read(encode(TEXT + end)), JSON.stringify(end)).toEqual(["WXYZ-1234", "ABCD-5678"]);
});

it.each(
  ENCODINGS,
)("a file of printed codes in %s is refused if the file ends inside a character", async (_, encode) => {
  for (const last of ["É", "€", "𝟘", "8", "\n"]) {
    const whole = encode(TEXT + last);
    for (let cut = 1; cut < encode(last).length; cut++) {
      const refusal = expect.stringMatching(/^Line 2 is not a code: .* Nothing was issued\.$/);
      await expect(read(whole.subarray(0, -cut)), `${last} without ${cut} bytes`).rejects.toMatchObject({
        code: "invalid_request",
        message: refusal,
      });
    }
  }
});

it.each([
  1, 2, 3,
])("a file of printed codes in Latin-1 is refused, even if only %i last characters are not ASCII", async (count) => {
  for (const letter of ["É", "ä", "ð", "÷"]) {
    const content = Buffer.from(TEXT + letter.repeat(count), "latin1");
    for (const bytes of [content, Buffer.concat([content, Buffer.from("\n")])])
      await expect(read(bytes), letter).rejects.toMatchObject({ code: "invalid_request" });
  }
});

it("a heading or total in a file of printed codes is refused with its line number", () => {
  const faultOf = (...lines: string[]) => {
    const summary = new CodesSummary();
    for (const line of lines) summary.add(line, normaliseCode(line) ?? "");
    return summary.findFault();
  };
  const codes = ["WXYZ-1234", "ABCD-5678"];
  for (const total of ["Total: 2", "(2 rows)", "# 2", "2 rows", "Total 2", "Total"]) {
    expect(faultOf(...codes, total)).toContain(`Line 3 looks like a total: ${total}.`);
    expect(faultOf("WXYZ-1234", total)).toContain("Line 2 looks like a total");
    expect(faultOf("List (2027)", ...codes, total)).toContain("Line 1 looks like a title: List (2027).");
  }
  expect(faultOf("# Voucher codes 2027", ...codes)).toContain("Line 1 looks like a title");
  expect(faultOf("7Q4K 9MZX", "ABCD 5678", "2 rows")).toContain("Line 3 looks like a total: 2 rows.");
  for (const lines of [
    ["SPRING", "FALL"],
    ["Shop 8", "Shop 9", "Shop 10"],
    ["9999", "10000"],
  ])
    expect(faultOf(...lines), lines.join()).toBeNull();
  for (const form of ["#1", "A 1", "(1)", "WXYZ-1"])
    for (const count of [1, 2, 3])
      expect(faultOf(...Array.from({ length: count }, (_, n) => `${form}${n}`))).toBeNull();
});
