import { Webhook } from "standardwebhooks";
import { expect, it } from "vitest";
import {
  deriveSigningSecrets,
  deriveWebhookSecret,
  openSigningKeys,
  signWebhook,
  webhookHeaders,
} from "../../src/domain/webhook-signature.ts";

const ROOT = "a root secret of at least 32 characters";
const ENDPOINT = { id: "whk_1", secretVersion: 2, previousSecretSigns: true };
/** A published request: the signature was made by another implementation. */
const VECTOR = {
  id: "vch_01jzbq0000e00a4g0g0000002b-2",
  timestampSeconds: 1_800_000_000,
  body: '{"type":"voucher.instance.redeemed","timestamp":"2027-02-14T19:30:05.007Z","data":{"voucherId":"vch_01jzbq0000e00a4g0g0000002b","sequence":2,"recordHash":"58493e991815493a63a4412ae1bd4daaf62f0f62888588d3592c0d0156307c98","externalRef":"Bestellung № 4711/ä","redeemCode":"W8RC-7Q4K-9MZX"}}',
  keys: openSigningKeys(["whsec_uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4="]),
};

function contentNow(secrets: readonly string[]) {
  const keys = openSigningKeys(secrets);
  return { id: "vch_1-2", timestampSeconds: Math.floor(Date.now() / 1_000), body: '{"type":"webhook.test"}', keys };
}

it("signs the bytes that Standard Webhooks prescribes", () => {
  expect(signWebhook(VECTOR)).toBe("v1,RHroBtAE5AY6GVKNy7PWWtT9pLwb562xUgKzQkbN9oU=");
});

it("is accepted by the library under each of two secrets, and refused under a third", () => {
  const secrets = deriveSigningSecrets(ROOT, ENDPOINT);
  const content = contentNow(secrets);
  const headers = webhookHeaders(content);
  expect(secrets).toHaveLength(2);
  for (const secret of secrets)
    expect(new Webhook(secret).verify(content.body, headers)).toEqual({ type: "webhook.test" });
  const third = deriveWebhookSecret(ROOT, ENDPOINT.id, 3);
  expect(() => new Webhook(third).verify(content.body, headers)).toThrow("No matching signature");
});

it("signs with the newest secret first, and with the previous one only while it is to sign", () => {
  const [newest, previous] = [2, 1].map((version) => deriveWebhookSecret(ROOT, ENDPOINT.id, version));
  expect(deriveSigningSecrets(ROOT, ENDPOINT)).toEqual([newest, previous]);
  expect(deriveSigningSecrets(ROOT, { ...ENDPOINT, previousSecretSigns: false })).toEqual([newest]);
});

it("derives 32 bytes, the same for each call, and others for each root, endpoint and version", () => {
  const secret = deriveWebhookSecret(ROOT, "whk_1", 1);
  expect(secret).toBe(deriveWebhookSecret(ROOT, "whk_1", 1));
  expect(Buffer.from(secret.slice("whsec_".length), "base64")).toHaveLength(32);
  const others = [
    deriveWebhookSecret(`${ROOT}!`, "whk_1", 1),
    deriveWebhookSecret(ROOT, "whk_2", 1),
    deriveWebhookSecret(ROOT, "whk_1", 2),
  ];
  expect(new Set([secret, ...others]).size).toBe(4);
});
