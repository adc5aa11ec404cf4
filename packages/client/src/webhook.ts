import type { webhooks } from "./api.ts";

/** The event of a webhook request. Ignore unknown types. */
export type WebhookEvent = webhooks[keyof webhooks]["post"]["requestBody"]["content"]["application/json"];

/** The request was not signed with this secret, or not within the last five minutes. Respond with 401. */
export class InvalidWebhook extends Error {
  override name = "InvalidWebhook";
}

/** Maximum difference between the request's time and this clock. Seconds. */
const TOLERANCE_S = 300;

/**
 * Verifies a request of Standard Webhooks and reads its event.
 * @param body The body as text, exactly as it arrived. Do not parse and serialize it before.
 * @param headers The request's headers, with names in lower case as Node gives them, or a `Headers` object.
 * @param secret The secret that was shown when the endpoint was created or its secret was last rotated: `whsec_…`.
 * @returns the event and its `id`, which is the same in every attempt. Handle each id only once.
 * @throws InvalidWebhook
 */
export async function verifyWebhook(
  body: string,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): Promise<{ id: string; event: WebhookEvent }> {
  const [id, time, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) =>
    headers instanceof Headers ? headers.get(name) : headers[name],
  );
  if (typeof id !== "string" || typeof time !== "string" || typeof signatures !== "string")
    throw new InvalidWebhook("The request has no signature.");
  if (!(Math.abs(Number(time) - Date.now() / 1_000) <= TOLERANCE_S))
    throw new InvalidWebhook("The request is too old, or this clock is wrong.");
  const key = await crypto.subtle.importKey(
    "raw",
    decodeBase64(secret.replace(/^whsec_/, "")),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  const signed = new TextEncoder().encode(`${id}.${time}.${body}`);
  for (const one of signatures.split(" ")) {
    const [, signature] = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(one) ?? [];
    if (signature !== undefined && (await crypto.subtle.verify("HMAC", key, decodeBase64(signature), signed)))
      return { id, event: JSON.parse(body) };
  }
  throw new InvalidWebhook("The signature is not of this secret.");
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
