import { z } from "zod";
import {
  type CreateDocumentOptions,
  createDocument,
  type oas31,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from "zod-openapi";
import packageJson from "../../../package.json" with { type: "json" };
import { knownErrorCode } from "../../platform/api/errors.ts";
import { examples } from "../../platform/api/example.ts";
import { codesOf, type DescribedSettings, type Endpoint } from "../../platform/http/endpoint.ts";
import { GUIDE_PATH } from "../layout.ts";
import { describeErrors, type ErrorDescriptions } from "./describe-errors.ts";
import { type DescribedFile, describeFiles } from "./describe-files.ts";
import { INTRODUCTION, SECURITY_SCHEMES, TAGS } from "./introduction.ts";
import { ACCEPT_LANGUAGE, CONTENT_LANGUAGE_OF_REASON } from "./reader-language.ts";
import { RATE_LIMIT, REQUEST_ID } from "./response-headers.ts";

/** The API's OpenAPI document. */
export type ApiDescription = oas31.OpenAPIObject;

/** The parts of the API. */
export interface DescribedParts {
  endpoints: readonly Endpoint[];
  /** Files by their paths. */
  files: Readonly<Record<string, DescribedFile>>;
  /** The requests that webhooks send to partners, by event type. */
  webhooks: ZodOpenApiPathsObject;
  /** The names of files of `docs/` that the service serves in addition to those of the core. */
  documents: readonly string[];
}

/** Generates an OpenAPI 3.1 document from the schemas that validate requests and type responses. */
export function describeApi(
  { endpoints, files, webhooks }: DescribedParts,
  settings: DescribedSettings,
): ApiDescription {
  const errors: ErrorDescriptions = new Map();
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method]: describeOperation(endpoint, settings, errors) };
  }
  Object.assign(paths, describeFiles(files, errors));
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
      tags: TAGS.filter(({ name }) => endpoints.some(({ tag }) => tag === name)),
      paths,
      webhooks,
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    {
      override: (schema) => {
        if (schema.zodSchema === knownErrorCode) schema.jsonSchema.enum = codesOf(endpoints);
        simplifySchema?.(schema);
      },
    },
  ) as ApiDescription;
}

function describeOperation(
  endpoint: Endpoint,
  settings: DescribedSettings,
  errors: ErrorDescriptions,
): ZodOpenApiOperationObject {
  const { body, query, description } = endpoint;
  const otherTypes = [...(endpoint.hasCsv ? ["text/csv"] : []), ...(endpoint.hasPage ? ["text/html"] : [])];
  const scopes = endpoint.security.flatMap((scheme) => Object.values(scheme).flat());
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: typeof description === "string" ? description : description(settings),
    // Only requirements with OAuth schemes may name scopes.
    security: endpoint.security.map((scheme) => Object.fromEntries(Object.keys(scheme).map((name) => [name, []]))),
    ...(scopes.length > 0 && { "x-scopes": scopes }),
    // Does not list these types among the responses, because client generators would then give each call the type "JSON
    // or text".
    ...(otherTypes.length > 0 && { "x-other-media-types": otherTypes }),
    requestParams: {
      path: z.object(endpoint.parameters),
      ...(query !== undefined && { query }),
      // Only machines and operators read probes, so their responses have only one language.
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
        },
      },
      ...describeErrors(errors, endpoint),
    },
  };
}

const simplifySchema: CreateDocumentOptions["override"] = ({ jsonSchema, zodSchema, io }) => {
  // Responses may gain fields, so clients must accept unknown fields.
  if (io === "output") delete jsonSchema.additionalProperties;
  if (jsonSchema["x-open"] === true) {
    const { "x-open": _, enum: values, type, ...rest } = jsonSchema;
    for (const keyword of Object.keys(jsonSchema)) delete (jsonSchema as Record<string, unknown>)[keyword];
    Object.assign(jsonSchema, rest, { anyOf: [{ type, enum: values }, { type }] });
  }
  // Describes a nullable scalar as `type: [string, null]` instead of `anyOf`.
  const [value] = jsonSchema.anyOf ?? [];
  if (zodSchema._zod.def.type === "nullable" && typeof value?.type === "string" && value.enum === undefined) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { ...value, type: [value.type, "null"] });
  }
};
