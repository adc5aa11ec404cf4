import { z } from "zod";
import type { ZodOpenApiResponseObject } from "zod-openapi";
import type { ErrorCode } from "../../domain/errors.ts";
import { EXAMPLE } from "../answers/example.ts";
import { failure } from "../answers/failure.ts";
import type { Endpoint } from "../endpoint.ts";
import { ERRORS, statusOf } from "../error-map.ts";
import { ALLOW, RATE_LIMIT, REQUEST_ID, RETRY_AFTER, WWW_AUTHENTICATE } from "./answer-headers.ts";

/** What any address may refuse, whatever it is. */
const ANYWHERE: readonly ErrorCode[] = [
  "not_found",
  "method_not_allowed",
  "rate_limited",
  "invalid_http",
  "request_timeout",
  "headers_too_large",
  "internal_error",
];

/** Statuses whose answers tell when to come back. */
const RETRY_LATER = [429, 503];

/** The refusals of endpoints, by status. */
export class RefusalDescriptions {
  /** The same refusals are the same object, which the document's maker then describes once: a fifth of the work. */
  readonly #described = new Map<string, ZodOpenApiResponseObject>();
  readonly #anywhere = describeAnywhere();

  /** What an endpoint refuses with by itself, and under `default` what any address does. */
  of(endpoint: Endpoint): Record<string, ZodOpenApiResponseObject> {
    const byStatus = [...Map.groupBy(endpoint.errors, statusOf)].toSorted(([a], [b]) => a - b);
    return {
      ...Object.fromEntries(byStatus.map(([status, codes]) => [status, this.#describe(endpoint, status, codes)])),
      default: this.#anywhere,
    };
  }

  #describe(endpoint: Endpoint, status: number, codes: readonly ErrorCode[]): ZodOpenApiResponseObject {
    const asksForUser = status === 401 && endpoint.security.some((scheme) => "userToken" in scheme);
    const isLimited = endpoint.errors.has("rate_limited");
    const key = JSON.stringify([codes, asksForUser, isLimited, endpoint.refusalDetails?.example]);
    const known = this.#described.get(key);
    if (known !== undefined) return known;
    const schema = failure(nonEmpty(codes));
    const described: ZodOpenApiResponseObject = {
      description: listCodes(codes),
      headers: z.object({
        ...REQUEST_ID,
        ...(isLimited && RATE_LIMIT),
        ...(RETRY_LATER.includes(status) && RETRY_AFTER),
        ...(asksForUser && WWW_AUTHENTICATE),
      }),
      content: {
        "application/json": {
          schema: endpoint.refusalDetails ? schema.extend(endpoint.refusalDetails.fields.shape) : schema,
          examples: exampleRefusals(codes, endpoint.refusalDetails?.example),
        },
      },
    };
    this.#described.set(key, described);
    return described;
  }
}

function describeAnywhere(): ZodOpenApiResponseObject {
  return {
    id: "AnyAddress",
    description: `What any address may answer:\n\n${listCodes(ANYWHERE)}`,
    headers: z.object({ ...REQUEST_ID, ...ALLOW, ...RATE_LIMIT }),
    content: { "application/json": { schema: failure(nonEmpty(ANYWHERE)), examples: exampleRefusals(ANYWHERE) } },
  };
}

/** An example of each code's answer. */
function exampleRefusals(codes: readonly ErrorCode[], details: Record<string, string> = {}) {
  return Object.fromEntries(
    codes.map((code) => [
      code,
      {
        summary: `${statusOf(code)} ${code}`,
        value: { error: ERRORS[code].example, code, requestId: EXAMPLE.requestId, ...details },
      },
    ]),
  );
}

/** A Markdown list of what codes mean. */
function listCodes(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `- \`${code}\`: ${ERRORS[code].meaning}.`).join("\n");
}

function nonEmpty(codes: readonly ErrorCode[]): [ErrorCode, ...ErrorCode[]] {
  const [first, ...rest] = codes;
  if (first === undefined) throw new Error("a refusal without a code");
  return [first, ...rest];
}
