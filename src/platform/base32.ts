/** Crockford's base32 alphabet (https://www.crockford.com/base32.html), without I, L, O and U. */
export const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** Returns `size` bytes from a cryptographically secure source. */
export type RandomBytes = (size: number) => Uint8Array;
