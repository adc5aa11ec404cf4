import { hash } from "node:crypto";
import { BlockList, isIPv6 } from "node:net";
import { crc32 } from "node:zlib";
import { ALPHABET, type RandomBytes } from "../../platform/base32.ts";

export const SCOPES = ["voucher.read", "voucher.redeem", "voucher.webhook", "voucher.issue"] as const;
export type Scope = (typeof SCOPES)[number];

/** The prefix shows whether a key's organization is a sandbox. A key with the wrong prefix fails the checksum. */
const PREFIX = { live: "pvk_", sandbox: "pvt_" } as const;
/** 40 symbols of 5 bits each: 200 random bits. */
const SECRET_SYMBOLS = 40;
/** 7 symbols hold the 32 bits of the checksum. */
const CHECKSUM_SYMBOLS = 7;
const SYMBOLS = new RegExp(`^[${ALPHABET}]{${SECRET_SYMBOLS + CHECKSUM_SYMBOLS}}$`);

/** Makes an API key with {@link makeSecret}. Its prefix is `pvk_`, or `pvt_` for a sandbox. */
export function makeApiKey(randomBytes: RandomBytes, sandbox = false): string {
  return makeSecret(randomBytes, sandbox ? PREFIX.sandbox : PREFIX.live);
}

/** Makes a secret: the prefix, 200 random bits, and a CRC-32 checksum of both, in Crockford base32. */
export function makeSecret(randomBytes: RandomBytes, prefix: string): string {
  const symbols = Array.from(randomBytes(SECRET_SYMBOLS), (byte) => ALPHABET[byte & 31]).join("");
  const secret = `${prefix}${symbols}`;
  return `${secret}${checksum(secret)}`;
}

/** Whether a well-formed key belongs to a sandbox organization. */
export function isSandboxKey(key: string): boolean {
  return key.startsWith(PREFIX.sandbox);
}

function checksum(secret: string): string {
  let rest = crc32(secret);
  let text = "";
  for (let i = 0; i < CHECKSUM_SYMBOLS; i++) {
    text = ALPHABET[rest & 31] + text;
    rest >>>= 5;
  }
  return text;
}

/** Whether a value has the form and the checksum of a key. Refuses nearly all mistyped keys without a query. */
export function isWellFormedApiKey(key: string): boolean {
  return isWellFormedSecret(key, PREFIX.live) || isWellFormedSecret(key, PREFIX.sandbox);
}

/** Whether a value has the prefix, the form and the checksum of a secret. */
export function isWellFormedSecret(secret: string, prefix: string): boolean {
  return (
    secret.startsWith(prefix) &&
    SYMBOLS.test(secret.slice(prefix.length)) &&
    checksum(secret.slice(0, -CHECKSUM_SYMBOLS)) === secret.slice(-CHECKSUM_SYMBOLS)
  );
}

/**
 * The hash by which a secret is stored and found: SHA-256, in hex. It needs no salt and need not be slow, because a
 * secret has 200 random bits.
 */
export function hashSecret(secret: string): string {
  return hash("sha256", secret);
}

/**
 * Makes a function that checks addresses against a list of addresses and CIDRs. An empty list allows all. An
 * IPv4-mapped IPv6 address counts as IPv4.
 */
export function makeAllowlist(cidrs: readonly string[]): (address: string) => boolean {
  if (cidrs.length === 0) return () => true;
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits] = cidr.split("/");
    const family = isIPv6(network) ? "ipv6" : "ipv4";
    list.addSubnet(network, bits === undefined ? (family === "ipv6" ? 128 : 32) : Number(bits), family);
  }
  return (address) => list.check(address, isIPv6(address) ? "ipv6" : "ipv4");
}
