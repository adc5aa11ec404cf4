import { createHmac, hkdfSync } from "node:crypto";

const PREFIX = "whsec_";
/** As long as the hash that it keys. */
const SECRET_BYTES = 32;

/** Derives the secret of an endpoint's version: HKDF-SHA256 of WEBHOOK_SECRET, in the form of Standard Webhooks. It is never stored. */
export function deriveWebhookSecret(rootSecret: string, endpointId: string, version: number): string {
  const bytes = hkdfSync("sha256", rootSecret, endpointId, `webhook secret ${version}`, SECRET_BYTES);
  return `${PREFIX}${Buffer.from(bytes).toString("base64")}`;
}

/** An endpoint's secrets as its row has them. */
export interface SecretVersions {
  id: string;
  secretVersion: number;
  /** The secret from before the last rotation still signs, by the database's clock. */
  previousSecretSigns: boolean;
}

/** The secrets that sign an endpoint's requests now, the newest first. */
export function deriveSigningSecrets(rootSecret: string, endpoint: SecretVersions): string[] {
  const { id, secretVersion, previousSecretSigns } = endpoint;
  const versions = previousSecretSigns ? [secretVersion, secretVersion - 1] : [secretVersion];
  return versions.map((version) => deriveWebhookSecret(rootSecret, id, version));
}

/** A request to sign. */
interface WebhookContent {
  id: string;
  timestampSeconds: number;
  /** The exact text that is sent. */
  body: string;
  /** As `deriveSigningSecrets` returns them. */
  secrets: readonly string[];
}

/** The value of `webhook-signature`: one `v1` signature per secret (https://github.com/standard-webhooks/standard-webhooks). */
export function signWebhook({ id, timestampSeconds, body, secrets }: WebhookContent): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.slice(PREFIX.length), "base64");
      const signature = createHmac("sha256", key).update(`${id}.${timestampSeconds}.${body}`).digest("base64");
      return `v1,${signature}`;
    })
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
