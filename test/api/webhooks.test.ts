import { Webhook } from "standardwebhooks";
import { beforeEach, describe, expect, it } from "vitest";
import { newId } from "../../src/domain/ids.ts";
import { ENDPOINTS } from "../../src/http/endpoints.ts";
import { type PartnerRequest, type PartnerServer, startPartnerServer } from "../support/partner-server.ts";
import type { TestApi } from "../support/service.ts";
import { makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const SECRET = "the root secret of the tests of webhooks";
const URL_OK = "https://shop.example.com/hooks";

const service = useService({ apis: [{ WEBHOOK_SECRET: SECRET }], workers: [] });
const { api, servers } = service;
let organizationId: string;
let key: string;

beforeEach(async () => {
  ({ organizationId } = await makePartner(servers.db));
  ({ key } = await makeKey(servers.db, organizationId, { scopes: ["voucher.webhook"] }));
});

// biome-ignore lint/suspicious/noExplicitAny: the tests compare the bodies of many schemas
type ApiResponse = { status: number; body: any };

async function call(method: string, path: string, body?: unknown, as = key, to = api): Promise<ApiResponse> {
  const response = await fetch(`${to.url}/partner/webhooks${path}`, {
    method,
    headers: { "x-api-key": as },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

async function create(
  request: object = {},
  to = api,
): Promise<Record<string, string> & { id: string; secret: string }> {
  const { status, body } = await call("POST", "", { url: URL_OK, ...request }, key, to);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

describe("endpoints", () => {
  it("endpoints show their secret only when they are created, and can be listed and read", async () => {
    const { secret, ...created } = await create({ description: "shop", eventTypes: ["voucher.instance.voided"] });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(created).toMatchObject({
      id: expect.stringMatching(/^whk_/),
      url: URL_OK,
      description: "shop",
      eventTypes: ["voucher.instance.voided"],
      enabled: true,
      disabledReason: null,
      previousSecretUntil: null,
    });
    expect(await call("GET", `/${created.id}`)).toEqual({ status: 200, body: created });
    const second = await create();
    const { body } = await call("GET", "");
    expect(body.webhooks.map(({ id }: { id: string }) => id)).toEqual([created.id, second.id]);
    expect(JSON.stringify(body)).not.toContain("whsec_");
    const { rows } = await servers.db.query("SELECT w::text AS row FROM webhook_endpoints AS w WHERE id = $1", [
      created.id,
    ]);
    expect(rows[0].row).not.toContain(secret.slice("whsec_".length));
  });

  it("endpoints change only in the fields that a request contains", async () => {
    const { id } = await create({ description: "shop" });
    const changed = await call("PATCH", `/${id}`, { eventTypes: ["reservation.expired"], enabled: false });
    expect(changed.body).toMatchObject({
      url: URL_OK,
      description: "shop",
      eventTypes: ["reservation.expired"],
      enabled: false,
      disabledReason: "partner",
      disabledAt: expect.any(String),
    });
    const again = await call("PATCH", `/${id}`, { url: "https://other.example.com/", enabled: true });
    expect(again.body).toMatchObject({
      url: "https://other.example.com/",
      description: "shop",
      enabled: true,
      disabledReason: null,
    });
  });

  it("endpoints do not exist for any call after their deletion", async () => {
    const { id } = await create();
    expect(await call("DELETE", `/${id}`)).toEqual({ status: 200, body: { id, deleted: true } });
    for (const [method, path, body] of [
      ["GET", `/${id}`],
      ["DELETE", `/${id}`],
      ["PATCH", `/${id}`, { enabled: true }],
      ["POST", `/${id}/rotate`],
      ["POST", `/${id}/test`],
    ] as const) {
      expect(await call(method, path, body)).toMatchObject({ status: 404, body: { code: "webhook_not_found" } });
    }
    expect((await call("GET", "")).body.webhooks).toEqual([]);
  });

  it.each([
    ["partner", true],
    ["gone", true],
    ["failing", true],
    ["operator", false],
  ])("disabled for the reason %s can be enabled by the partner: %s", async (reason, canEnable) => {
    const { id } = await create();
    await servers.db.query(
      "UPDATE webhook_endpoints SET enabled = false, disabled_reason = $2, disabled_at = now(), failing_since = now() WHERE id = $1",
      [id, reason],
    );
    const answer = await call("PATCH", `/${id}`, { description: "new", enabled: true });
    const read = await call("GET", `/${id}`);
    if (canEnable) {
      expect(read.body).toMatchObject({ enabled: true, disabledReason: null, failingSince: null, description: "new" });
    } else {
      expect(answer).toMatchObject({ status: 409, body: { code: "webhook_disabled" } });
      expect(read.body).toMatchObject({ enabled: false, disabledReason: "operator", description: "" });
      expect(await call("POST", `/${id}/test`)).toMatchObject({ status: 409, body: { code: "webhook_disabled" } });
      await call("PATCH", `/${id}`, { enabled: false });
      expect((await call("GET", `/${id}`)).body.disabledReason).toBe("operator");
    }
  });
});

it("access requires the scope voucher.webhook", async () => {
  const other = await makeKey(servers.db, organizationId);
  const routes = ENDPOINTS.filter(({ path }) => path.startsWith("/partner/webhooks"));
  expect(routes).toHaveLength(9);
  for (const { method, path } of routes) {
    const answer = await call(method.toUpperCase(), path.slice("/partner/webhooks".length), undefined, other.key);
    expect(answer, `${method} ${path}`).toMatchObject({ status: 401, body: { code: "missing_scope" } });
  }
});

it("access gives the same response for an endpoint of another organization as for an unknown one", async () => {
  const { id } = await create();
  const stranger = await makeKey(servers.db, (await makePartner(servers.db)).organizationId, {
    scopes: ["voucher.webhook"],
  });
  for (const [method, path, body] of [
    ["GET", ""],
    ["PATCH", "", { enabled: false }],
    ["DELETE", ""],
    ["POST", "/rotate"],
    ["POST", "/test"],
    ["GET", "/deliveries"],
    ["POST", "/replay", { eventIds: ["vch_1-1"] }],
  ] as const) {
    const [foreign, unknown] = [
      await call(method, `/${id}${path}`, body, stranger.key),
      await call(method, `/${newId("whk")}${path}`, body, stranger.key),
    ];
    expect(foreign).toMatchObject({ status: 404, body: { code: "webhook_not_found" } });
    expect({ ...foreign.body, requestId: "" }).toEqual({ ...unknown.body, requestId: "" });
  }
  expect((await call("GET", `/${id}`)).body.enabled).toBe(true);
});

it("access is refused with webhooks_off when the deployment has no WEBHOOK_SECRET", async () => {
  const off = await service.startApi({ WEBHOOK_SECRET: "" });
  for (const [method, path, body] of [
    ["GET", ""],
    ["POST", "", { url: URL_OK }],
    ["POST", "/whk_1/rotate"],
  ] as const) {
    expect(await call(method, path, body, key, off)).toMatchObject({ status: 404, body: { code: "webhooks_off" } });
  }
});

describe("bad input", () => {
  it.each([
    ["no address", "must be an address"],
    ["", "must not be empty"],
    ["http://shop.example.com/", "must begin with https://"],
    ["ftp://shop.example.com/", "must be an address"],
    ["https:shop.example.com", "must be an address"],
    ["https://user:secret@shop.example.com/", "must not have a user name"],
    ["https://shop.example.com:22/", "must have port 443 or 8443"],
    ["https://shop.example.com/#", "must not have a fragment"],
    ["https://shop.example.com/a b", "must be an address"],
    ["https://shop.example.com/\r\nx-other: 1", "must be an address"],
    ["https://localhost/", "must have a public host"],
    ["https://intranet/", "must have a public host"],
    ["https://db.internal/", "must have a public host"],
    ["https://127.0.0.1/", "must have a public host"],
    ["https://2130706433/", "must have a public host"],
    ["https://10.1.2.3/", "must have a public host"],
    ["https://169.254.169.254/latest/meta-data", "must have a public host"],
    ["https://[::1]/", "must have a public host"],
    ["https://[::ffff:10.0.0.1]/", "must have a public host"],
    ["https://[64:ff9b::a00:1]/", "must have a public host"],
    [`https://shop.example.com/${"x".repeat(2_048)}`, "must be at most 2048 characters long"],
  ])("the URL %j is refused when an endpoint is created or changed", async (url, message) => {
    const refused = {
      status: 400,
      body: { code: "invalid_request", error: expect.stringMatching(`^url ${message}`) },
    };
    expect(await call("POST", "", { url })).toMatchObject(refused);
    const { id } = await create();
    expect(await call("PATCH", `/${id}`, { url, description: "new" })).toMatchObject(refused);
    expect((await call("GET", `/${id}`)).body).toMatchObject({ url: URL_OK, description: "" });
  });

  it("a URL with any other host that is not public is refused", async () => {
    const addresses = ["0x7f.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1"];
    const hosts = [
      "[::]",
      "[fd00:ec2::254]",
      "[fe80::1]",
      "[ff02::1]",
      "[2002:a00:1::]",
      "[2001:db8::1]",
      "LOCALHOST.",
    ];
    for (const host of [...addresses, ...hosts]) {
      const { body } = await call("POST", "", { url: `https://${host}/` });
      expect(body, host).toMatchObject({ error: expect.stringMatching("^url must have a public host") });
    }
  });

  it.each([
    "https://shop.example.com",
    "https://shop.example.com:8443/x?y=z",
    "https://93.184.215.14/",
    "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
  ])("the URL %s is accepted", async (url) => {
    expect((await create({ url })).url).toBe(url);
  });

  it.each([
    [{}, /^url is required/],
    [{ url: 7 }, /^url must be a string/],
    [{ url: URL_OK, description: "x".repeat(201) }, /^description must be at most 200 characters/],
    [{ url: URL_OK, eventTypes: "all" }, /^eventTypes must be a list/],
    [{ url: URL_OK, eventTypes: ["voucher.instance.issued"] }, /^eventTypes.* must be a list of event types: /],
    [{ url: URL_OK, eventTypes: ["webhook.test"] }, /^eventTypes.* must be a list of event types: /],
    [
      { url: URL_OK, eventTypes: ["reservation.expired", "reservation.expired"] },
      /^eventTypes must name each event type at most once/,
    ],
    [{ url: URL_OK, enabled: "yes" }, /^enabled must be true or false/],
  ])("%j is refused with a message that names the field", async (body, error) => {
    expect(await call("POST", "", body)).toMatchObject({
      status: 400,
      body: { code: "invalid_request", error: expect.stringMatching(error) },
    });
  });

  it("an id with NUL or of another invalid form is not found", async () => {
    for (const id of ["%00", "whk_%00", "..%2f", "x".repeat(2_000)]) {
      expect(await call("GET", `/${id}`)).toMatchObject({ status: 404, body: { code: "webhook_not_found" } });
      expect(await call("DELETE", `/${id}`)).toMatchObject({ status: 404, body: { code: "webhook_not_found" } });
    }
  });

  it("30 simultaneous requests create 20 endpoints, and deleting one allows one more", async () => {
    // On a busy machine, a request can wait too long for another one's place, and is then made again.
    const createAtLast = async (): ReturnType<typeof call> => {
      const answer = await call("POST", "", { url: URL_OK });
      return answer.status === 503 ? createAtLast() : answer;
    };
    const answers = await Promise.all(Array.from({ length: 30 }, createAtLast));
    const statuses = Map.groupBy(answers, ({ status }) => status);
    expect(statuses.get(200)).toHaveLength(20);
    expect(statuses.get(409)?.map(({ body }) => body.code)).toEqual(Array(10).fill("webhook_limit"));
    const { webhooks } = (await call("GET", "")).body;
    expect(webhooks).toHaveLength(20);
    await call("DELETE", `/${webhooks[7].id}`);
    await create();
    expect(await call("POST", "", { url: URL_OK })).toMatchObject({ status: 409, body: { code: "webhook_limit" } });
    const other = await makeKey(servers.db, (await makePartner(servers.db)).organizationId, {
      scopes: ["voucher.webhook"],
    });
    expect(await call("POST", "", { url: URL_OK }, other.key)).toMatchObject({ status: 200 });
  });
});

describe("secrets", () => {
  /** Sends a test to a new endpoint and returns the secrets that have signed it. */
  const signers = async (local: TestApi, receiver: PartnerServer, id: string, secrets: readonly string[]) => {
    await call("POST", `/${id}/test`, undefined, key, local);
    const { headers, body } = receiver.received.at(-1) as PartnerRequest;
    return secrets.filter((secret) => {
      try {
        return new Webhook(secret).verify(body, headers as Record<string, string>);
      } catch {
        return false;
      }
    });
  };

  it("a replaced secret signs for 24 hours from its own replacement, however many rotations follow, up to ten secrets", async () => {
    const receiver = await startPartnerServer();
    servers.onClose(() => receiver.close());
    const local = await service.startApi({ WEBHOOK_SECRET: SECRET, WEBHOOK_ALLOW_PRIVATE: "true" });
    const { id, secret } = await create({ url: receiver.url }, local);
    const secrets = [secret];
    for (let rotation = 1; rotation <= 10; rotation++) {
      const { status, body } = await call("POST", `/${id}/rotate`, undefined, key, local);
      expect(status).toBe(200);
      secrets.push(body.secret);
      const hours = (Date.parse(body.previousSecretUntil) - Date.now()) / 3_600_000;
      expect(Math.abs(hours - 24)).toBeLessThan(0.1);
    }
    expect(await signers(local, receiver, id, secrets)).toEqual(secrets);
    const refused = await call("POST", `/${id}/rotate`, undefined, key, local);
    expect(refused).toMatchObject({ status: 409, body: { code: "webhook_limit" } });
    await servers.db.query(
      "UPDATE webhook_endpoints SET previous_secrets_until[10] = now(), previous_secrets_until[9] = now() WHERE id = $1",
      [id],
    );
    expect(await signers(local, receiver, id, secrets)).toEqual(secrets.slice(2));
    expect((await call("POST", `/${id}/rotate`, undefined, key, local)).status).toBe(200);
  });
});

it("a test of an endpoint sends a signed request and returns the outcome, and never connects to loopback", async () => {
  const receiver = await startPartnerServer();
  servers.onClose(() => receiver.close());
  const local = await service.startApi({ WEBHOOK_SECRET: SECRET, WEBHOOK_ALLOW_PRIVATE: "true" });
  const { id } = await create({ url: receiver.url }, local);
  const tested = await call("POST", `/${id}/test`, undefined, key, local);
  expect(tested).toEqual({
    status: 200,
    body: { delivered: true, status: 204, failure: null, durationMs: expect.any(Number) },
  });
  expect(JSON.parse(receiver.received[0]?.body ?? "")).toEqual({
    type: "webhook.test",
    timestamp: expect.stringMatching(/Z$/),
    data: { webhookId: id },
  });
  const sandbox = await makePartner(servers.db, { sandbox: true });
  const test = await makeKey(servers.db, sandbox.organizationId, { scopes: ["voucher.webhook"] });
  const { id: ofSandbox } = (await call("POST", "", { url: receiver.url }, test.key, local)).body;
  await call("POST", `/${ofSandbox}/test`, undefined, test.key, local);
  expect(JSON.parse(receiver.received[1]?.body ?? "").data).toEqual({ webhookId: ofSandbox, sandbox: true });
  // The shared API must not connect to loopback, even if the stored address is there.
  expect((await call("POST", `/${id}/test`)).body).toMatchObject({ delivered: false, failure: "refused_address" });
  expect(receiver.received).toHaveLength(2);
});
