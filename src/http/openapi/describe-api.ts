import { z } from "zod";
import {
  type CreateDocumentOptions,
  createDocument,
  type oas31,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from "zod-openapi";
import packageJson from "../../../package.json" with { type: "json" };
import { examples } from "../../contract/example.ts";
import type { DescribedSettings, Endpoint } from "../endpoint.ts";
import { GUIDE_PATH } from "../pages/layout.ts";
import { ErrorDescriptions } from "./describe-errors.ts";
import { INTRODUCTION, SECURITY_SCHEMES, TAGS } from "./introduction.ts";
import { RATE_LIMIT, REQUEST_ID } from "./response-headers.ts";

/** The API's OpenAPI document. */
export type ApiDescription = oas31.OpenAPIObject;

/** Generates an OpenAPI 3.1 document from the schemas that validate requests and type responses. */
export function describeApi(endpoints: readonly Endpoint[], settings: DescribedSettings): ApiDescription {
  const errors = new ErrorDescriptions();
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method]: describeOperation(endpoint, settings, errors) };
  }
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
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    { override: simplifySchema },
  ) as ApiDescription;
}

function describeOperation(
  endpoint: Endpoint,
  settings: DescribedSettings,
  errors: ErrorDescriptions,
): ZodOpenApiOperationObject {
  const { body, query, description } = endpoint;
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: typeof description === "string" ? description : description(settings),
    security: endpoint.security.map((scheme) => ({ ...scheme })),
    requestParams: {
      path: z.object(endpoint.parameters),
      ...(query !== undefined && { query }),
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
        headers: z.object({ ...REQUEST_ID, ...(endpoint.errors.has("rate_limited") && RATE_LIMIT) }),
        content: {
          [endpoint.contentType?.replace(/;.*/, "") ?? "application/json"]: {
            schema: endpoint.response,
            examples: endpoint.responseExamples ?? examples.get(endpoint.response),
          },
          ...(endpoint.hasCsv && { "text/csv": { schema: z.string() } }),
        },
      },
      ...errors.of(endpoint),
    },
  };
}

const simplifySchema: CreateDocumentOptions["override"] = ({ jsonSchema, zodSchema, io }) => {
  // Responses may gain fields, so clients must accept unknown ones.
  if (io === "output") delete jsonSchema.additionalProperties;
  // A nullable scalar is `type: [string, null]` instead of `anyOf`.
  const [value] = jsonSchema.anyOf ?? [];
  if (zodSchema._zod.def.type === "nullable" && typeof value?.type === "string" && value.enum === undefined) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { ...value, type: [value.type, "null"] });
  }
};
