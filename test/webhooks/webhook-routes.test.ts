import { Webhook } from "standardwebhooks";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { newId } from "../../src/core/voucher/ids.ts";
import { untilDecided } from "../support/client.ts";
import { startPartnerServer } from "../support/partner-server.ts";
import { makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const SECRET = "the root secret of the tests of webhooks";
const URL_OK = "https://shop.example.com/hooks";

const service = useService({ apis: [{ WEBHOOK_SECRET: SECRET }], workers: [] });
const { api, servers } = service;
let key: string;

beforeEach(async () => {
  key = await makeCaller();
});

const NOT_FOUND = { status: 404, body: { code: "webhook_not_found" } };
const DISABLED = { status: 409, body: { code: "webhook_disabled" } };
const limit = (what: string) => ({
  status: 409,
  body: { code: "webhook_limit", error: expect.stringContaining(`at most ${what}`) },
});

it("webhook endpoints show their secret only when they are created, and can be listed and read", async () => {
  const wanted = { url: URL_OK, description: "shop", eventTypes: ["voucher.instance.voided"] };
  const { secret, ...created } = await create(wanted);
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(created).toMatchObject({
    ...wanted,
    id: expect.stringMatching(/^whk_/),
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

it("an update of a webhook endpoint changes only the fields that the request contains", async () => {
  const { id } = await create({ description: "shop" });
  const off = { eventTypes: ["reservation.expired"], enabled: false };
  expect((await call("PATCH", `/${id}`, off)).body).toMatchObject({
    ...off,
    url: URL_OK,
    description: "shop",
    disabledReason: "partner",
    disabledAt: expect.any(String),
  });
  const on = { url: "https://other.example.com/", enabled: true };
  const { body } = await call("PATCH", `/${id}`, on);
  expect(body).toMatchObject({ ...on, description: "shop", disabledReason: null });
});

it("every call about a deleted webhook endpoint answers 404", async () => {
  const { id } = await create();
  expect(await call("DELETE", `/${id}`)).toEqual({ status: 200, body: { id, deleted: true } });
  for (const [method, path, body] of OF_ONE) expect(await call(method, `/${id}${path}`, body)).toMatchObject(NOT_FOUND);
  expect((await call("GET", "")).body.webhooks).toEqual([]);
});

it.each([
  "partner",
  "gone",
  "failing",
  "operator",
])("a partner can enable a webhook endpoint again unless an operator disabled it: disabled as %s", async (reason) => {
  const { id } = await create();
  await servers.db.query(
    `UPDATE webhook_endpoints SET enabled = false, disabled_reason = $2, disabled_at = now(), failing_since = now()
      WHERE id = $1`,
    [id, reason],
  );
  const answer = await call("PATCH", `/${id}`, { description: "new", enabled: true });
  const { body } = await call("GET", `/${id}`);
  if (reason !== "operator") {
    expect(body).toMatchObject({ enabled: true, disabledReason: null, failingSince: null, description: "new" });
    return;
  }
  expect(answer).toMatchObject(DISABLED);
  expect(body).toMatchObject({ enabled: false, disabledReason: "operator", description: "" });
  expect(await call("POST", `/${id}/test`)).toMatchObject(DISABLED);
  await call("PATCH", `/${id}`, { enabled: false });
  expect((await call("GET", `/${id}`)).body.disabledReason).toBe("operator");
});

/** Every call of one endpoint. */
const OF_ONE: [method: string, path: string, body?: object][] = [
  ["GET", ""],
  ["PATCH", "", { enabled: false }],
  ["DELETE", ""],
  ["POST", "/rotate"],
  ["POST", "/test"],
  ["GET", "/deliveries"],
  ["POST", "/replay", { eventIds: ["vch_1-1"] }],
];

it("another organization's webhook endpoint gets the same response as an unknown one", async () => {
  const { id } = await create();
  const stranger = await makeCaller();
  for (const [method, path, body] of OF_ONE) {
    const foreign = await call(method, `/${id}${path}`, body, stranger);
    const unknown = await call(method, `/${newId("whk")}${path}`, body, stranger);
    expect(foreign).toMatchObject(NOT_FOUND);
    expect({ ...foreign.body, requestId: "" }).toEqual({ ...unknown.body, requestId: "" });
  }
  expect((await call("GET", `/${id}`)).body.enabled).toBe(true);
});

/** URLs that the API refuses, by the reason. */
const REFUSED: Record<string, string[]> = {
  "must be an address": [
    ...["no address", "ftp://shop.example.com/", "https:shop.example.com", "https://shop.example.com/a b"],
    "https://shop.example.com/\r\nx-other: 1",
  ],
  "must not be empty": [""],
  "must begin with https://": ["http://shop.example.com/"],
  "must not have a user name": ["https://user:secret@shop.example.com/"],
  "must have port 443 or 8443": ["https://shop.example.com:22/"],
  "must not have a fragment": ["https://shop.example.com/#"],
  "must be at most 2048 characters long": [`https://shop.example.com/${"x".repeat(2_048)}`],
  "must have a public host": [
    ...["localhost", "LOCALHOST.", "intranet", "db.internal", "127.0.0.1", "2130706433", "0x7f.1", "10.1.2.3"],
    ...["172.16.0.1", "192.168.1.1", "100.64.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "169.254.169.254"],
    ...["[::1]", "[::ffff:10.0.0.1]", "[64:ff9b::a00:1]", "[::]", "[fd00:ec2::254]", "[fe80::1]", "[ff02::1]"],
    ...["[2002:a00:1::]", "[2001:db8::1]"],
  ].map((host) => `https://${host}/`),
};

it("a webhook URL that is not a public HTTPS address is refused for new and changed endpoints", async () => {
  const { id } = await create();
  for (const [message, urls] of Object.entries(REFUSED)) {
    const error = expect.stringMatching(`^url ${message}`);
    for (const url of urls) {
      const refused = { status: 400, body: { code: "invalid_request", error } };
      expect(await call("POST", "", { url }), url).toMatchObject(refused);
      expect(await call("PATCH", `/${id}`, { url, description: "new" }), url).toMatchObject(refused);
    }
  }
  expect((await call("GET", `/${id}`)).body).toMatchObject({ url: URL_OK, description: "" });
});

it("a webhook URL with a public host is accepted, by name or by address", async () => {
  for (const url of [
    ...["https://shop.example.com", "https://shop.example.com:8443/x?y=z", "https://93.184.215.14/"],
    "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/",
  ]) {
    expect((await create({ url })).url).toBe(url);
  }
});

it("a wrong request for a webhook endpoint is refused with a message that names the field", async () => {
  const url = URL_OK;
  for (const [body, error] of [
    [{}, /^url is required/],
    [{ url: 7 }, /^url must be text/],
    [{ url, description: "x".repeat(201) }, /^description must be at most 200 characters/],
    [{ url, eventTypes: "all" }, /^eventTypes must be a list/],
    [{ url, eventTypes: ["voucher.instance.issued"] }, /^eventTypes.* must be a list of event types: /],
    [{ url, eventTypes: ["webhook.test"] }, /^eventTypes.* must be a list of event types: /],
    [{ url, eventTypes: ["reservation.expired", "reservation.expired"] }, /^eventTypes must name each .* at most once/],
    [{ url, enabled: "yes" }, /^enabled must be true or false/],
  ] as const) {
    const refused = { code: "invalid_request", error: expect.stringMatching(error) };
    expect(await call("POST", "", body)).toMatchObject({ status: 400, body: refused });
  }
});

it("30 simultaneous requests create 20 webhook endpoints, and a deletion allows one more", async () => {
  // A request waits for earlier ones. On a busy machine, it may get a 503, which the test repeats.
  const createAtLast = () => untilDecided(() => call("POST", "", { url: URL_OK }));
  const answers = await Promise.all(Array.from({ length: 30 }, createAtLast));
  const statuses = Map.groupBy(answers, ({ status }) => status);
  expect(statuses.get(200)).toHaveLength(20);
  expect(statuses.get(409)).toMatchObject(Array(10).fill(limit("20 webhook endpoints")));
  const { webhooks } = (await call("GET", "")).body;
  expect(webhooks).toHaveLength(20);
  await call("DELETE", `/${webhooks[7].id}`);
  await create();
  expect(await call("POST", "", { url: URL_OK })).toMatchObject(limit("20 webhook endpoints"));
  expect(await call("POST", "", { url: URL_OK }, await makeCaller())).toMatchObject({ status: 200 });
});

/** Opens a receiver on this machine, its endpoint, and an API that may connect to it. */
async function openLocal() {
  const receiver = await startPartnerServer();
  onTestFinished(() => receiver.close());
  const local = await service.startApi({ WEBHOOK_SECRET: SECRET, WEBHOOK_ALLOW_PRIVATE: "true" });
  const created = await create({ url: receiver.url }, local);
  const post = (path: string, as = key) => call("POST", path, undefined, as, local);
  return { receiver, local, post, ...created };
}

it("a webhook endpoint's replaced secret signs for 24 more hours, and at most ten replaced secrets sign", async () => {
  const { receiver, post, id, secret } = await openLocal();
  /** Sends a test request, and returns the secrets that have signed it. */
  const signers = async (secrets: readonly string[]) => {
    await post(`/${id}/test`);
    const { headers = {}, body = "" } = receiver.received.at(-1) ?? {};
    return secrets.filter((secret) => {
      try {
        return new Webhook(secret).verify(body, headers as Record<string, string>);
      } catch {
        return false;
      }
    });
  };
  const secrets = [secret];
  for (let rotation = 1; rotation <= 10; rotation++) {
    const { status, body } = await post(`/${id}/rotate`);
    expect(status).toBe(200);
    secrets.push(body.secret);
    const hours = (Date.parse(body.previousSecretUntil) - Date.now()) / 3_600_000;
    expect(Math.abs(hours - 24)).toBeLessThan(0.1);
  }
  expect(await signers(secrets)).toEqual(secrets);
  expect(await post(`/${id}/rotate`)).toMatchObject(limit("10 earlier secrets"));
  await servers.db.query(
    "UPDATE webhook_endpoints SET previous_secrets_until[10] = now(), previous_secrets_until[9] = now() WHERE id = $1",
    [id],
  );
  expect(await signers(secrets)).toEqual(secrets.slice(2));
  expect((await post(`/${id}/rotate`)).status).toBe(200);
});

it("a test of a webhook endpoint sends a signed request, returns the outcome and never uses loopback", async () => {
  const { receiver, local, post, id } = await openLocal();
  const delivered = { delivered: true, status: 204, failure: null, durationMs: expect.any(Number) };
  expect(await post(`/${id}/test`)).toEqual({ status: 200, body: delivered });
  const timestamp = expect.stringMatching(/Z$/);
  const sent = { type: "webhook.test", timestamp, data: { webhookId: id } };
  expect(JSON.parse(receiver.received[0]?.body ?? "")).toEqual(sent);
  const sandbox = await makeCaller(true);
  const { id: ofSandbox } = (await call("POST", "", { url: receiver.url }, sandbox, local)).body;
  await post(`/${ofSandbox}/test`, sandbox);
  expect(JSON.parse(receiver.received[1]?.body ?? "").data).toEqual({ webhookId: ofSandbox, sandbox: true });
  // The shared API must not connect to loopback, even if the stored address is there.
  expect((await call("POST", `/${id}/test`)).body).toMatchObject({ delivered: false, failure: "refused_address" });
  expect(receiver.received).toHaveLength(2);
});

/** Makes a key that may manage the webhooks of a new organization. */
async function makeCaller(sandbox = false): Promise<string> {
  const { organizationId } = await makePartner(servers.db, { sandbox });
  return (await makeKey(servers.db, organizationId, { scopes: ["voucher.webhook"] })).key;
}

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
