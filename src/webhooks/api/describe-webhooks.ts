import { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiPathsObject } from "zod-openapi";
import { ATTEMPT_MAX_MS } from "../../platform/outgoing/send-webhook.ts";
import { webhookEvent } from "./webhooks.ts";

/** Describes the requests that this service sends to partners, by event type. */
export function describeWebhooks(): ZodOpenApiPathsObject {
  const header = z.object({
    "webhook-id": z.string().meta({ description: "The same in every attempt: ignore what you have handled." }),
    "webhook-timestamp": z.string().meta({ description: "When this attempt was signed, in Unix seconds." }),
    "webhook-signature": z
      .string()
      .meta({ description: "One or more signatures `v1,…` of Standard Webhooks, separated by spaces." }),
  });
  const webhooks = webhookEvent.options.map((body): [string, ZodOpenApiPathsObject[string]] => {
    const type = body.shape.type.value;
    const post: ZodOpenApiOperationObject = {
      operationId: type.replace(/[^a-z]+(.)/g, (_, letter: string) => letter.toUpperCase()),
      tags: ["Webhooks"],
      summary: `Sent to your endpoints: ${type}`,
      description: `Later versions may add types and fields. Answer within ${ATTEMPT_MAX_MS / 1_000} seconds.`,
      security: [],
      requestParams: { header },
      requestBody: { required: true, content: { "application/json": { schema: body } } },
      responses: {
        "2XX": { description: "Delivered." },
        "410": { description: "The endpoint is gone: it is disabled." },
        default: { description: "Failed: the delivery is tried again." },
      },
    };
    return [type, { post }];
  });
  return Object.fromEntries(webhooks);
}
