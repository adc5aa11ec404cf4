import { z } from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import { ANY_ADDRESS_ERRORS, type ErrorKind, errorResponse, errorsByCode } from "../../platform/api/errors.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { translateInto } from "../../platform/api/sentences.ts";
import type { Endpoint } from "../../platform/http/endpoint.ts";
import { DOCUMENTS } from "../documents.ts";
import { CONTENT_LANGUAGE } from "./reader-language.ts";
import { ALLOW, RATE_LIMIT, REQUEST_ID, RETRY_AFTER, WWW_AUTHENTICATE } from "./response-headers.ts";

/** Statuses whose responses have `Retry-After`. */
const RETRY_LATER = [429, 503];

/** The meaning of each code, from docs/errors.md. */
const MEANINGS = new Map(
  Array.from(
    DOCUMENTS.find(({ path }) => path === "/docs/errors")?.text.matchAll(/^\| \d+ \| `(\w+)` \| (.+) \|$/gm) ?? [],
    ([, code, meaning]) => [code, meaning],
  ),
);

type Described = Pick<Endpoint, "security" | "errors" | "errorDetails">;

/**
 * The error responses of one OpenAPI document. Equal responses share one object, which zod-openapi processes only once.
 */
export type ErrorDescriptions = Map<string, ZodOpenApiResponseObject>;

/** An endpoint's own errors by status. The errors that every URL can return are under `default`. */
export function describeErrors(
  known: ErrorDescriptions,
  endpoint: Described,
): Record<string, ZodOpenApiResponseObject> {
  const isLimited = endpoint.errors.has("rate_limited");
  const byStatus = [...Map.groupBy(endpoint.errors.values(), ({ status }) => status)].toSorted(([a], [b]) => a - b);
  const described = byStatus.map(([status, kinds]) => {
    const sendsChallenge = status === 401 && endpoint.security.some((scheme) => "userToken" in scheme);
    const key = JSON.stringify([
      kinds.map(({ code }) => code),
      sendsChallenge,
      isLimited,
      endpoint.errorDetails?.example,
    ]);
    const response = known.get(key) ?? {
      description: listCodes(kinds),
      headers: z.object({
        ...REQUEST_ID,
        ...CONTENT_LANGUAGE,
        ...(isLimited && RATE_LIMIT),
        ...(RETRY_LATER.includes(status) && RETRY_AFTER),
        ...(sendsChallenge && WWW_AUTHENTICATE),
      }),
      content: {
        "application/json": {
          schema: endpoint.errorDetails?.schema ?? errorResponse,
          examples: exampleErrors(kinds, endpoint.errorDetails?.example),
        },
      },
    };
    known.set(key, response);
    return [status, response];
  });
  return { ...Object.fromEntries(described), default: ANY_ADDRESS };
}

const ANY_KINDS = [...errorsByCode(ANY_ADDRESS_ERRORS).values()];

const ANY_ADDRESS: ZodOpenApiResponseObject = {
  id: "AnyAddress",
  description: `Errors that any URL can return:\n\n${listCodes(ANY_KINDS)}`,
  headers: z.object({ ...REQUEST_ID, ...CONTENT_LANGUAGE, ...ALLOW, ...RATE_LIMIT }),
  content: {
    "application/json": { schema: errorResponse, examples: exampleErrors(ANY_KINDS) },
  },
};

function exampleErrors(kinds: readonly ErrorKind[], details: Record<string, string> = {}) {
  return Object.fromEntries(
    kinds.map(({ code, status, sentence }) => [
      code,
      {
        summary: `${status} ${code}`,
        value: { error: sentence(translateInto("en")), code, requestId: EXAMPLE.requestId, ...details },
      },
    ]),
  );
}

function listCodes(kinds: readonly ErrorKind[]): string {
  return kinds
    .map(({ code, sentence }) => `- \`${code}\`: ${MEANINGS.get(code) ?? sentence(translateInto("en"))}.`)
    .join("\n");
}
