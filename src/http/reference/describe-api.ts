import { z } from "zod";
import {
  type CreateDocumentOptions,
  createDocument,
  type oas31,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
} from "zod-openapi";
import packageJson from "../../../package.json" with { type: "json" };
import type { Endpoint } from "../endpoint.ts";
import { RATE_LIMIT, REQUEST_ID } from "./answer-headers.ts";
import { RefusalDescriptions } from "./describe-refusals.ts";
import { INTRODUCTION, SECURITY_SCHEMES, TAGS } from "./introduction.ts";

/** The API's description as OpenAPI has it. */
export type ApiDescription = oas31.OpenAPIObject;

/** Describes endpoints as an OpenAPI 3.1 document, from the schemas that check their requests and type their answers. */
export function describeApi(endpoints: readonly Endpoint[], baseUrl: string): ApiDescription {
  const refusals = new RefusalDescriptions();
  const paths: ZodOpenApiPathsObject = {};
  for (const endpoint of endpoints) {
    const path = endpoint.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [endpoint.method]: describeOperation(endpoint, refusals) };
  }
  return createDocument(
    {
      openapi: "3.1.0",
      info: {
        title: "Partner Voucher API",
        version: packageJson.version,
        description: INTRODUCTION,
      },
      servers: [{ url: baseUrl }],
      tags: TAGS,
      paths,
      components: { securitySchemes: SECURITY_SCHEMES },
    },
    { override: settle },
  ) as ApiDescription;
}

function describeOperation(endpoint: Endpoint, refusals: RefusalDescriptions): ZodOpenApiOperationObject {
  const { body, query } = endpoint;
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    description: endpoint.description,
    security: endpoint.security.map((scheme) => ({ ...scheme })),
    requestParams: {
      path: z.object(endpoint.parameters),
      ...(query !== undefined && { query }),
    },
    ...(body !== undefined && {
      requestBody: {
        required: !body.safeParse({}).success,
        content: {
          "application/json": { schema: body, ...(endpoint.bodyExamples && { examples: endpoint.bodyExamples }) },
        },
      },
    }),
    responses: {
      200: {
        description: endpoint.answerDescription,
        headers: z.object({ ...REQUEST_ID, ...(endpoint.errors.has("rate_limited") && RATE_LIMIT) }),
        content: { "application/json": { schema: endpoint.answer, examples: endpoint.answerExamples } },
      },
      ...refusals.of(endpoint),
    },
  };
}

const settle: CreateDocumentOptions["override"] = ({ jsonSchema, zodSchema, io }) => {
  // Answers may get more fields, so the reference forbids none.
  if (io === "output") delete jsonSchema.additionalProperties;
  // "A string or null" needs no alternatives.
  const [value] = jsonSchema.anyOf ?? [];
  if (zodSchema._zod.def.type === "nullable" && typeof value?.type === "string" && value.enum === undefined) {
    delete jsonSchema.anyOf;
    Object.assign(jsonSchema, { ...value, type: [value.type, "null"] });
  }
};
