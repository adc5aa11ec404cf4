import { createHmac, timingSafeEqual } from "node:crypto";
import { signingSecret, type TokenSecret } from "../reserve/reservation-token.ts";

/** A place in an organization's list of redemptions, and the range of the list. Times in milliseconds since 1970. */
export interface RedemptionsCursor {
  redeemedAtMs: number;
  /** The last voucher that was listed with that time; empty when none was. */
  voucherId: string;
  fromMs: number | null;
  toMs: number | null;
}

/** Bytes of the MAC that a cursor carries. */
const MAC_BYTES = 16;

/** Writes a cursor as opaque text that only the same organization can use. The first secret signs it. */
export function signCursor(secrets: readonly TokenSecret[], organizationId: string, cursor: RedemptionsCursor): string {
  const { redeemedAtMs, voucherId, fromMs, toMs } = cursor;
  const body = Buffer.from(JSON.stringify([redeemedAtMs, voucherId, fromMs, toMs]));
  return Buffer.concat([macOf(signingSecret(secrets), organizationId, body), body]).toString("base64url");
}

/** Reads a cursor. Returns null unless one of the secrets has signed exactly this text for this organization. */
export function verifyCursor(
  secrets: readonly TokenSecret[],
  organizationId: string,
  text: string,
): RedemptionsCursor | null {
  const bytes = Buffer.from(text, "base64url");
  const [mac, body] = [bytes.subarray(0, MAC_BYTES), bytes.subarray(MAC_BYTES)];
  const isSigned =
    bytes.toString("base64url") === text &&
    mac.length === MAC_BYTES &&
    secrets.some((secret) => timingSafeEqual(mac, macOf(secret, organizationId, body)));
  if (!isSigned) return null;
  const [redeemedAtMs, voucherId, fromMs, toMs] = JSON.parse(body.toString());
  return { redeemedAtMs, voucherId, fromMs, toMs };
}

/** The prefix keeps these MACs apart from reservation tokens, which are MACs of tickets with the same secret. */
function macOf({ secret }: TokenSecret, organizationId: string, body: Buffer): Buffer {
  const hmac = createHmac("sha256", secret).update(`redemptions cursor\0${organizationId}\0`).update(body);
  return hmac.digest().subarray(0, MAC_BYTES);
}
