/** Crockford's base32 alphabet (https://www.crockford.com/base32.html): no I, L, O and U. */
export const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Symbols of a voucher code: 15 random ones (75 bits) and one check symbol. */
export const CODE_SYMBOLS = 16;
/** Symbols of a redeem code, all random (60 bits). */
export const REDEEM_CODE_SYMBOLS = 12;
/** Symbols of a referral link's code, all random (60 bits). */
export const LINK_CODE_SYMBOLS = 12;
/** Bounds of a code's normalised form, imported codes included. */
export const CODE_KEY_MIN = 4;
export const CODE_KEY_MAX = 64;

/** Yields `size` bytes from a cryptographically secure source. */
export type RandomBytes = (size: number) => Uint8Array;

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

/**
 * The check value of 15 symbol values: the sum over GF(32) of symbol i (counted from 1) times alpha^i. The check symbol itself
 * weighs alpha^0. All sixteen weights differ and none is zero, so every wrong symbol and every swap of two symbols shows.
 */
function checkValue(values: readonly number[]): number {
  return values.reduce((sum, value, index) => sum ^ multiply(value, ALPHA_POWER[index + 1] as number), 0);
}

/** Makes a voucher code: four groups of four symbols, the last symbol being the check symbol. */
export function makeVoucherCode(randomBytes: RandomBytes): string {
  const values = symbolValues(CODE_SYMBOLS - 1, randomBytes);
  return inGroups([...values, checkValue(values)]);
}

/** Makes the code that a burn hands to the customer: three groups of four symbols. */
export function makeRedeemCode(randomBytes: RandomBytes): string {
  return inGroups(symbolValues(REDEEM_CODE_SYMBOLS, randomBytes));
}

/** Makes the code of a referral link: twelve symbols in lower case, for addresses. */
export function makeLinkCode(randomBytes: RandomBytes): string {
  return inGroups(symbolValues(LINK_CODE_SYMBOLS, randomBytes)).replaceAll("-", "").toLowerCase();
}

/** 256 is a multiple of 32, so the low five bits of a random byte are uniform. */
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

/**
 * Whether a generated code's check symbol fits. For clients and printing houses: the server looks every code up, because an
 * imported code of 16 symbols need not fit.
 */
export function hasValidCheckSymbol(code: string): boolean {
  const key = normaliseCode(code);
  if (key?.length !== CODE_SYMBOLS) return false;
  const values = Array.from(key, (symbol) => ALPHABET.indexOf(symbol));
  if (values.includes(-1)) return false;
  return checkValue(values.slice(0, -1)) === values.at(-1);
}

/**
 * The form in which codes are compared: upper case, spaces and hyphens dropped, O read as 0, I and L as 1.
 * Null when no code can look like this: another character than printable ASCII, or a length outside 4–64. Upper-casing is
 * safe because only ASCII gets there (a dotless i would become an I).
 */
export function normaliseCode(input: string): string | null {
  if (!/^[\x20-\x7e]*$/.test(input)) return null;
  const key = input.replace(/[ -]/g, "").toUpperCase().replace(/O/g, "0").replace(/[IL]/g, "1");
  return key.length >= CODE_KEY_MIN && key.length <= CODE_KEY_MAX ? key : null;
}
