import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  ALPHABET,
  hasValidCheckSymbol,
  isPathWord,
  makeRedeemCode,
  makeVoucherCode,
  normaliseCode,
} from "../../src/domain/codes.ts";

const SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Some random codes without their hyphens, and the two extremes. */
const CODES = [
  ...Array.from({ length: 8 }, () => makeVoucherCode(randomBytes)),
  makeVoucherCode((size) => new Uint8Array(size)),
  makeVoucherCode((size) => new Uint8Array(size).fill(255)),
].map((code) => code.replaceAll("-", ""));

const codeArbitrary = fc
  .uint8Array({ minLength: 15, maxLength: 15 })
  .map((bytes) => makeVoucherCode(() => bytes).replaceAll("-", ""));

function replaceAt(text: string, position: number, symbol: string): string {
  return text.slice(0, position) + symbol + text.slice(position + 1);
}

function swapAt(text: string, a: number, b: number): string {
  return replaceAt(replaceAt(text, a, text.charAt(b)), b, text.charAt(a));
}

it("a voucher code has four groups of four symbols of an alphabet without I, L, O and U", () => {
  expect(ALPHABET).toBe(SYMBOLS);
  for (let i = 0; i < 1_000; i++) {
    expect(makeVoucherCode(randomBytes)).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/);
  }
});

it("a voucher code carries 75 random bits: each of the low five bits of 15 bytes changes the symbol of its byte", () => {
  const seen = new Set<string>();
  for (let position = 0; position < 15; position++) {
    for (let value = 0; value < 32; value++) {
      const bytes = new Uint8Array(15);
      bytes[position] = value;
      const code = makeVoucherCode((size) => bytes.slice(0, size)).replaceAll("-", "");
      expect(code.charAt(position)).toBe(SYMBOLS.charAt(value));
      seen.add(code);
    }
  }
  expect(seen.size).toBe(15 * 31 + 1);
});

it("a voucher code ends with the check symbol of the documented weighted sum over GF(32)", () => {
  fc.assert(
    fc.property(codeArbitrary, (code) => {
      const values = Array.from(code, (symbol) => SYMBOLS.indexOf(symbol));
      // Horner's scheme from the fifteenth symbol to the first, multiplying by alpha modulo x^5 + x^2 + 1 each time.
      const sum = values.slice(0, 15).reduceRight((accumulated, value) => {
        const shifted = (accumulated ^ value) << 1;
        return shifted >= 32 ? shifted ^ 37 : shifted;
      }, 0);
      expect(values[15]).toBe(sum);
    }),
  );
});

it("the check symbol shows every wrong symbol at every position, and every swap of two different symbols", () => {
  for (const code of CODES) {
    for (let position = 0; position < 16; position++) {
      const typos = Array.from(SYMBOLS, (symbol) => replaceAt(code, position, symbol));
      const swaps = Array.from(code, (_, other) => swapAt(code, position, other));
      for (const wrong of [...typos, ...swaps]) {
        if (wrong !== code) expect(hasValidCheckSymbol(wrong), `${code} read as ${wrong}`).toBe(false);
      }
    }
  }
});

it("a voucher code is checked in every spelling", () => {
  const code = makeVoucherCode((size) => new Uint8Array(size).map((_, index) => index % 2));
  expect(code.startsWith("0101-0101")).toBe(true);
  expect(hasValidCheckSymbol(code)).toBe(true);
  expect(hasValidCheckSymbol(code.replaceAll("-", "").toLowerCase())).toBe(true);
  expect(hasValidCheckSymbol(` ${code.replaceAll("0", "o").replaceAll("1", "l").replaceAll("-", " - ")} `)).toBe(true);
});

it("a voucher code fails its check when it is too short, too long, has a symbol outside the alphabet or is no code", () => {
  const [code = ""] = CODES;
  // Sixteen zeros fit their check symbol, and so would any other number of them.
  expect(hasValidCheckSymbol("0".repeat(16))).toBe(true);
  for (const length of [4, 15, 17, 64]) expect(hasValidCheckSymbol("0".repeat(length))).toBe(false);
  for (let a = 0; a < 15; a++) {
    for (let b = a; b < 15; b++) {
      for (const check of SYMBOLS) {
        const withU = replaceAt(replaceAt(code.slice(0, 15), a, "U"), b, "U") + check;
        if (hasValidCheckSymbol(withU)) expect.fail(withU);
      }
    }
  }
  expect(hasValidCheckSymbol("")).toBe(false);
  expect(hasValidCheckSymbol(`${code}\0`)).toBe(false);
});

it("a redeem code is random in all of its twelve symbols", () => {
  for (let position = 0; position < 12; position++) {
    const drawn = Array.from({ length: 256 }, (_, byte) => {
      const bytes = new Uint8Array(12);
      bytes[position] = byte;
      return makeRedeemCode((size) => bytes.slice(0, size))
        .replaceAll("-", "")
        .charAt(position);
    });
    // Each symbol comes from as many byte values as any other.
    const counts = Map.groupBy(drawn, (symbol) => symbol);
    expect([...counts.keys()].sort().join("")).toBe(SYMBOLS);
    for (const [symbol, draws] of counts) expect(draws.length, symbol).toBe(8);
  }
});

it("isPathWord recognises the names of the three calls in every spelling of a code, and nothing else", () => {
  const keyOf = (code: string) => normaliseCode(code) ?? "";
  for (const name of ["reserve", "REDEEM", "Re-1ease"]) expect(isPathWord(keyOf(name)), name).toBe(true);
  for (const code of ["redeemed", "reserve1", "EVENTS", ""]) expect(isPathWord(keyOf(code)), code).toBe(false);
});

it.each([
  ["7q4k-9mzx-2htb-w8rc", "7Q4K9MZX2HTBW8RC"],
  ["7Q4K9MZX2HTBW8RC", "7Q4K9MZX2HTBW8RC"],
  ["  7Q4K  9mzx - 2htb --- w8rc  ", "7Q4K9MZX2HTBW8RC"],
  ["-7-Q-4-K-", "7Q4K"],
  ["OoOo-IiIi-LlLl", "000011111111"],
  ["summer-sale_2027!", "SUMMERSA1E_2027!"],
  ["UUUU-uuuu", "UUUUUUUU"],
  ["~}|{", "~}|{"],
  ["rsv_01jz", "RSV_01JZ"],
])("normaliseCode reads %j as %j", (written, read) => {
  expect(normaliseCode(written)).toBe(read);
});

it.each<[written: string, read: string | null]>([
  ["", null],
  [" - ".repeat(20), null],
  ["A-B - C", null],
  ["ABCD", "ABCD"],
  ["A-".repeat(64), "A".repeat(64)],
  ["A".repeat(65), null],
  ["A-".repeat(65), null],
  ["A".repeat(10_240), null],
  [`${"- ".repeat(5_120)}ABCD`, "ABCD"],
])("normaliseCode counts 4 to 64 characters after normalising, not before: %j", (written, read) => {
  expect(normaliseCode(written)).toBe(read);
});

it("normaliseCode admits printable ASCII and no other UTF-16 unit, wherever it stands", () => {
  for (let unit = 0; unit <= 0xffff; unit++) {
    const character = String.fromCharCode(unit);
    const admitted = unit >= 0x20 && unit <= 0x7e;
    for (const text of [`${character}ABCD`, `AB${character}CD`, `ABCD${character}`]) {
      if ((normaliseCode(text) !== null) !== admitted) expect.fail(`U+${unit.toString(16)} in ${JSON.stringify(text)}`);
    }
  }
  // A mathematical capital, which Unicode's compatibility forms turn into A.
  expect(normaliseCode("ABCD\u{1d400}")).toBeNull();
});

it("normaliseCode leaves what it has normalised as it is", () => {
  const texts = fc.oneof(
    fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((unit) => String.fromCharCode(unit)), maxLength: 80 }),
    fc.string({ unit: "binary", maxLength: 80 }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const key = normaliseCode(text);
      if (key === null) return;
      expect(key).toMatch(/^[!-,./-HJKMNP-`{-~]{4,64}$/);
      expect(normaliseCode(key)).toBe(key);
    }),
    { numRuns: 2_000 },
  );
});

it("normaliseCode reads two writings of a code that differ in case, separators and look-alikes alike", () => {
  const lookAlikes: Record<string, string[]> = { "0": ["0", "O", "o"], "1": ["1", "I", "i", "L", "l"] };
  const written = (symbol: string) =>
    fc
      .tuple(
        fc.constantFrom(...(lookAlikes[symbol] ?? [symbol, symbol.toLowerCase()])),
        fc.constantFrom("", "-", " ", " - "),
      )
      .map((parts) => parts.join(""));
  const pairs = codeArbitrary.chain((code) =>
    fc.tuple(
      fc.constant(code),
      fc.tuple(...Array.from(code, written)).map((parts) => parts.join("")),
    ),
  );
  fc.assert(
    fc.property(pairs, ([code, text]) => {
      expect(normaliseCode(text)).toBe(code);
    }),
  );
});
