import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import {
  DESCRIPTION,
  follow,
  mediaOf,
  OPERATIONS,
  type Operation,
  type Schema,
} from "../../support/api-description.ts";

// Uses the OpenAPI document like partners' engineers, with tools from the npm registry.

const TOOLS = ["@hey-api/openapi-ts@0.95.0", "orval@7.13.2", "@redocly/cli@2.77.0", "@stoplight/spectral-cli@6.16.3"];
const TSC = resolve("packages/client/node_modules/typescript/lib/tsc.js");
const folder = mkdtempSync(join(tmpdir(), "voucher-generators-"));

beforeAll(async () => {
  const files = {
    "package.json": '{"private": true, "type": "module"}',
    "openapi.json": JSON.stringify(DESCRIPTION),
    ".spectral.yaml": 'extends: ["spectral:oas"]\n',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  await run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", ...TOOLS);
}, 180_000);

afterAll(() => rmSync(folder, { recursive: true }));

it("Redocly reports no error in the OpenAPI document, and Spectral no warning", async () => {
  expect(await run("npx", "redocly", "lint", "openapi.json")).toContain("Your API description is valid");
  expect(await run("npx", "spectral", "lint", "openapi.json", "--fail-severity=warn")).toContain("No results");
});

const OPENAPI_TYPESCRIPT = JSON.stringify(resolve("packages/client/src/api.ts"));
const pascal = (name: string) => name.charAt(0).toUpperCase() + name.slice(1);

/** How each generator is called, and its type names for schemas, a 200 response and a request body. */
const GENERATORS = {
  "openapi-typescript": {
    command: [],
    types: `import type { components, operations } from ${OPENAPI_TYPESCRIPT};
      type Schemas = components["schemas"];
      type Release = Schemas["Release"]; type Redemption = Schemas["Redemption"]; type Voucher = Schemas["Voucher"];
      type KnownErrorCode = Schemas["KnownErrorCode"]; type Refusal = Schemas["Error"];`,
    answer: (id: string) => `operations["${id}"]["responses"]["200"]["content"]["application/json"]`,
    body: (id: string) => `NonNullable<operations["${id}"]["requestBody"]>["content"]["application/json"]`,
  },
  "@hey-api/openapi-ts": {
    command: ["openapi-ts", "-i", "openapi.json", "-o", "hey-api", "-p", "@hey-api/typescript"],
    types: `import type * as api from "./hey-api/types.gen.ts";
      import type { Release, Redemption, Voucher, KnownErrorCode, Error as Refusal } from "./hey-api/types.gen.ts";`,
    answer: (id: string) => `api.${pascal(id)}Responses[200]`,
    body: (id: string) => `NonNullable<api.${pascal(id)}Data["body"]>`,
  },
  orval: {
    command: ["orval", "--input", "openapi.json", "--output", "orval.ts", "--client", "fetch"],
    types: `import type * as api from "./orval.ts";
      import type { Release, Redemption, Voucher, KnownErrorCode, Error as Refusal } from "./orval.ts";`,
    answer: (id: string) => `api.${id}Response200["data"]`,
    // In a call, the parameters of the path come before the body.
    body: (id: string, inPath: number) => `NonNullable<Parameters<typeof api.${id}>[${inPath}]>`,
  },
};

/** Returns the names of the fields that all alternatives of a JSON answer have. */
function fieldsOf(schema: Schema): string[] {
  const { properties = {}, anyOf } = follow<Schema>(schema);
  const shapes = (anyOf as Schema[] | undefined)?.map(fieldsOf) ?? [Object.keys(properties)];
  return (shapes[0] ?? []).filter((name) => shapes.every((shape) => shape.includes(name)));
}

/** Makes lines that read each field of an operation's answer and send the examples of its body, without a cast. */
function useOperation(
  { operationId, responses, requestBody, parameters }: Operation,
  of: (typeof GENERATORS)["orval"],
) {
  const lines: string[] = [];
  const { type, schema } = mediaOf(responses[200]?.content ?? {});
  if (type === "application/json") {
    const fields = fieldsOf(schema);
    expect(fields, operationId).not.toEqual([]);
    for (const name of fields) {
      const field = `(${of.answer(operationId)})[${JSON.stringify(name)}]`;
      lines.push(`export const ${operationId}_${name}: Use<${field}> = "has a type";`);
    }
    if (fields.includes("items")) {
      const item = `(${of.answer(operationId)})["items"][number]`;
      lines.push(`export const ${operationId}_item: Use<${item}> = "has a type";`);
    }
  }
  const inPath = parameters.filter((one) => one.in === "path").length;
  const examples = requestBody === undefined ? {} : (mediaOf(requestBody.content).examples ?? {});
  for (const [name, { value }] of Object.entries(examples))
    lines.push(`export const ${operationId}_${name}_body: ${of.body(operationId, inPath)} = ${JSON.stringify(value)};`);
  return lines;
}

it.each(Object.entries(GENERATORS))("the types of %s match the service's responses", async (name, generator) => {
  const known = Object.fromEntries([...ALL_ERRORS.keys()].map((code) => [code, true]));
  if (generator.command.length > 0) await run("npx", ...generator.command);
  const uses = `${generator.types}
    type Use<Field> = unknown extends Field ? "has no type" : "has a type";
    ${OPERATIONS.flatMap((operation) => useOperation(operation, generator)).join("\n")}
    export const reasonOf = (release: Release): string => (release.released === true ? "released" : release.reason);
    // @ts-expect-error a boolean is no text
    export const isText = (release: Release): boolean => release.released === "true";
    export const live: Release = { released: true };
    export const other = ({ otherVoucher }: Redemption): boolean => otherVoucher === true;
    export const at = ({ redeemedAt }: Voucher): string | null => redeemedAt;
    // @ts-expect-error it is null until the voucher is redeemed
    export const always = ({ redeemedAt }: Voucher): string => redeemedAt;
    export const known: Record<KnownErrorCode, true> = ${JSON.stringify(known)};
    export const later = ({ code, ...rest }: Refusal): Refusal => ({
      ...rest,
      code: code === "voucher_used" ? "a_later_code" : code,
    });`;
  const file = `uses-${name.replaceAll(/\W/g, "-")}.ts`;
  writeFileSync(join(folder, file), uses);
  const options = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--lib", "es2024,dom,dom.iterable"];
  await run(
    process.execPath,
    TSC,
    ...options,
    ...["--module", "esnext", "--moduleResolution", "bundler", "--allowImportingTsExtensions", file],
  );
});

const run = async (command: string, ...args: string[]) => {
  const done = promisify(execFile)(command, args, { cwd: folder });
  const { stdout, stderr } = await done.catch((error) => expect.fail(`${error.stdout}\n${error.stderr}`));
  return stdout + stderr;
};
