import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import bruno from "@usebruno/lang";
import { expect, it } from "vitest";
import { SCOPES } from "../../../src/core/keys/api-keys.ts";
import { OPERATIONS } from "../../support/api-description.ts";
import { type Reply, send } from "../../support/client.ts";
import { beginTlog, makeTlogFiles, openSequencer } from "../../support/log-setup.ts";
import { readRecorded } from "../../support/recorded.ts";
import { issueVoucher, makeKey } from "../../support/supply.ts";
import { useService } from "../../support/use-service.ts";

// Reads the collection in docs/bruno with Bruno's own parser, and sends its requests like Bruno.

const read = (file: string) => readFileSync(`docs/bruno/${file}`, "utf8");
const COLLECTION = bruno.collectionBruToJson(read("collection.bru"));
const ENVIRONMENT = bruno.bruToEnvJsonV2(read("environments/npm start.bru")).variables;
const FILES = globSync("docs/bruno/*.bru").filter((file) => basename(file) !== "collection.bru");
const REQUESTS = FILES.map((file) => ({ file, ...bruno.bruToJsonV2(readFileSync(file, "utf8")) })).toSorted(
  (a, b) => Number(a.meta.seq) - Number(b.meta.seq),
);

const { api, db, partner, servers } = useService({
  env: { WEBHOOK_SECRET: "a root secret of the tests of Bruno", ISSUER_API: "true" },
});

type Variables = Map<string, string>;
type BrunoRequest = (typeof REQUESTS)[number];

it("the Bruno collection has one request for every partner route", () => {
  // No contract can be both declined and accepted, and the collection offers only one.
  const partner = OPERATIONS.filter(
    ({ tags, operationId }) =>
      tags.some((tag) => ["Partner", "Webhooks", "Issuer"].includes(tag)) && operationId !== "declineContract",
  );
  const asked = REQUESTS.map(({ http }) => {
    expect(http.url).toMatch(/^\{\{baseUrl\}\}\//);
    return `${http.method} ${http.url
      .replace("{{baseUrl}}", "")
      .replace(/\?.*/, "")
      .replace(/:(\w+)/g, "{$1}")}`;
  });
  expect(asked.toSorted()).toEqual(partner.map(({ method, path }) => `${method} ${path}`).toSorted());
});

it("the Bruno collection names, explains and checks each request, and sends the collection's key", () => {
  expect(REQUESTS.map(({ meta }) => Number(meta.seq))).toEqual(REQUESTS.map((_, index) => index + 1));
  for (const { file, meta, http, docs, assertions } of REQUESTS) {
    expect(meta.name).toBe(basename(file, ".bru"));
    expect(http.auth, file).toBe("inherit");
    expect(docs, file).toMatch(/\.$/);
    expect(assertions, file).toContainEqual(expect.objectContaining({ name: "res.status", value: "eq 200" }));
  }
  expect(COLLECTION.auth).toMatchObject({ mode: "apikey", apikey: { key: "X-Api-Key", placement: "header" } });
});

it("the Bruno collection has an environment for `npm start`, and no key in any file", () => {
  expect(ENVIRONMENT).toMatchObject([
    { name: "baseUrl", value: "http://localhost:3000" },
    { name: "code", value: "" },
    { name: "apiKey", value: "", secret: true },
  ]);
  for (const file of globSync("docs/bruno/**/*.bru")) expect(readFileSync(file, "utf8")).not.toMatch(/pv[kt]_/);
});

it("the Bruno collection looks up, reserves, redeems and releases in the order of its requests", async () => {
  const { id, code } = await issueVoucher(db, partner);
  const { key } = await makeKey(db, partner.organizationId, { scopes: [...SCOPES] });
  const variables = new Map(ENVIRONMENT.map(({ name, value }) => [name, value]));
  for (const [name, value] of Object.entries({ baseUrl: api.url, code, apiKey: key })) {
    expect(variables.has(name), name).toBe(true);
    variables.set(name, value);
  }
  const replies = new Map<string, Reply>();
  const files = makeTlogFiles();
  await beginTlog(db, files);
  const sequencer = openSequencer(servers, files);
  for (const request of REQUESTS) {
    // In production, the sequencer runs each second.
    if (request.http.url.endsWith("/receipt")) await sequencer.run();
    replies.set(request.meta.name, await run(request, variables));
  }
  files.remove();
  const { redemption } = await readRecorded(db, id);
  expect(redemption).toMatchObject({ externalRef: `bruno-${variables.get("ticket")}` });
  expect(replies.get("Release")?.body).toMatchObject({ released: false });
  expect(replies.get("Read events")?.body.events).toHaveLength(2);
  const redeem = REQUESTS.find(({ meta }) => meta.name === "Redeem");
  if (redeem === undefined) throw new Error("there is no request Redeem");
  expect((await run(redeem, variables)).body).toMatchObject({ alreadyConfirmed: true });
});

/** Replaces each `{{variable}}`. */
function fill(text: string, variables: Variables): string {
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
async function run(request: BrunoRequest, variables: Variables): Promise<Reply> {
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
