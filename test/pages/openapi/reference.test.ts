import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, it } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { partnerChain } from "../../../src/core/chain/api/events.ts";
import { createApp } from "../../../src/open/app.ts";
import { ENDPOINTS, REFERENCE } from "../../../src/open/endpoints.ts";
import { describeApi } from "../../../src/pages/openapi/describe-api.ts";
import { examples } from "../../../src/platform/api/example.ts";
import { ALL_ERRORS } from "../../support/all-errors.ts";
import { DESCRIPTION, mediaOf, OPERATIONS, type Schema } from "../../support/api-description.ts";
import { ANY_ADDRESS, checkBody, isOutside, OUTSIDE } from "../../support/check-answer.ts";
import { send } from "../../support/client.ts";
import { verifyServedChain } from "../../support/independent-verifier.ts";
import { BASE_URL } from "../../support/service.ts";
import { useService } from "../../support/use-service.ts";

const { api } = useService({ workers: [], env: { OPS_TOKEN: "a-token-for-operators", ISSUER_API: "true" } });

it("the API's description is valid OpenAPI 3.1 with the service's version, served at /openapi.json", async () => {
  const { status, body } = await send("GET", `${api.url}/openapi.json`);
  expect(status).toBe(200);
  expect(body).toEqual(JSON.parse(JSON.stringify(DESCRIPTION)));
  expect(body).toMatchObject({ openapi: expect.stringMatching(/^3\.1\./), info: { version: packageJson.version } });
  expect(await new Validator().validate(body)).toEqual({ valid: true });
});

it("the API's description has exactly the routes of the API", () => {
  const layers = createApp(api.ctx).router.stack;
  const mounted = layers.flatMap(({ route }) => {
    if (route === undefined || isOutside(route.path)) return [];
    const methods = (route as unknown as { methods: Record<string, boolean> }).methods;
    return Object.keys(methods).flatMap((method) => (method === "_all" ? [] : [`${method} ${route.path}`]));
  });
  const described = OPERATIONS.map(({ method, path }) => `${method} ${path.replace(/\{(\w+)\}/g, ":$1")}`);
  expect(described.toSorted()).toEqual([...new Set(mounted)].toSorted());
  expect(described).toHaveLength(ENDPOINTS.length);
  for (const { address } of OUTSIDE) {
    const isThere = layers.some(({ route }) => route !== undefined && `${route.path}/`.startsWith(`${address}/`));
    // The dashboard is a separate router, which test/console/dashboard.test.ts calls.
    expect(isThere || ["/", "/ops"].includes(address), address).toBe(true);
  }
});

/** Codes that no endpoint of the API returns, with their source. */
const OUTSIDE_CODES: Partial<Record<string, string>> = {
  missing_password: "the dashboard",
  wrong_password: "the dashboard",
  missing_role: "the dashboard",
  cross_site: "the dashboard",
  portal_needs_read_key: "the portal",
};

it("the API's description has every error code at its endpoints, with status, meaning and example", () => {
  const told = new Map<string, string>();
  for (const { responses } of OPERATIONS) {
    for (const [status, { description, content }] of Object.entries(responses)) {
      for (const [code, { value }] of Object.entries(mediaOf(content).examples ?? {})) {
        if (status !== "default" && Number(status) < 400) continue;
        expect(value).toMatchObject({ code });
        if (status !== "default") expect(ALL_ERRORS.get(code)?.status, code).toBe(Number(status));
        expect(description).toMatch(new RegExp(`\`${code}\`: [A-Z].+\\.$`, "m"));
        told.set(code, status);
      }
    }
  }
  const outside = Object.keys(OUTSIDE_CODES);
  expect([...told.keys(), ...outside].toSorted()).toEqual([...ALL_ERRORS.keys()].toSorted());
});

it("the API's description has Retry-After on exactly 429 and 503, and rate limits except for probes", () => {
  for (const { operationId, path, responses } of OPERATIONS) {
    const isProbe = ["/healthz", "/readyz"].includes(path);
    expect("429" in responses, operationId).toBe(!isProbe);
    for (const [status, { headers }] of Object.entries(responses)) {
      const tells = headers["Retry-After"]?.required === true;
      expect(tells, `${operationId} ${status}`).toBe(["429", "503"].includes(status));
      if (status === "default") continue;
      expect("RateLimit" in headers && "RateLimit-Policy" in headers, `${operationId} ${status}`).toBe(!isProbe);
    }
  }
});

it("the API's description has examples that match their request and response schemas", () => {
  let shown = 0;
  for (const { operationId, path, method, requestBody, responses } of OPERATIONS) {
    const endpoint = ENDPOINTS.find((candidate) => candidate.operationId === operationId);
    for (const [name, { value }] of Object.entries(requestBody ? (mediaOf(requestBody.content).examples ?? {}) : {})) {
      expect(endpoint?.body?.safeParse(value).success, `${operationId} ${name}`).toBe(true);
      expect(checkBody(["paths", path, method, "requestBody"], value), `${operationId} ${name}`).toEqual([]);
      shown += 1;
    }
    for (const [status, { content }] of Object.entries(responses)) {
      const examples = Object.entries(mediaOf(content).examples ?? {});
      expect(examples, `${operationId} ${status}`).not.toEqual([]);
      for (const [name, { value }] of examples) {
        const place = status === "default" ? ANY_ADDRESS : ["paths", path, method, "responses", status];
        expect(checkBody(place, value, mediaOf(content).type), `${operationId} ${status} ${name}`).toEqual([]);
        shown += 1;
      }
    }
  }
  expect(shown).toBeGreaterThan(150);
});

it("the API's description has an example chain that is intact", () => {
  expect(verifyServedChain(examples.get(partnerChain)?.chain?.value.events ?? [])).toBeNull();
});

it("the API's description explains every operation, parameter, header and field", () => {
  const nameless: string[] = [];
  const look = (place: string, schema: Schema) => {
    for (const [name, field] of Object.entries(schema.properties ?? {})) {
      const alternatives = [field, ...((field.anyOf as Schema[] | undefined) ?? [])];
      if (!alternatives.some((one) => one.description !== undefined || one.$ref)) nameless.push(`${place}.${name}`);
      look(`${place}.${name}`, field);
    }
  };
  for (const [name, schema] of Object.entries(DESCRIPTION.components?.schemas ?? {})) look(name, schema as Schema);
  for (const operation of OPERATIONS) {
    const { operationId, parameters, requestBody, responses } = operation;
    expect(operation.summary, operationId).toMatch(/^[A-Z].*[^.]$/);
    expect(operation.description, operationId).toMatch(/\.$/);
    for (const { name, description } of parameters) if (!description) nameless.push(`${operationId} ${name}`);
    if (requestBody) look(operationId, mediaOf(requestBody.content).schema);
    for (const [status, { headers, description, content }] of Object.entries(responses)) {
      if (!description) nameless.push(`${operationId} ${status}`);
      for (const [name, header] of Object.entries(headers)) if (!header.description) nameless.push(name);
      look(`${operationId} ${status}`, mediaOf(content).schema);
    }
  }
  expect(nameless).toEqual([]);
  const ids = OPERATIONS.map(({ operationId }) => operationId);
  expect(new Set(ids).size).toBe(ids.length);
});

it("the API's description names its license, and BASE_URL only in servers, contact and guide", () => {
  const elsewhere = "https://elsewhere.test/vouchers";
  const described = describeApi(REFERENCE, { reservationSeconds: null, baseUrl: elsewhere });
  expect(described.servers).toEqual([{ url: elsewhere }]);
  expect(described.info).toMatchObject({ license: { identifier: "MIT" }, contact: { url: `${elsewhere}/` } });
  expect(described.externalDocs?.url).toBe(`${elsewhere}/docs/guide`);
  expect(JSON.parse(JSON.stringify(described).replaceAll(elsewhere, BASE_URL))).toEqual(
    JSON.parse(JSON.stringify(DESCRIPTION)),
  );
});

it("the API's description has every request, every response and the error as a component", () => {
  const unnamed: string[] = [];
  for (const { operationId, requestBody, responses } of OPERATIONS) {
    const bodies = Object.entries({ ...responses, ...(requestBody && { request: requestBody }) });
    for (const [place, { content }] of bodies) {
      const { $ref = "" } = mediaOf(content).schema;
      if (!$ref.startsWith("#/components/schemas/")) unnamed.push(`${operationId} ${place}`);
    }
  }
  expect(unnamed).toEqual([]);
  expect(DESCRIPTION.components?.schemas).toMatchObject({
    Error: { properties: { code: { $ref: "#/components/schemas/ErrorCode" } } },
    ErrorCode: { anyOf: [{ $ref: "#/components/schemas/KnownErrorCode" }, { type: "string" }] },
    RedeemRequest: { oneOf: [{ required: ["code"] }, { required: ["ticket"] }] },
    KnownErrorCode: { enum: [...ALL_ERRORS.keys()] },
  });
});

it("the API's description accepts a redeem request with either code or ticket, like the service", () => {
  const ref = { externalRef: "order-1" };
  const valid = [{ code: "A" }, { ticket: "T" }, { code: "A", ticket: null }, { code: null, ticket: "T" }];
  const invalid = [{}, { code: "A", ticket: "T" }, { code: null, ticket: null }, { code: null }];
  const endpoint = ENDPOINTS.find(({ operationId }) => operationId === "redeemVoucher");
  for (const [bodies, accepted] of [[valid, true] as const, [invalid, false] as const]) {
    for (const body of bodies) {
      const faults = checkBody(["paths", "/partner/vouchers/redeem", "post", "requestBody"], { ...body, ...ref });
      expect(faults.length === 0, JSON.stringify(body)).toBe(accepted);
      expect(endpoint?.body?.safeParse({ ...body, ...ref }).success, JSON.stringify(body)).toBe(accepted);
    }
  }
});

it("the API's description states the configured reservation time", () => {
  const lengths = { "15 minutes": 900, "1 minute": 60, "90 seconds": 90, "1 second": 1 };
  for (const [length, reservationSeconds] of Object.entries(lengths)) {
    const { paths } = describeApi(REFERENCE, { baseUrl: BASE_URL, reservationSeconds });
    const { description } = paths?.["/partner/vouchers/reserve"]?.post ?? {};
    expect(description).toContain(`Reserves a voucher for ${length}, so that`);
  }
});

it("the API reference page loads all files from its own origin", async () => {
  const page = await fetch(`${api.url}/docs`);
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|\*|https?:/);
  const html = await page.text();
  const loaded = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address ?? "");
  expect(loaded.length).toBeGreaterThan(3);
  for (const address of loaded) {
    const { status, headers } = await fetch(new URL(address, `${api.url}/docs`));
    expect({ address, status }).toEqual({ address, status: 200 });
    expect(headers.get("x-content-type-options") ?? headers.get("content-type")).toMatch(/nosniff|json/);
  }
});
