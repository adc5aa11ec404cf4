import { createHmac, hash, timingSafeEqual } from "node:crypto";

/** A secret that signs reservation tokens, and the id by which a reservation's row refers to it. */
export interface TokenSecret {
  /** First 8 hex digits of the secret's SHA-256. */
  id: string;
  secret: string;
}

/** Computes the ids of the secrets. The first signs new reservations. The others verify what they signed. */
export function nameTokenSecrets(secrets: readonly string[]): TokenSecret[] {
  return secrets.map((secret) => ({ id: hash("sha256", secret).slice(0, 8), secret }));
}

/** Returns the secret that signs new reservations. */
export function signingSecret(secrets: readonly TokenSecret[]): TokenSecret {
  const [first] = secrets;
  if (first === undefined) throw new Error("no reservation token secret is configured");
  return first;
}

/**
 * Computes a token: HMAC-SHA256 of the ticket in base64url. The token is never stored. Uses the secret with this id or,
 * if it is no longer configured, the first secret.
 */
export function reservationToken(secrets: readonly TokenSecret[], ticket: string, secretId: string): string {
  const signer = secrets.find((secret) => secret.id === secretId) ?? signingSecret(secrets);
  return createHmac("sha256", signer.secret).update(ticket).digest("base64url");
}

/**
 * Returns a digest to store instead of a caller's text. All processes make the same digest of a text. It is keyed,
 * because with a plain hash, anyone could find a reference or a code by trial.
 */
export function digestOf(secrets: readonly TokenSecret[], text: string): string {
  return createHmac("sha256", signingSecret(secrets).secret).update(`digest ${text}`).digest("base64url").slice(0, 22);
}

/** Hashes a token for the queue, because jobs must not contain tokens. SHA-256 in hex. */
export function hashToken(token: string): string {
  return hash("sha256", token);
}

/** The hash that the token of a reservation must have. */
export function expectedTokenHash(
  secrets: readonly TokenSecret[],
  { ticket, tokenSecretId }: { ticket: string; tokenSecretId: string },
): string {
  return hashToken(reservationToken(secrets, ticket, tokenSecretId));
}

/** Compares two token hashes in constant time. */
export function sameTokenHash(a: string, b: string): boolean {
  return a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
}
