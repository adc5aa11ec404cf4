import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import bruno from "@usebruno/lang";
import { expect } from "vitest";
import { type Reply, send } from "./client.ts";

// Reads the collection in docs/bruno with Bruno's own parser, and sends its requests like Bruno.

const read = (file: string) => readFileSync(`docs/bruno/${file}`, "utf8");
export const COLLECTION = bruno.collectionBruToJson(read("collection.bru"));
export const ENVIRONMENT = bruno.bruToEnvJsonV2(read("environments/npm start.bru")).variables;
const FILES = globSync("docs/bruno/*.bru").filter((file) => basename(file) !== "collection.bru");
/** The requests, in their order. */
export const REQUESTS = FILES.map((file) => ({ file, ...bruno.bruToJsonV2(readFileSync(file, "utf8")) })).toSorted(
  (a, b) => Number(a.meta.seq) - Number(b.meta.seq),
);

export type BrunoVariables = Map<string, string>;
type BrunoRequest = (typeof REQUESTS)[number];

/** Replaces each `{{variable}}`. */
function fill(text: string, variables: BrunoVariables): string {
  return text.replace(/\{\{([^}]*)\}\}/g, (_, name) => {
    const value = variables.get(name);
    if (value === undefined) throw new Error(`the variable ${name} is not set`);
    return value;
  });
}

/** The value of an expression such as `res.body.ticket`. */
function evaluate(expression: string, { status, body }: Reply): unknown {
  const [root, ...steps] = expression.split(/[.[\]]+/);
  if (root !== "res") throw new Error(`${expression} does not begin with res`);
  return steps.reduce((value: unknown, step) => (value as Record<string, unknown>)?.[step], { status, body });
}

/** Sends a request, sets the variables that it reads from the response, and checks its assertions. */
export async function runRequest(request: BrunoRequest, variables: BrunoVariables): Promise<Reply> {
  const url = (request.params ?? [])
    .filter(({ type }) => type === "path")
    .reduce(
      (path, { name, value }) => path.replace(`:${name}`, encodeURIComponent(fill(value, variables))),
      request.http.url,
    );
  const { key, value } = COLLECTION.auth.apikey;
  const reply = await send(request.http.method.toUpperCase(), fill(url, variables), {
    headers: { [key]: fill(value, variables) },
    ...(request.body?.json !== undefined && { body: JSON.parse(fill(request.body.json, variables)) }),
  });
  for (const { name, value: expected } of request.assertions ?? []) {
    expect(`eq ${evaluate(name, reply)}`, `${request.meta.name}: ${name}`).toBe(expected);
  }
  for (const { name, value: expression } of request.vars?.res ?? [])
    variables.set(name, String(evaluate(expression, reply)));
  return reply;
}

/**
 * Runs the requests in their order, each of which must succeed. Returns the responses and the variables.
 * @param before is called before each request.
 */
export async function runCollection(
  given: { baseUrl: string; code: string; apiKey: string },
  requests = REQUESTS,
  before = async (_: BrunoRequest): Promise<unknown> => undefined,
) {
  const variables: BrunoVariables = new Map(ENVIRONMENT.map(({ name, value }) => [name, value]));
  for (const [name, value] of Object.entries(given)) {
    expect(variables.has(name), name).toBe(true);
    variables.set(name, value);
  }
  const replies = new Map<string, Reply>();
  for (const request of requests) {
    await before(request);
    replies.set(request.meta.name, await runRequest(request, variables));
  }
  return { replies, variables };
}
