import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  expectedTokenHash,
  hashToken,
  nameTokenSecrets,
  reservationToken,
  sameTokenHash,
} from "../../../src/core/reserve/reservation-token.ts";

const OLD = "the-secret-of-last-year";
const NEW = "the-secret-of-this-year";
const TICKET = "rsv_01jz3v8q4xe7j9t2m5n6p8r0s1";

it("a reservation token matches the second HMAC-SHA-256 test case of RFC 4231", () => {
  const secrets = nameTokenSecrets(["Jefe"]);
  const token = reservationToken(secrets, "what do ya want for nothing?", secrets[0]?.id ?? "");
  expect(Buffer.from(token, "base64url").toString("hex")).toBe(
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
});

it("a reservation token is the HMAC-SHA-256 of the ticket in base64url without padding", () => {
  // The unit "binary" of fast-check takes a second to prepare.
  const unit = fc.integer({ min: 0, max: 0x10ffff }).map((point) => String.fromCodePoint(point));
  fc.assert(
    fc.property(fc.string({ unit, minLength: 1, maxLength: 100 }), fc.string(), (secret, ticket) => {
      const token = reservationToken(nameTokenSecrets([secret]), ticket, idOf(secret));
      expect(token).toMatch(/^[A-Za-z0-9_-]{43}$/);
      expect(Buffer.from(token, "base64url").equals(hmac(secret, ticket))).toBe(true);
    }),
  );
});

it("reservationToken throws without a secret", () => {
  expect(() => reservationToken([], TICKET, idOf(OLD))).toThrow(/^no reservation token secret is configured$/);
});

it("a token secret's id is the first 8 hex digits of the secret's SHA-256, at any position of the list", () => {
  expect(nameTokenSecrets([OLD, NEW])).toEqual([
    { id: idOf(OLD), secret: OLD },
    { id: idOf(NEW), secret: NEW },
  ]);
});

it("a reservation's token stays the same in any order of secrets, unless its secret is removed", () => {
  const tokenOf = (secrets: string[], signer: string) =>
    reservationToken(nameTokenSecrets(secrets), TICKET, idOf(signer));
  const [byOld, byNew] = [OLD, NEW].map((secret) => hmac(secret, TICKET).toString("base64url"));
  expect([[OLD], [OLD, NEW], [NEW, OLD]].map((secrets) => tokenOf(secrets, OLD))).toEqual([byOld, byOld, byOld]);
  expect(
    [
      [OLD, NEW],
      [NEW, OLD],
    ].map((secrets) => tokenOf(secrets, NEW)),
  ).toEqual([byNew, byNew]);
  expect(tokenOf([NEW, "yet-another-secret"], OLD)).toBe(byNew);
});

it("the hash of a reservation token is the token's SHA-256 in lower-case hex", () => {
  expect(hashToken("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  expect(hashToken("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

it("the expected hash of a reservation's token is made with the secret that the reservation names", () => {
  const secrets = nameTokenSecrets([NEW, OLD]);
  const expected = sha256(Buffer.from(hmac(OLD, TICKET).toString("base64url"))).toString("hex");
  expect(expectedTokenHash(secrets, { ticket: TICKET, tokenSecretId: idOf(OLD) })).toBe(expected);
});

it("the hash of a reservation token equals no changed, truncated, longer, empty or upper-case text", () => {
  const hash = hashToken("a token");
  expect(sameTokenHash(hash, hashToken("a token"))).toBe(true);
  const digits = Array.from(hash, (digit, at) => hash.slice(0, at) + (digit === "0" ? "1" : "0") + hash.slice(at + 1));
  for (const other of [...digits, hash.slice(1), hash.slice(0, -1), `${hash}0`, "", hash.toUpperCase()]) {
    expect([sameTokenHash(hash, other), sameTokenHash(other, hash)]).toEqual([false, false]);
  }
});

function sha256(...parts: Uint8Array[]): Buffer {
  return createHash("sha256").update(Buffer.concat(parts)).digest();
}

/** HMAC-SHA-256 by the definition of RFC 2104, without the function that the service uses. */
function hmac(secret: string, text: string): Buffer {
  const bytes = Buffer.from(secret);
  const key = Buffer.alloc(64);
  (bytes.length > 64 ? sha256(bytes) : bytes).copy(key);
  const padded = (byte: number) => key.map((value) => value ^ byte);
  return sha256(padded(0x5c), sha256(padded(0x36), Buffer.from(text)));
}

function idOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, 8);
}
