import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  hasValidCheckSymbol,
  isPathWord,
  isTypedInOtherLayout,
  makeLinkCode,
  makeRedeemCode,
  makeVoucherCode,
  normaliseCode,
  normaliseRedeemCode,
  normaliseTicket,
  repairCode,
} from "../../../src/core/voucher/codes.ts";
import { ALPHABET } from "../../../src/platform/base32.ts";

const SYMBOLS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

it("a voucher code has four groups of four symbols of an alphabet without I, L, O and U", () => {
  expect(ALPHABET).toBe(SYMBOLS);
  for (let i = 0; i < 1_000; i++) {
    expect(makeVoucherCode(randomBytes)).toMatch(/^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){3}$/);
  }
});

it("a voucher code has 75 random bits, and each bit changes the code", () => {
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

const codeArbitrary = fc
  .uint8Array({ minLength: 15, maxLength: 15 })
  .map((bytes) => makeVoucherCode(() => bytes).replaceAll("-", ""));

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

/** Some random codes without their hyphens, and the two extremes. */
const CODES = [
  ...Array.from({ length: 8 }, () => makeVoucherCode(randomBytes)),
  makeVoucherCode((size) => new Uint8Array(size)),
  makeVoucherCode((size) => new Uint8Array(size).fill(255)),
].map((code) => code.replaceAll("-", ""));

it("the check symbol of a voucher code detects any wrong symbol and any swap of two different symbols", () => {
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

it("the check symbol of a voucher code is verified in every spelling", () => {
  const code = makeVoucherCode((size) => new Uint8Array(size).map((_, index) => index % 2));
  expect(code.startsWith("0101-0101")).toBe(true);
  expect(hasValidCheckSymbol(code)).toBe(true);
  expect(hasValidCheckSymbol(code.replaceAll("-", "").toLowerCase())).toBe(true);
  expect(hasValidCheckSymbol(` ${code.replaceAll("0", "o").replaceAll("1", "l").replaceAll("-", " - ")} `)).toBe(true);
});

it("a voucher code is refused if it is too short or too long, or has a symbol of another alphabet", () => {
  const [code = ""] = CODES;
  // Sixteen zeros match their check symbol, as would any other number of zeros.
  expect(hasValidCheckSymbol("0".repeat(16))).toBe(true);
  for (const length of [4, 15, 17, 64]) expect(hasValidCheckSymbol("0".repeat(length))).toBe(false);
  // Three equal values with these weights match, because alpha^2 + alpha^5 = alpha^0.
  expect(hasValidCheckSymbol("0100100000000001")).toBe(true);
  expect(hasValidCheckSymbol("0U00U0000000000U")).toBe(false);
  expect(hasValidCheckSymbol("")).toBe(false);
  expect(hasValidCheckSymbol(`${code}\0`)).toBe(false);
});

it("all twelve symbols of a redeem code are random", () => {
  for (let position = 0; position < 12; position++) {
    const drawn = Array.from({ length: 256 }, (_, byte) => {
      const bytes = new Uint8Array(12);
      bytes[position] = byte;
      return makeRedeemCode((size) => bytes.slice(0, size))
        .replaceAll("-", "")
        .charAt(position);
    });
    // Equally many byte values lead to each symbol.
    const counts = Map.groupBy(drawn, (symbol) => symbol);
    expect([...counts.keys()].sort().join("")).toBe(SYMBOLS);
    for (const [symbol, draws] of counts) expect(draws.length, symbol).toBe(8);
  }
});

it("a redeem code is accepted in every spelling, and any other text is refused", () => {
  for (const text of ["1Q4K-9MZX-2HTB", "lq4k 9mzx2htb*"]) expect(normaliseRedeemCode(text)).toBe("1Q4K-9MZX-2HTB");
  for (const text of ["7Q4K-9MZX-2HTU", "7Q4K-9MZX-2HT", "7Q4K-9MZX-2HTB-W", "", "\0"])
    expect(normaliseRedeemCode(text), text).toBeNull();
});

it("the code of a referrer's link has twelve random symbols in lower case", () => {
  expect(makeLinkCode((size) => Uint8Array.from({ length: size }, (_, at) => 20 + at))).toBe("mnpqrstvwxyz");
});

it("isPathWord recognizes reserve, redeem and release in every spelling, and no other text", () => {
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
  ["summer-sale_2027!", "SUMMERSA1E2027!"],
  ["*7Q4K9MZX2HTBW8RC*", "7Q4K9MZX2HTBW8RC"],
  ["7Q4K.9MZX.2HTB.W8RC\r\n", "7Q4K9MZX2HTBW8RC"],
  ["\t7Q4K\u00a09MZX\u2003", "7Q4K9MZX"],
  ["\ufeff7Q\u200b4K\u00ad9M\u2060ZX", "7Q4K9MZX"],
  ["7Q4K\u20109MZX\u20112HTB\u2012W8RC", "7Q4K9MZX2HTBW8RC"],
  ["7Q4K\u20139MZX\u20142HTB\u2212W8RC", "7Q4K9MZX2HTBW8RC"],
  ["\uff17\uff31\uff14\uff2b\u30fc\uff19\uff2d\uff3a\uff38", "7Q4K9MZX"],
  ["7Q4K\uff0d9MZX\u2e3a", "7Q4K9MZX"],
  ["UUUU-uuuu", "UUUUUUUU"],
  ["~}|{", "~}|{"],
  ["rsv_01jz", "RSV01JZ"],
])("normaliseCode turns %j into %j", (written, read) => {
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
  [`${"- ".repeat(760)}ABCD`, "ABCD"],
])("normaliseCode counts 4 to 64 characters after it has normalised them: %j", (written, read) => {
  expect(normaliseCode(written)).toBe(read);
});

it("normaliseCode ignores white space, dashes, invisible characters and a few marks, and nothing else", () => {
  const isIgnored = (character: string) =>
    /^[\s\p{White_Space}\p{Dash}\p{Cf}\p{Default_Ignorable_Code_Point}*._\u30fc]*$/u.test(character.normalize("NFKC"));
  for (let unit = 0; unit <= 0x1_ffff; unit++) {
    if (unit >= 0xd800 && unit <= 0xdfff) continue;
    const character = String.fromCodePoint(unit);
    const visible = character.normalize("NFKC").replace(/[\s*._-]/g, "");
    const isSymbol = /^[\x21-\x7e]+$/.test(visible);
    for (const [before, after] of [
      ["", "ABCD"],
      ["AB", "CD"],
      ["ABCD", ""],
    ] as const) {
      const key = normaliseCode(`${before}${character}${after}`);
      if (isSymbol) expect(key, `U+${unit.toString(16)}`).not.toBeNull();
      else if (key !== (isIgnored(character) ? "ABCD" : null)) expect.fail(`U+${unit.toString(16)} is read as ${key}`);
    }
  }
});

it("normaliseTicket accepts capitals, compatibility forms, a line feed and JSON, and no other variant", () => {
  const ticket = "rsv_01jz8r6g2tfqm9x3w5c7d0e4a0";
  for (const text of [
    ticket,
    `${ticket}\n`,
    ticket.toUpperCase(),
    ` \ufeff${ticket}\u00a0`,
    ticket.replace("r", "\uff52"),
    `"${ticket}"`,
    `“${ticket}”`,
    ` { "ticket": "${ticket.toUpperCase()}" }\r\n`,
    `"ticket":"${ticket}",`,
  ])
    expect(normaliseTicket(text), JSON.stringify(text)).toBe(ticket);
  for (const text of ["7Q4K-9MZX", " rsv-01jz", "rsv_", "RSV_01jz!", "code:RSV_01jz", "RSV01JZ\n", "", "rsv_\0"])
    expect(normaliseTicket(text), JSON.stringify(text)).toBe(text);
});

it("normaliseCode leaves a normalised code unchanged", () => {
  const texts = fc.oneof(
    fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((unit) => String.fromCharCode(unit)), maxLength: 80 }),
    fc.string({ unit: fc.integer({ min: 0, max: 0x10ffff }).map((unit) => String.fromCodePoint(unit)), maxLength: 80 }),
  );
  fc.assert(
    fc.property(texts, (text) => {
      const key = normaliseCode(text);
      if (key === null) return;
      expect(key).toMatch(/^[!-)+,/-HJKMNP-^`{-~]{4,64}$/);
      expect(normaliseCode(key)).toBe(key);
    }),
    { numRuns: 2_000 },
  );
});

it("normaliseCode maps spellings with other case, separators or look-alikes to the same code", () => {
  const lookAlikes: Record<string, string[]> = { "0": ["0", "O", "o"], "1": ["1", "I", "i", "L", "l"] };
  const written = (symbol: string) =>
    fc
      .tuple(
        fc.constantFrom(...(lookAlikes[symbol] ?? [symbol, symbol.toLowerCase()])),
        fc.constantFrom("", "-", " ", " - ", "\n", "\u2011", "\u200b", ".", "*"),
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

// The keyboard layouts are those of xkeyboard-config 2.35.
it.each([
  ["German", "7QM4ß0YK6ßAZ2Wß859F", "7QM4-0ZK6-AY2W-859F"],
  ["French", "èA?')àWK-)QYéZ)_(çF", "7QM4-0ZK6-AY2W-859F"],
  ["Italian", "7QM4'0ZK6'AY2W'859F", "7QM4-0ZK6-AY2W-859F"],
  ["Spanish", "7QM4'0ZK6'AY2W'859F", "7QM4-0ZK6-AY2W-859F"],
  ["Swiss German", "7QM4'0YK6'AZ2W'859F", "7QM4-0ZK6-AY2W-859F"],
  ["Swiss French", "7QM4'0YK6'AZ2W'859F", "7QM4-0ZK6-AY2W-859F"],
  ["Belgian", "èA?')àWK§)QYéZ)!(çF", "7QM4-0ZK6-AY2W-859F"],
  ["Czech", "ýQMč=éYKž=AZěW=áříF", "7QM4-0ZK6-AY2W-859F"],
  ["Slovak", "ýQMč=éYKž=AZľW=áťíF", "7QM4-0ZK6-AY2W-859F"],
  ["Hungarian", "7QM4üöYK6üAZ2Wü859F", "7QM4-0ZK6-AY2W-859F"],
  ["Polish", "7QM4-0ZK6-AY2W-859F", "7QM4-0ZK6-AY2W-859F"],
  ["Polish (214)", "7QM4+0YK6+AZ2W+859F", "7QM4-0ZK6-AY2W-859F"],
  ["Turkish", "7QM4*0ZK6*AY2W*859F", "7QM4-0ZK6-AY2W-859F"],
  ["British", "7QM4-0ZK6-AY2W-859F", "7QM4-0ZK6-AY2W-859F"],
  ["Swedish", "7QM4+0ZK6+AY2W+859F", "7QM4-0ZK6-AY2W-859F"],
  ["Croatian", "7QM4'0YK6'AZ2W'859F", "7QM4-0ZK6-AY2W-859F"],
  ["Ukrainian", "7ЙЬ4-0ЯЛ6-ФН2Ц-859А", "7QM4-0ZK6-AY2W-859F"],
  ["Russian", "7ЙЬ4-0ЯЛ6-ФН2Ц-859А", "7QM4-0ZK6-AY2W-859F"],
  ["French", '&"SB)CDEF)GHJK)NPRà', "13SB-CDEF-GHJK-NPR0"],
  ["Belgian", '&"SB)CDEF)GHJK)NPRà', "13SB-CDEF-GHJK-NPR0"],
  ["Czech", "+šSB=CDEF=GHJK=NPRé", "13SB-CDEF-GHJK-NPR0"],
  ["Slovak", "+šSB=CDEF=GHJK=NPRé", "13SB-CDEF-GHJK-NPR0"],
  ["Ukrainian", "13ІИ-СВУА-ПРОЛ-ТЗК0", "13SB-CDEF-GHJK-NPR0"],
  ["Russian", "13ЫИ-СВУА-ПРОЛ-ТЗК0", "13SB-CDEF-GHJK-NPR0"],
])("repairCode repairs a code that a US scanner typed with a %s layout (%s), unless it is valid", (_, typed, code) => {
  const key = normaliseCode(code);
  const isRight = normaliseCode(typed) === key;
  expect(repairCode(typed)).toEqual(isRight ? [] : [key]);
  expect(repairCode(`${typed.toLowerCase()}\r\n`)).toEqual(isRight ? [] : [key]);
});

it("repairCode keeps a valid or irreparable code, and returns both codes if two layouts yield a valid code", () => {
  for (const text of ["7QM4-0ZK6-AY2W-859F", "7QM4-0ZK6-AY2W-859G", "13SB'CDEF'GHJK", "", "'".repeat(10_000)])
    expect(repairCode(text), text).toEqual([]);
  // Two layouts yield a valid code: the one that swaps Y and Z, and the one that swaps A with Q and Z with W.
  expect(repairCode("YZAW00YMQZYA1234")).toEqual(["ZYAW00ZMQYZA1234", "YWQZ00YMAWYQ1234"]);
});

it("isTypedInOtherLayout recognizes characters of another keyboard layout, unless the code can be repaired", () => {
  for (const text of ["SALEß2026", "SUMMER&é", "èA?')àWK", "ЫФК2026"])
    expect(isTypedInOtherLayout(text), text).toBe(true);
  // A normal code, a repairable one, an accent of no layout, two layouts in one text, a text too long, a dash.
  for (const text of ["SALE-2026", "7QM4ß0YK6ßAZ2Wß859F", "SALÂ2026", "ßы", "ß".repeat(65), "SALE–2026"])
    expect(isTypedInOtherLayout(text), text).toBe(false);
});

function replaceAt(text: string, position: number, symbol: string): string {
  return text.slice(0, position) + symbol + text.slice(position + 1);
}

function swapAt(text: string, a: number, b: number): string {
  return replaceAt(replaceAt(text, a, text.charAt(b)), b, text.charAt(a));
}
