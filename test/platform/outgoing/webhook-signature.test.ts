import { createSecretKey } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, it } from "vitest";
import {
  deriveWebhookSecret,
  openSigningKeys,
  signWebhook,
  webhookHeaders,
} from "../../../src/platform/outgoing/webhook-signature.ts";

const ROOT = "a root secret of at least 32 characters";
const ENDPOINT = { id: "whk_1", signingVersions: [2, 1] };
/** A published request, signed by another implementation. */
const VECTOR = {
  id: "vch_01jzbq0000e00a4g0g0000002b-2",
  timestampSeconds: 1_800_000_000,
  body: JSON.stringify({
    type: "voucher.instance.redeemed",
    timestamp: "2027-02-14T19:30:05.007Z",
    data: {
      voucherId: "vch_01jzbq0000e00a4g0g0000002b",
      sequence: 2,
      recordHash: "58493e991815493a63a4412ae1bd4daaf62f0f62888588d3592c0d0156307c98",
      externalRef: "Bestellung № 4711/ä",
      redeemCode: "W8RC-7Q4K-9MZX",
    },
  }),
  keys: [createSecretKey("uWK94YHe94pUT6OXCTYiEMMlBT1/xyoL++e1MKXeBP4=", "base64")],
};

it("a webhook's signature covers the bytes that Standard Webhooks prescribes", () => {
  expect(signWebhook(VECTOR)).toBe("v1,RHroBtAE5AY6GVKNy7PWWtT9pLwb562xUgKzQkbN9oU=");
});

it("a webhook's signature is valid under each signing secret, and under no other", () => {
  const body = '{"type":"webhook.test"}';
  const keys = openSigningKeys(ROOT, ENDPOINT);
  const headers = webhookHeaders({ id: "vch_1-2", timestampSeconds: Math.floor(Date.now() / 1_000), body, keys });
  const [newest, previous, other] = [2, 1, 3].map((version) => deriveWebhookSecret(ROOT, ENDPOINT.id, version));
  for (const secret of [newest, previous])
    expect(new Webhook(secret ?? "").verify(body, headers)).toEqual({ type: "webhook.test" });
  const first = { ...headers, "webhook-signature": headers["webhook-signature"]?.split(" ")[0] ?? "" };
  expect(new Webhook(newest ?? "").verify(body, first)).toEqual({ type: "webhook.test" });
  expect(() => new Webhook(other ?? "").verify(body, headers)).toThrow("No matching signature");
});

it("deriveWebhookSecret derives the same 32 bytes each time, and other bytes for other arguments", () => {
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
