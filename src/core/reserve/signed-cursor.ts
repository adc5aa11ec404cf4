import { createHmac, timingSafeEqual } from "node:crypto";
import { signingSecret, type TokenSecret } from "./reservation-token.ts";

/**
 * The lists with signed cursors. The MAC covers the list's name. So a cursor is valid only for its own list, and a
 * reservation's token, which the same secrets sign, is not a valid cursor.
 */
type List = "redemptions" | "events";

/** Length of a cursor's MAC in bytes. */
const MAC_BYTES = 16;

/** Writes a position in a list as opaque text, signed with the first secret. Only the same organization can use it. */
export function signCursor(
  secrets: readonly TokenSecret[],
  list: List,
  organizationId: string,
  place: readonly (string | number | null)[],
): string {
  const body = Buffer.from(JSON.stringify(place));
  return Buffer.concat([macOf(signingSecret(secrets), list, organizationId, body), body]).toString("base64url");
}

/** Reads a cursor. Returns null if none of the secrets has signed exactly this text for this organization. */
export function verifyCursor(
  secrets: readonly TokenSecret[],
  list: List,
  organizationId: string,
  text: string,
  // biome-ignore lint/suspicious/noExplicitAny: only the list that wrote the place knows what it has.
): any[] | null {
  const bytes = Buffer.from(text, "base64url");
  const [mac, body] = [bytes.subarray(0, MAC_BYTES), bytes.subarray(MAC_BYTES)];
  const isSigned =
    bytes.toString("base64url") === text &&
    mac.length === MAC_BYTES &&
    secrets.some((secret) => timingSafeEqual(mac, macOf(secret, list, organizationId, body)));
  return isSigned ? JSON.parse(body.toString()) : null;
}

function macOf({ secret }: TokenSecret, list: List, organizationId: string, body: Buffer): Buffer {
  const hmac = createHmac("sha256", secret).update(`${list} cursor\0${organizationId}\0`).update(body);
  return hmac.digest().subarray(0, MAC_BYTES);
}
