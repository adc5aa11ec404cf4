import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { ALL_ERRORS } from "./all-errors.ts";
import {
  DESCRIPTION,
  mediaOf,
  OPERATIONS,
  type Operation,
  type ResponseDescription,
  type Schema,
} from "./api-description.ts";

/** An answer to check. */
export interface Answer {
  status: number;
  headers: Headers;
  /** Null without a body. */
  body: unknown;
}

/** Addresses outside the API, which the reference does not describe. */
export const OUTSIDE = [
  { address: "/", because: "a page for people" },
  { address: "/check", because: "a form for people" },
  { address: "/assets", because: "what pages load" },
  { address: "/logos", because: "the logos of brands, which pages load" },
  { address: "/colours", because: "the colours of brands, which pages load" },
  { address: "/integrity/events/:entityType/:entityId/history", because: "a page for experts" },
  { address: "/log", because: "the log's files, in the form of C2SP tlog-tiles" },
  { address: "/docs", because: "the reference as a page" },
  { address: "/openapi.json", because: "the reference itself" },
  { address: "/favicon.ico", because: "the icon, where browsers look for it" },
  { address: "/robots.txt", because: "what crawlers may read" },
  { address: "/.well-known/security.txt", because: "RFC 9116" },
  { address: "/portal", because: "the pages for people of partners" },
  { address: "/ops", because: "the operators' pages and dashboard" },
] as const;

/** Whether an address or a route pattern is outside the API. */
export function isOutside(path: string): boolean {
  return OUTSIDE.some(({ address }) => {
    if (path === address || address === "/") return path === address;
    if (address.includes(":")) return new RegExp(`^${address.replaceAll(/:\w+/g, "[^/]+")}$`).test(path);
    return path.startsWith(`${address}/`);
  });
}

/**
 * Checks an answer against the API reference: the operation, its status, the required headers and every field of the
 * body. A field that the reference does not describe is an error.
 * @throws Error with the differences.
 */
export function checkAnswer(method: string, url: string, answer: Answer): void {
  const { pathname } = new URL(url);
  if (isOutside(pathname)) return;
  const operation = findOperation(method, pathname);
  const faults = operation === null ? checkAnywhere(answer) : checkOperation(operation, answer, method === "HEAD");
  if (faults.length === 0) return;
  const name = operation === null ? "any address" : operation.operationId;
  const answered = `${answer.status} ${JSON.stringify(answer.body)}`;
  const summary = `${method} ${pathname} (${name}) answered ${answered}, which contradicts the reference:`;
  throw new Error([summary, ...faults].join("\n"));
}

const isFixed = ({ path }: Operation) => !path.includes("{");

/** Fixed paths come first, as OpenAPI prescribes. */
const PATTERNS = OPERATIONS.toSorted((a, b) => Number(isFixed(b)) - Number(isFixed(a))).map((operation) => ({
  operation,
  pattern: new RegExp(`^${operation.path.replace(/\{\w+\}/g, "[^/]+").replaceAll(".", "\\.")}/?$`),
}));

/** Finds the first matching operation, like the router. */
function findOperation(method: string, pathname: string): Operation | null {
  const wanted = method === "HEAD" ? "get" : method.toLowerCase();
  const found = PATTERNS.find(({ operation, pattern }) => operation.method === wanted && pattern.test(pathname));
  return found?.operation ?? null;
}

function checkOperation(operation: Operation, answer: Answer, bodiless: boolean): string[] {
  const own = operation.responses[answer.status];
  const place = ["paths", operation.path, operation.method, "responses", String(answer.status)];
  const ownFaults = own === undefined ? ["the status is not described"] : checkResponse(own, place, answer, bodiless);
  if (ownFaults.length === 0) return [];
  return checkAnywhere(answer).length === 0 ? [] : ownFaults;
}

/** The description of answers that any address may give. */
export const ANY_ADDRESS = ["components", "responses", "AnyAddress"];

function checkAnywhere(answer: Answer): string[] {
  const anywhere = OPERATIONS[0]?.responses.default;
  if (anywhere === undefined) throw new Error("the reference has no default answer");
  const faults = checkResponse(anywhere, ANY_ADDRESS, answer, answer.body === null);
  if (answer.status < 400) faults.push("the status is not described");
  if (answer.status === 405 && !answer.headers.has("allow")) faults.push("a 405 without Allow");
  return faults;
}

function checkResponse(
  described: ResponseDescription,
  place: readonly string[],
  answer: Answer,
  bodiless: boolean,
): string[] {
  const faults: string[] = [];
  for (const [name, { required, schema }] of Object.entries(described.headers)) {
    const value = answer.headers.get(name);
    if (value === null) {
      if (required) faults.push(`the header ${name} is missing`);
      continue;
    }
    faults.push(
      ...validate(["components", "headers", name, "schema"], schema.type === "integer" ? Number(value) : value),
    );
  }
  if (answer.headers.get("cache-control") !== "no-store") faults.push("the answer may be stored");
  const { type } = mediaOf(described.content);
  if (answer.headers.get("content-type") !== `${type}; charset=utf-8`) faults.push(`the body is not ${type}`);
  if (bodiless) return faults;
  faults.push(...checkBody(place, answer.body, type));
  const { code, requestId } = (answer.body ?? {}) as { code?: string; requestId?: string };
  if (answer.status >= 400) {
    if (code === undefined || ALL_ERRORS.get(code)?.status !== answer.status)
      faults.push("the code belongs to another status");
    // Compares the code with the described examples, because the schema accepts any code, as clients must.
    const examples = mediaOf(described.content).examples ?? {};
    if (code !== undefined && !(code in examples)) faults.push(`the code ${code} is not described here`);
    if (requestId !== answer.headers.get("x-request-id")) faults.push("requestId is not X-Request-Id");
  }
  return faults;
}

// Turns optimization off: each process compiles the schemas once and runs them only a few times, so optimizing would
// cost more than it saves.
const ajv = new Ajv2020({ strict: false, allErrors: true, code: { optimize: false } });
addFormats.default(ajv);
ajv.addSchema({ ...closed(DESCRIPTION as unknown as Schema), $id: "api" });
const compiled = new Map<string, ValidateFunction>();

/** Forbids additional fields in every object of the document. */
function closed(schema: Schema): Schema {
  if (Array.isArray(schema)) return schema.map(closed) as unknown as Schema;
  if (typeof schema !== "object" || schema === null) return schema;
  const parts = Object.entries(schema).map(([key, part]) => [key, closed(part as Schema)]);
  const isObject = schema.type === "object" && schema.properties !== undefined;
  return { ...Object.fromEntries(parts), ...(isObject && { additionalProperties: false }) };
}

/**
 * Validates a body against the schema at a path in the document, such as `["components", "responses", "AnyAddress"]`.
 * Additional fields are errors.
 */
export function checkBody(place: readonly string[], body: unknown, type = "application/json"): string[] {
  return validate([...place, "content", type, "schema"], body);
}

function validate(steps: readonly string[], value: unknown): string[] {
  const pointer = steps.map((step) => encodeURIComponent(step.replaceAll("~", "~0").replaceAll("/", "~1"))).join("/");
  const check = compiled.get(pointer) ?? ajv.compile({ $ref: `api#/${pointer}` });
  compiled.set(pointer, check);
  if (check(value)) return [];
  return (check.errors ?? []).map(
    (error) => `${error.instancePath || "it"} ${error.message} ${JSON.stringify(error.params)}`,
  );
}
