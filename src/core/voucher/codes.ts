import { ALPHABET, type RandomBytes } from "../../platform/base32.ts";
import { normaliseText } from "../../platform/text.ts";

/** Number of symbols in a voucher code: 15 random symbols (75 bits) and a check symbol. */
export const CODE_SYMBOLS = 16;
/** Number of symbols in a redeem code, all of them random (60 bits). */
const REDEEM_CODE_SYMBOLS = 12;
/** Number of symbols in a referral link's code, all of them random (60 bits). */
const LINK_CODE_SYMBOLS = 12;
/** Minimum and maximum length of a normalised code, including imported codes. */
export const CODE_KEY_MIN = 4;
export const CODE_KEY_MAX = 64;

/** A full stop, an underscore, and the asterisk that encloses a code in some barcodes. */
const MARKS = "*._";

/** Characters that people and scanners add: white space, dashes (U+30FC on Japanese keyboards) and invisible ones. */
const SEPARATORS = /[\p{White_Space}\p{Dash}\u30fc\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
const SEPARATORS_AND_MARKS = new RegExp(`${SEPARATORS.source}|[${MARKS}]`, "gu");

/** ALPHA_POWER[i] = alpha^i in GF(32), the field of x^5 + x^2 + 1 with alpha = x. */
const ALPHA_POWER = Array.from({ length: CODE_SYMBOLS }, (_, power) => {
  let value = 1;
  for (let i = 0; i < power; i++) value = timesAlpha(value);
  return value;
});

function timesAlpha(value: number): number {
  const shifted = value << 1;
  return shifted & 0b100000 ? shifted ^ 0b100101 : shifted;
}

function multiply(a: number, b: number): number {
  let product = 0;
  for (let shifted = a, bits = b; bits > 0; bits >>= 1, shifted = timesAlpha(shifted)) {
    if (bits & 1) product ^= shifted;
  }
  return product;
}

// All sixteen weights differ and none is zero, so the check detects any single wrong symbol and any swap of two.
/**
 * The sum over GF(32) of symbol i, counted from 1, times alpha^i. The sixteenth symbol is the check symbol, with the
 * weight alpha^0. It is the weighted sum of the first fifteen, so the sum of all sixteen is zero.
 */
function weightedSum(values: readonly number[]): number {
  return values.reduce((sum, value, at) => sum ^ multiply(value, ALPHA_POWER[(at + 1) % CODE_SYMBOLS] as number), 0);
}

/** Makes a voucher code: four groups of four symbols. The last symbol is the check symbol. */
export function makeVoucherCode(randomBytes: RandomBytes): string {
  const values = symbolValues(CODE_SYMBOLS - 1, randomBytes);
  return inGroups([...values, weightedSum(values)]);
}

/** Makes the code that the customer gets for a redemption: three groups of four symbols. */
export function makeRedeemCode(randomBytes: RandomBytes): string {
  return inGroups(symbolValues(REDEEM_CODE_SYMBOLS, randomBytes));
}

/** Makes the code of a referral link: twelve symbols in lower case. */
export function makeLinkCode(randomBytes: RandomBytes): string {
  return inGroups(symbolValues(LINK_CODE_SYMBOLS, randomBytes)).replaceAll("-", "").toLowerCase();
}

/** The public address of a referral link. */
export function linkAddress({ baseUrl }: { baseUrl: string }, linkCode: string): string {
  return `${baseUrl}/r/${encodeURIComponent(linkCode)}`;
}

/** Makes uniform random values: 256 is a multiple of 32, so the low five bits of a random byte are uniform. */
function symbolValues(count: number, randomBytes: RandomBytes): number[] {
  return Array.from(randomBytes(count), (byte) => byte & 31);
}

function inGroups(values: readonly number[]): string {
  let text = "";
  for (let i = 0; i < values.length; i++) {
    if (i > 0 && i % 4 === 0) text += "-";
    text += ALPHABET[values[i] as number];
  }
  return text;
}

/** Whether the check symbol is right. The API accepts a wrong check symbol, because imported codes have none. */
export function hasValidCheckSymbol(code: string): boolean {
  const key = normaliseCode(code);
  if (key?.length !== CODE_SYMBOLS) return false;
  const values = Array.from(key, (symbol) => ALPHABET.indexOf(symbol));
  return !values.includes(-1) && weightedSum(values) === 0;
}

/** How many of a code's last symbols pages show, and how many they must hide: 12 are too many to guess. */
const END = { shown: 4, hiddenMin: 12 };

/** The end of a code, by which people tell vouchers apart. If the code is too short, only an ellipsis. */
export function codeEnd(code: string): string {
  const symbols = cleanTyped(code, SEPARATORS_AND_MARKS) ?? "";
  return symbols.length < END.shown + END.hiddenMin ? "…" : `…${symbols.slice(-END.shown)}`;
}

/** Normalised words that occur in the partner API's paths, such as `/partner/vouchers/redeem`. */
const PATH_WORDS: ReadonlySet<string | null> = new Set(["reserve", "redeem", "release"].map(normaliseCode));

/** Whether a normalised code is a word in the API's paths. A voucher with such a code cannot be looked up. */
export function isPathWord(codeKey: string): boolean {
  return PATH_WORDS.has(codeKey);
}

/**
 * Replaces the compatibility forms of characters, such as full-width letters (NFKC), and removes what `removed`
 * matches. Returns null for a text that is too long to be normalised.
 */
function cleanTyped(input: string, removed: RegExp): string | null {
  return normaliseText(input, "NFKC")?.replace(removed, "") ?? null;
}

/**
 * Returns the form in which codes are compared: without separators and marks, in upper case, O read as 0, I and L read
 * as 1. Returns null if the normalised length is outside 4–64, or if the text has characters other than visible ASCII,
 * which no code has.
 */
export function normaliseCode(input: string): string | null {
  const cleaned = cleanTyped(input, SEPARATORS_AND_MARKS);
  // Checks this before the change to upper case, which can turn a non-ASCII character into ASCII (dotless i).
  if (cleaned === null || !/^[\x21-\x7e]*$/.test(cleaned)) return null;
  const key = cleaned.toUpperCase().replace(/O/g, "0").replace(/[IL]/g, "1");
  return key.length >= CODE_KEY_MIN && key.length <= CODE_KEY_MAX ? key : null;
}

/**
 * Most scanners send keystrokes of a US keyboard. For other keyboard layouts, each entry has the US key, and then the
 * characters that the layout types for it. Lists only keys of the alphabet that differ, and the hyphen, in either case.
 */
const LAYOUTS: readonly ReadonlyMap<string, string>[] = [
  "-ß Yz Zy", // German
  "-' Yz Zy", // Swiss, Croatian, Slovene
  "-'", // Italian, Spanish, Portuguese
  "-+", // Nordic
  "-+ Yz Zy", // Polish (typewriter layout)
  "0ö -ü Yz Zy", // Hungarian
  "1+ 2ě 3š 4č 5ř 6ž 7ý 8á 9í 0é -= Yz Zy", // Czech
  "1+ 2ľ 3š 4č 5ť 6ž 7ý 8á 9í 0é -= Yz Zy", // Slovak
  "1& 2é 3\" 4' 5( 6- 7è 8_ 9ç 0à -)° Aq Qa Wz Zw M,?", // French
  "1& 2é 3\" 4' 5( 6§ 7è 8! 9ç 0à -)° Aq Qa Wz Zw M,?", // Belgian, and French on a Mac
  // Russian, Ukrainian
  "Aф Bи Cс Dв Eу Fа Gп Hр Jо Kл Mь Nт Pз Qй Rк Sыі Tе Vм Wц Xч Yн Zя",
].map((layout) => new Map(layout.split(" ").flatMap(([key = "", ...typed]) => typed.map((c) => [fold(c), key]))));

/**
 * Returns the normalised codes that a scanner may have sent to a host with another keyboard layout: those whose check
 * symbol is right. Usually one at most, but one in thirty texts reads as a code of two layouts. Empty if the check
 * symbol is right as typed. Callers must first look up what {@link normaliseCode} returns, and then each of these.
 */
export function repairCode(typed: string): string[] {
  const text = normaliseText(typed.trim(), "NFKC");
  if (text === null || text.length > CODE_KEY_MAX || hasValidCheckSymbol(text)) return [];
  const readings = LAYOUTS.map((keys) =>
    Array.from(text, (character) => keys.get(fold(character)) ?? character).join(""),
  );
  return [...new Set(readings.filter(hasValidCheckSymbol).map(normaliseCode))].filter((code) => code !== null);
}

/**
 * Whether a text shows that the scanner has another keyboard layout than its host. Such a text cannot be repaired and
 * contains characters outside visible ASCII. One layout types all these characters for keys of codes, such as `ß` for a
 * hyphen.
 */
export function isTypedInOtherLayout(typed: string): boolean {
  if (repairCode(typed).length > 0) return false;
  const text = normaliseText(typed.trim(), "NFKC")?.replace(SEPARATORS, "") ?? "";
  const strange = text.length > CODE_KEY_MAX ? [] : (text.match(/[^\x21-\x7e]/gu) ?? []);
  return strange.length > 0 && LAYOUTS.some((keys) => strange.every((character) => keys.has(fold(character))));
}

function fold(character: string): string {
  return character.toUpperCase();
}

/** A ticket, alone or as JSON shows it: with quotation marks, braces and the name of its field. */
const TICKET = /^[{"'“”]*(?:ticket["'“”]*:["'“”]*)?(rsv_[0-9a-z]+)["'“”,}]*$/i;

/** Restores a ticket that was typed with separators, in upper case or as JSON. Returns other text unchanged. */
export function normaliseTicket(input: string): string {
  const [, ticket] = TICKET.exec(cleanTyped(input, SEPARATORS) ?? "") ?? [];
  return ticket?.toLowerCase() ?? input;
}

/** Returns a redeem code in its stored form, from any spelling for {@link normaliseCode}. Null if it cannot be one. */
export function normaliseRedeemCode(input: string): string | null {
  const values = Array.from(normaliseCode(input) ?? "", (symbol) => ALPHABET.indexOf(symbol));
  return values.length === REDEEM_CODE_SYMBOLS && !values.includes(-1) ? inGroups(values) : null;
}
