import { createHmac, createSecretKey, hkdfSync, type KeyObject } from "node:crypto";

const PREFIX = "whsec_";
/** A secret in the form of Standard Webhooks: 24 to 64 bytes in base64 after the prefix. */
const SECRET = /^whsec_(?=.{32,88}$)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** The length of a SHA-256 hash. */
const SECRET_BYTES = 32;

/**
 * Derives one version of an endpoint's secret: HKDF-SHA256 of WEBHOOK_SECRET, in the form of Standard Webhooks. The
 * derived secret is never stored.
 */
export function deriveWebhookSecret(rootSecret: string, endpointId: string, version: number): string {
  const bytes = hkdfSync("sha256", rootSecret, endpointId, `webhook secret ${version}`, SECRET_BYTES);
  return `${PREFIX}${Buffer.from(bytes).toString("base64")}`;
}

/** Whether a text is a secret with which receivers can verify signatures. */
export const isWebhookSecret = (text: string) => SECRET.test(text);

/** The key object that signs with a secret. */
export const keyOfSecret = (secret: string): KeyObject => createSecretKey(secret.slice(PREFIX.length), "base64");

/** The keys that sign an endpoint's requests now. Key objects take a sixth of the time of keys as bytes. */
export function openSigningKeys(
  rootSecret: string,
  { id, signingVersions }: { id: string; signingVersions: readonly number[] },
): KeyObject[] {
  return signingVersions.map((version) => keyOfSecret(deriveWebhookSecret(rootSecret, id, version)));
}

/** A request to sign. */
interface WebhookContent {
  id: string;
  timestampSeconds: number;
  /** The exact text that is sent. */
  body: string;
  keys: readonly KeyObject[];
}

/** `webhook-signature`: a `v1` signature per key (https://github.com/standard-webhooks/standard-webhooks). */
export function signWebhook({ id, timestampSeconds, body, keys }: WebhookContent): string {
  return keys
    .map((key) => `v1,${createHmac("sha256", key).update(`${id}.${timestampSeconds}.${body}`).digest("base64")}`)
    .join(" ");
}

/** The headers of a signed request. */
export function webhookHeaders(content: WebhookContent): Record<string, string> {
  return {
    "webhook-id": content.id,
    "webhook-timestamp": String(content.timestampSeconds),
    "webhook-signature": signWebhook(content),
  };
}
