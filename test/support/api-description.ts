import { ENDPOINTS, REFERENCE } from "../../src/open/endpoints.ts";
import { type ApiDescription, describeApi } from "../../src/pages/openapi/describe-api.ts";
import { BASE_URL } from "./service.ts";

/** The part of a Schema Object that tests use. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  additionalProperties?: boolean;
  [keyword: string]: unknown;
}

interface Media {
  schema: Schema;
  examples?: Record<string, { summary: string; value: unknown }>;
}

/** The content by media type. There is at least one. */
type Content = Record<string, Media>;

/** The only media type of a body, and its description. */
export function mediaOf(content: Content): Media & { type: string } {
  const [first, ...others] = Object.entries(content);
  if (first === undefined || others.length > 0) throw new Error("a body has one media type");
  return { type: first[0], ...first[1] };
}

/** A Response Object with resolved references. */
export interface ResponseDescription {
  description: string;
  headers: Record<string, { description: string; required?: boolean; schema: Schema }>;
  content: Content;
}

export interface Operation {
  method: "get" | "post" | "patch" | "delete";
  /** The path, with parameters in braces. */
  path: string;
  operationId: string;
  tags: string[];
  summary: string;
  description: string;
  security: Record<string, string[]>[];
  "x-scopes"?: string[];
  parameters: {
    in: "path" | "query" | "header";
    name: string;
    required?: boolean;
    description: string;
    schema: Schema;
  }[];
  requestBody?: { required: boolean; content: Content };
  /** By status, and `default`. */
  responses: Record<string, ResponseDescription>;
}

/** The OpenAPI document of the test services. */
export const DESCRIPTION: ApiDescription = describeApi(REFERENCE, {
  baseUrl: BASE_URL,
  reservationSeconds: null,
});

/** Resolves a reference of the document, such as `#/components/headers/Allow`. */
export function follow<Target>(value: Target | { $ref: string }): Target {
  if (typeof value !== "object" || value === null || !("$ref" in value)) return value as Target;
  let target: unknown = DESCRIPTION;
  for (const step of value.$ref.slice(2).split("/")) target = (target as Record<string, unknown>)[step];
  return follow(target as Target);
}

/** Every operation of {@link ENDPOINTS}, in document order. */
export const OPERATIONS: readonly Operation[] = Object.entries(DESCRIPTION.paths ?? {}).flatMap(([path, item]) =>
  (["get", "post", "patch", "delete"] as const)
    .filter((method) => ENDPOINTS.some(({ operationId }) => operationId === item[method]?.operationId))
    .map((method) => {
      const operation = item[method] as unknown as Operation;
      const responses = Object.entries(operation.responses).map(([status, reference]) => {
        const response = follow(reference);
        const headers = Object.entries(response.headers).map(([name, header]) => [name, follow(header)] as const);
        return [status, { ...response, headers: Object.fromEntries(headers) }] as const;
      });
      return { ...operation, method, path, responses: Object.fromEntries(responses) };
    }),
);
