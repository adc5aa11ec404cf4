import { createHash, createHmac, pbkdf2Sync } from "node:crypto";

/** What PostgreSQL uses by default (`scram_iterations`). A password that was made at random needs no more. */
const ITERATIONS = 4_096;
const HASH_BYTES = 32;
/** Random bytes that the verifier is salted with, as many as PostgreSQL takes. */
export const SALT_BYTES = 16;

/**
 * What PostgreSQL stores in place of a password, for `ALTER ROLE … PASSWORD` (RFC 5802 and 7677): the server can check the password
 * with it and nobody can log in with it, so that a statement that ends up in a log gives no password away.
 * @param password visible ASCII only: other characters would have to be prepared by RFC 4013 first.
 * @param salt {@link SALT_BYTES} random bytes.
 */
export function makeScramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, "sha256");
  const storedKey = createHash("sha256").update(hmac(salted, "Client Key")).digest("base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
