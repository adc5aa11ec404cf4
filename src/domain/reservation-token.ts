import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A secret that signs reservation tokens, and the name under which a hold's row remembers it. */
export interface TokenSecret {
  /** First 8 hex digits of the secret's SHA-256. */
  id: string;
  secret: string;
}

/** Names the configured secrets. The first signs new holds; all of them stay valid for the holds they signed. */
export function nameTokenSecrets(secrets: readonly string[]): TokenSecret[] {
  return secrets.map((secret) => ({ id: createHash("sha256").update(secret).digest("hex").slice(0, 8), secret }));
}

/**
 * The token of a hold: HMAC-SHA256 of its ticket, in base64url. Recomputed whenever it is needed, so it is stored nowhere.
 * A hold whose secret was taken off the list gets its token from the first secret.
 */
export function reservationToken(secrets: readonly TokenSecret[], ticket: string, secretId: string): string {
  const signer = secrets.find((secret) => secret.id === secretId) ?? secrets[0];
  if (signer === undefined) throw new Error("no reservation token secret is configured");
  return createHmac("sha256", signer.secret).update(ticket).digest("base64url");
}

/** What travels through the queue instead of a token: its SHA-256 in hex. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Compares two token hashes in constant time. */
export function sameTokenHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
