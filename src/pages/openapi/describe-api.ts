import { z } from "zod";
import {
  type CreateDocumentOptions,
  createDocument,
  type oas31,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from "zod-openapi";
import packageJson from "../../../package.json" with { type: "json" };
import { examples } from "../../platform/api/example.ts";
import type { DescribedSettings, Endpoint } from "../../platform/http/endpoint.ts";
import { webhookEvent } from "../../webhooks/api/webhooks.ts";
import { GUIDE_PATH } from "../layout.ts";
import { describeErrors, type ErrorDescriptions } from "./describe-errors.ts";
import { describeFiles } from "./describe-files.ts";
import { INTRODUCTION, SECURITY_SCHEMES, TAGS } from "./introduction.ts";
import { ACCEPT_LANGUAGE, CONTENT_LANGUAGE_OF_REASON } from "./reader-language.ts";
import { RATE_LIMIT, REQUEST_ID } from "./response-headers.ts";

/** The API's OpenAPI document. */
export type ApiDescription = oas31.OpenAPIObject;

/** Generates an OpenAPI 3.1 document from the schemas that validate requests and type responses. */
export function describeApi(endpoints: readonly Endpoint[], settings: DescribedSettings): ApiDescription {
  const errors: ErrorDescriptions = new Map();
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method]: describeOperation(endpoint, settings, errors) };
  }
  Object.assign(paths, describeFiles(errors));
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "Partner Voucher API",
        version: packageJson.version,
        description: INTRODUCTION,
        license: { name: "MIT License", identifier: "MIT" },
        contact: { name: "The operator of this service", url: `${settings.baseUrl}/` },
      },
      externalDocs: { description: "The guide for partners", url: `${settings.baseUrl}${GUIDE_PATH}` },
      servers: [{ url: settings.baseUrl }],
      tags: TAGS,
      paths,
      webhooks: describeWebhooks(),
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    { override: simplifySchema },
  ) as ApiDescription;
}

/** The requests that this service sends to partners, by the type of their event. */
function describeWebhooks(): ZodOpenApiPathsObject {
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
      description: "Later versions may add types and fields. Answer within 15 seconds.",
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

function describeOperation(
  endpoint: Endpoint,
  settings: DescribedSettings,
  errors: ErrorDescriptions,
): ZodOpenApiOperationObject {
  const { body, query, description } = endpoint;
  const scopes = endpoint.security.flatMap((scheme) => Object.values(scheme).flat());
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: typeof description === "string" ? description : description(settings),
    // Only OAuth schemes may name scopes in a requirement.
    security: endpoint.security.map((scheme) => Object.fromEntries(Object.keys(scheme).map((name) => [name, []]))),
    ...(scopes.length > 0 && { "x-scopes": scopes }),
    requestParams: {
      path: z.object(endpoint.parameters),
      ...(query !== undefined && { query }),
      // Probes are read by machines and operators.
      ...(endpoint.tag !== "Health" && { header: ACCEPT_LANGUAGE }),
    },
    ...(body !== undefined && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: {
          "application/json": { schema: body, ...(examples.has(body) && { examples: examples.get(body) }) },
        },
      },
    }),
    responses: {
      200: {
        description: endpoint.responseDescription,
        headers: z.object({
          ...REQUEST_ID,
          ...(endpoint.operationId === "releaseReservation" && CONTENT_LANGUAGE_OF_REASON),
          ...(endpoint.errors.has("rate_limited") && RATE_LIMIT),
        }),
        content: {
          [endpoint.contentType?.replace(/;.*/, "") ?? "application/json"]: {
            schema: endpoint.response,
            examples: endpoint.responseExamples ?? examples.get(endpoint.response),
          },
          ...(endpoint.hasPage && { "text/html": { schema: z.string() } }),
          ...(endpoint.hasCsv && { "text/csv": { schema: z.string() } }),
        },
      },
      ...describeErrors(errors, endpoint),
    },
  };
}

const simplifySchema: CreateDocumentOptions["override"] = ({ jsonSchema, zodSchema, io }) => {
  // Responses may gain fields, so clients must accept unknown ones.
  if (io === "output") delete jsonSchema.additionalProperties;
  if (jsonSchema["x-open"] === true) {
    const { "x-open": _, enum: values, type, ...rest } = jsonSchema;
    for (const keyword of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[keyword];
    Object.assign(jsonSchema, rest, { anyOf: [{ type, enum: values }, { type }] });
  }
  // A nullable scalar is `type: [string, null]` instead of `anyOf`.
  const [value] = jsonSchema.anyOf ?? [];
  if (zodSchema._zod.def.type === "nullable" && typeof value?.type === "string" && value.enum === undefined) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { ...value, type: [value.type, "null"] });
  }
};
