import { createHash, randomBytes } from "node:crypto";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  hashSecret,
  isSandboxKey,
  isWellFormedApiKey,
  makeAllowlist,
  makeApiKey,
} from "../../../src/core/keys/api-keys.ts";

const KEYS = Array.from({ length: 4 }, () => makeApiKey(randomBytes));
const PRINTABLE = Array.from({ length: 95 }, (_, index) => String.fromCharCode(0x20 + index));

it("an API key is pvk_ followed by Crockford base32", () => {
  for (let i = 0; i < 500; i++) expect(makeApiKey(randomBytes)).toMatch(/^pvk_[0-9A-HJKMNP-TV-Z]{47}$/);
});

it("a sandbox's API key begins with pvt_, and is refused if it begins with pvk_", () => {
  for (const sandbox of [false, true]) {
    const key = makeApiKey(randomBytes, sandbox);
    expect({ prefix: key.slice(0, 4), sandbox: isSandboxKey(key), valid: isWellFormedApiKey(key) }).toEqual({
      prefix: sandbox ? "pvt_" : "pvk_",
      sandbox,
      valid: true,
    });
    expect(isWellFormedApiKey((sandbox ? "pvk_" : "pvt_") + key.slice(4))).toBe(false);
  }
});

it("an API key encodes at least 160 random bits", () => {
  let asked = 0;
  const keyWithBit = (bit: number) =>
    makeApiKey((size) => {
      asked = size;
      const bytes = new Uint8Array(size);
      if (bit >= 0) bytes[bit >> 3] = 1 << (bit & 7);
      return bytes;
    });
  const plain = keyWithBit(-1);
  const changed = new Set(Array.from({ length: asked * 8 }, (_, bit) => keyWithBit(bit)));
  changed.delete(plain);
  expect(changed.size).toBeGreaterThanOrEqual(160);
});

it("an API key is refused if any one character is replaced", () => {
  for (const key of KEYS) {
    for (let position = 0; position < key.length; position++) {
      for (const character of PRINTABLE) {
        if (character === key.charAt(position)) continue;
        const typo = key.slice(0, position) + character + key.slice(position + 1);
        if (isWellFormedApiKey(typo)) expect.fail(`${typo} passes for ${key}`);
      }
    }
  }
});

it("an API key is refused if a character is missing, doubled or added, or two neighbours are swapped", () => {
  for (const key of KEYS) {
    for (let position = 0; position < key.length; position++) {
      const [before, here, next] = [key.slice(0, position), key.charAt(position), key.charAt(position + 1)];
      const after = key.slice(position + 2);
      for (const wrong of [before + next + after, before + here + here + next + after, before + next + here + after]) {
        if (wrong !== key) expect(isWellFormedApiKey(wrong)).toBe(false);
      }
    }
    for (const more of [" ", "\n", "\0", "0"]) {
      expect([key + more, more + key].filter(isWellFormedApiKey)).toEqual([]);
    }
  }
});

it("an API key is refused in lower case, if it is empty or only the prefix, and if it has 10 kB", () => {
  const wrong = [KEYS[0]?.toLowerCase() ?? "", "", "pvk_", `pvk_${"0".repeat(10_240)}`];
  expect(wrong.filter(isWellFormedApiKey)).toEqual([]);
});

it("an API key is refused with more or fewer random symbols, even if the checksum matches", () => {
  const withChecksum = (secret: string) => {
    const bits = crc32(`pvk_${secret}`).toString(2).padStart(35, "0");
    const symbolOf = (five: string) => "0123456789ABCDEFGHJKMNPQRSTVWXYZ".charAt(Number.parseInt(five, 2));
    return `pvk_${secret}${bits.replace(/.{5}/g, symbolOf)}`;
  };
  expect(isWellFormedApiKey(withChecksum("7".repeat(40)))).toBe(true);
  for (const length of [0, 1, 39, 41, 80]) expect(isWellFormedApiKey(withChecksum("7".repeat(length)))).toBe(false);
  for (const symbol of ["U", "a", "-", " ", "\n", "é"]) {
    expect(isWellFormedApiKey(withChecksum("7".repeat(39) + symbol))).toBe(false);
    expect(isWellFormedApiKey(withChecksum(symbol + "7".repeat(39)))).toBe(false);
  }
});

it("an API key is stored as the SHA-256 of its characters", () => {
  // The examples of FIPS 180-4 have the digest of "abc".
  expect(hashSecret("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  for (const key of KEYS) {
    expect(hashSecret(key)).toBe(createHash("sha256").update(Buffer.from(key, "ascii")).digest("hex"));
  }
});

it("an empty allowlist of a key admits every address", () => {
  for (const address of ["203.0.113.7", "2001:db8::1", ""]) expect(makeAllowlist([])(address)).toBe(true);
});

const NETWORKS = [
  "10.20.0.0/16",
  "203.0.113.7",
  "198.51.100.9/32",
  "192.0.2.128/25",
  "2001:db8:1::/48",
  "2001:db8:ffff::5",
];

it.each<[passes: boolean, addresses: string[]]>([
  [true, ["10.20.0.0", "10.20.255.255", "203.0.113.7", "198.51.100.9", "192.0.2.128", "192.0.2.255"]],
  [true, ["2001:db8:1::", "2001:db8:1:ffff:ffff:ffff:ffff:ffff", "2001:db8:ffff::5", "2001:0DB8:FFFF:0:0:0:0:0005"]],
  // IPv4 addresses mapped into IPv6, as a dual-stack socket reports them.
  [true, ["::ffff:10.20.30.40", "::ffff:cb00:7107"]],
  [
    false,
    ["10.19.255.255", "10.21.0.0", "203.0.113.6", "198.51.100.8", "192.0.2.127", "::ffff:10.21.0.0", "::10.20.30.40"],
  ],
  [false, ["2001:db8:2::1", "2001:db8:ffff::6", "::1", "", "garbage", "10.20.1", "10.20.1.1:443", "[2001:db8:1::1]"]],
  [false, ["012.024.1.1", "169148417", "0x0a.0x14.1.1", "10.20.1.1, 10.20.1.1", " 10.20.1.1", "10.20.0.0/16"]],
])("an allowlist of a key admits (%s) %j", (passes, addresses) => {
  const allows = makeAllowlist(NETWORKS);
  expect(addresses.filter((address) => allows(address) !== passes)).toEqual([]);
});

it("an allowlist treats a network of IPv4-mapped addresses as the IPv4 network", () => {
  const mapped = makeAllowlist(["::ffff:10.0.0.0/104"]);
  expect(mapped("10.9.8.7")).toBe(true);
  expect(mapped("::ffff:10.9.8.7")).toBe(true);
  expect(mapped("11.0.0.0")).toBe(false);
});

it("an allowlist admits exactly the addresses inside its networks", () => {
  fc.assert(
    fc.property(fc.ipV4(), fc.ipV4(), fc.integer({ min: 0, max: 32 }), (network, address, bits) => {
      const number = (text: string) => text.split(".").reduce((value, part) => value * 256n + BigInt(part), 0n);
      const inside = number(network) >> BigInt(32 - bits) === number(address) >> BigInt(32 - bits);
      expect(makeAllowlist([`${network}/${bits}`])(address)).toBe(inside);
      expect(makeAllowlist([`${network}/${bits}`])(`::ffff:${address}`)).toBe(inside);
      expect(makeAllowlist(["192.0.2.1", `${network}/${bits}`])(network)).toBe(true);
    }),
  );
});

it("an allowlist refuses an entry that is not a network of addresses", () => {
  for (const cidr of ["garbage", "", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/x", "2001:db8::/129", "10.0.0"]) {
    expect(() => makeAllowlist(["10.0.0.0/8", cidr]), cidr).toThrow();
  }
});
