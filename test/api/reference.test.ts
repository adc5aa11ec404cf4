import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../src/app.ts";
import type { ErrorCode } from "../../src/domain/errors.ts";
import { CHAIN_EXAMPLE } from "../../src/http/answers/chain.ts";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import { ERRORS } from "../../src/http/error-map.ts";
import { describeApi } from "../../src/http/reference/describe-api.ts";
import { DESCRIPTION, OPERATIONS, type Schema } from "../support/api-description.ts";
import { ANY_ADDRESS, checkBody, isOutside, OUTSIDE } from "../support/check-answer.ts";
import { send } from "../support/client.ts";
import { verifyServedChain } from "../support/independent-verifier.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { BASE_URL, startApi, type TestApi } from "../support/service.ts";

let servers: TestServers;
let api: TestApi;

beforeAll(async () => {
  servers = await openTestServers();
  api = await startApi(servers, { OPS_TOKEN: "a-token-for-operators" });
});

afterAll(async () => {
  await api.close();
  await servers.close();
});

/** Codes that no endpoint of the API answers with, and who does. */
const OUTSIDE_CODES: Partial<Record<ErrorCode, string>> = {
  no_session: "the dashboard",
  cross_site: "the dashboard",
};

describe("the API's description", () => {
  it("is valid OpenAPI 3.1", async () => {
    const validated = await new Validator().validate(JSON.parse(JSON.stringify(DESCRIPTION)));
    expect(validated).toEqual({ valid: true });
    expect(DESCRIPTION.openapi).toMatch(/^3\.1\./);
  });

  it("is served at /openapi.json and names the address that the outside knows", async () => {
    const { status, body, headers } = await send("GET", `${api.url}/openapi.json`);
    expect(status).toBe(200);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect(body).toEqual(JSON.parse(JSON.stringify(DESCRIPTION)));
    expect(body.servers).toEqual([{ url: BASE_URL }]);
    expect(body.info.version).toBe(JSON.parse(readFileSync("package.json", "utf8")).version);
  });

  it("has every address that is mounted, save those that are no part of the API, and no other", () => {
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
      expect(isThere || address === "/", address).toBe(true);
    }
  });

  it("tells every error code where it can come, with its status, its meaning and an example", () => {
    const told = new Map<string, string>();
    for (const { responses } of OPERATIONS) {
      for (const [status, { description, content }] of Object.entries(responses)) {
        for (const [code, { value }] of Object.entries(content["application/json"].examples ?? {})) {
          if (status !== "default" && Number(status) < 400) continue;
          expect(value).toMatchObject({ code });
          const { meaning, status: own } = ERRORS[code as ErrorCode];
          if (status !== "default") expect(own, code).toBe(Number(status));
          expect(description).toContain(`\`${code}\`: ${meaning}.`);
          told.set(code, status);
        }
      }
    }
    const outside = Object.keys(OUTSIDE_CODES);
    expect([...told.keys(), ...outside].toSorted()).toEqual(Object.keys(ERRORS).toSorted());
  });

  it("says when to come back wherever it says to come back", () => {
    for (const { operationId, responses } of OPERATIONS) {
      for (const [status, { headers }] of Object.entries(responses)) {
        const tells = headers["Retry-After"]?.required === true;
        expect(tells, `${operationId} ${status}`).toBe(["429", "503"].includes(status));
      }
    }
  });

  it("tells of limits at every address but the two for probes", () => {
    for (const { operationId, path, responses } of OPERATIONS) {
      const isProbe = ["/healthz", "/readyz"].includes(path);
      for (const [status, { headers }] of Object.entries(responses)) {
        if (status === "default") continue;
        expect("RateLimit" in headers && "RateLimit-Policy" in headers, `${operationId} ${status}`).toBe(!isProbe);
      }
      expect("429" in responses, operationId).toBe(!isProbe);
    }
  });

  it("shows examples that fit: requests that its schemas take, answers that its schemas allow", () => {
    let shown = 0;
    for (const { operationId, path, method, requestBody, responses } of OPERATIONS) {
      const endpoint = ENDPOINTS.find((candidate) => candidate.operationId === operationId);
      for (const [name, { value }] of Object.entries(requestBody?.content["application/json"].examples ?? {})) {
        expect(endpoint?.body?.safeParse(value).success, `${operationId} ${name}`).toBe(true);
        expect(checkBody(["paths", path, method, "requestBody"], value), `${operationId} ${name}`).toEqual([]);
        shown += 1;
      }
      for (const [status, { content }] of Object.entries(responses)) {
        const examples = Object.entries(content["application/json"].examples ?? {});
        expect(examples, `${operationId} ${status}`).not.toEqual([]);
        for (const [name, { value }] of examples) {
          const place = status === "default" ? ANY_ADDRESS : ["paths", path, method, "responses", status];
          expect(checkBody(place, value), `${operationId} ${status} ${name}`).toEqual([]);
          shown += 1;
        }
      }
    }
    expect(shown).toBeGreaterThan(150);
  });

  it("shows a chain that whoever tries a verifier on it finds good", () => {
    expect(verifyServedChain(CHAIN_EXAMPLE.events)).toBeNull();
  });

  it("describes every operation, parameter, header and field in words, and names each operation once", () => {
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
      if (requestBody) look(operationId, requestBody.content["application/json"].schema);
      for (const [status, { headers, description, content }] of Object.entries(responses)) {
        if (!description) nameless.push(`${operationId} ${status}`);
        for (const [name, header] of Object.entries(headers)) if (!header.description) nameless.push(name);
        look(`${operationId} ${status}`, content["application/json"].schema);
      }
    }
    expect(nameless).toEqual([]);
    const ids = OPERATIONS.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("names the address it is given, whatever it is", () => {
    const { servers: named, ...rest } = describeApi(ENDPOINTS, "https://elsewhere.test/vouchers");
    expect(named).toEqual([{ url: "https://elsewhere.test/vouchers" }]);
    const { servers: _servers, ...same } = DESCRIPTION;
    expect(rest).toEqual(same);
  });
});

describe("the page that shows it", () => {
  it("is served with what it loads, from this origin alone", async () => {
    const page = await fetch(`${api.url}/docs`);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
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

  it("is all there behind a path, too", async () => {
    const behindPath = await startApi(servers, { BASE_URL: "https://vouchers.test/api" });
    try {
      const html = await (await fetch(`${behindPath.url}/docs`)).text();
      const addresses = [...html.matchAll(/(?:src|href|data-description)="([^"]+)"/g)].map(([, address]) => address);
      expect(addresses.length).toBeGreaterThan(5);
      for (const address of addresses) expect(address).toMatch(/^\/api\//);
    } finally {
      await behindPath.close();
    }
  });
});
