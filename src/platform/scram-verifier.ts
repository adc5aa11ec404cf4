import { createHmac, hash, pbkdf2Sync } from "node:crypto";

/** Iterations of the hash: PostgreSQL's default (`scram_iterations`). Enough for random passwords. */
const ITERATIONS = 4_096;
const HASH_BYTES = 32;
/** Length of the salt, the same as PostgreSQL's. Bytes. */
export const SALT_BYTES = 16;

/**
 * Makes the verifier that PostgreSQL stores instead of a password (RFC 5802 and 7677). Nobody can log in with a
 * verifier, so a statement that contains one may be logged.
 * @param password visible ASCII only. Other characters would first need the preparation of RFC 4013.
 */
export function makeScramVerifier(password: string, salt: Buffer): string {
  const salted = pbkdf2Sync(password, salt, ITERATIONS, HASH_BYTES, "sha256");
  const storedKey = hash("sha256", hmac(salted, "Client Key"), "base64");
  const serverKey = hmac(salted, "Server Key").toString("base64");
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString("base64")}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
