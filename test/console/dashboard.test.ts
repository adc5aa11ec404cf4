import { appRoutes } from "@bull-board/api/dist/routes.js";
import { Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { redeemQueue } from "../../src/core/redeem/job.ts";
import { hashToken } from "../../src/core/reserve/reservation-token.ts";
import { CONFIG_PARTS } from "../../src/open/config-parts.ts";
import { translateInto } from "../../src/platform/api/sentences.ts";
import { basic, browse, OPS_TOKEN } from "../support/browse.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { itOnOneRedis } from "../support/servers.ts";
import { openTcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const service = useService({
  apis: [
    { OPS_TOKEN, TRUST_PROXY: "127.0.0.1" },
    { OPS_TOKEN, OPS_WRITABLE: "true" },
    { OPS_TOKEN, BASE_URL: "http://vouchers.test/api" },
    { OPS_TOKEN: "off" },
  ],
  shards: 1,
});
const { api, servers, partner, issue, till, rival } = service;
const [, writable, plain, without] = service.apis;
let queue: Queue;

beforeAll(() => {
  queue = openQueue("redeem");
});

afterAll(() => queue.close());

let addresses = 0;

const OPERATOR = basic(OPS_TOKEN, "operator");
const BROWSER = { ...OPERATOR, accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const CHALLENGE = 'Basic realm="Operators", charset="UTF-8"';

const QUEUE_NAMES = CONFIG_PARTS.queues.map(({ name }) => name);
const QUEUES = "/ops/queues/jobs/api/queues?activeQueue=redeem&status=latest&page=1&jobsPerPage=50";

it("the queue dashboard answers 404 without OPS_TOKEN or with OPS_TOKEN=off, even to the password off", async () => {
  for (const url of [without?.url, (await service.startApi({ OPS_TOKEN: "" })).url]) {
    for (const path of ["/ops/queues/jobs", QUEUES, "/ops/queues/jobs/static/favicon.ico"]) {
      const { status, text } = await ask("GET", `${url}${path}`, { headers: basic("off") });
      expect([status, JSON.parse(text).code], path).toEqual([404, "not_found"]);
    }
  }
});

describe("the queue dashboard's password", () => {
  const open = (password: string, headers = newAddress()) =>
    ask("GET", api.url + QUEUES, { headers: { ...headers, ...basic(password, "") } });

  it("the queue dashboard requires the password on every path, with a Basic challenge", async () => {
    for (const [method, path] of [
      ["GET", "/ops/queues/jobs"],
      ["GET", QUEUES],
      ["GET", "/ops/queues/jobs/static/favicon.ico"],
      ["GET", "/ops/queues"],
      ["GET", "/ops/queues/redeem"],
      ["PUT", "/ops/queues/jobs/api/queues/redeem/pause"],
      ["POST", "/ops/queues/jobs/api/queues/redeem/add"],
    ] as const) {
      const { status, headers, text } = await ask(method, api.url + path);
      expect(status, path).toBe(401);
      expect(headers.get("www-authenticate")).toBe(CHALLENGE);
      expect(JSON.parse(text)).toEqual({
        error: translateInto("en")("errors.missing_password"),
        code: "missing_password",
        requestId: expect.any(String),
      });
    }
    const { status, headers, text } = await browse(`${api.url}/ops/queues/jobs`);
    expect({ status, challenge: headers.get("www-authenticate") }).toEqual({ status: 401, challenge: CHALLENGE });
    expect(text).toContain("<h1>Please sign in</h1>");
  });

  it("the queue dashboard accepts a password with any characters, under any user name", async () => {
    for (const name of ["", "operator", "Zoë", "__proto__"]) {
      for (const at of [api, writable]) {
        const { status, text } = await ask("GET", at.url + QUEUES, { headers: basic(OPS_TOKEN, name) });
        expect(status, name).toBe(200);
        expect(JSON.parse(text).queues.map((each: { name: string }) => each.name)).toEqual(QUEUE_NAMES);
      }
    }
    const password = "Geheim: zwölf Äpfel:";
    const other = await service.startApi({ OPS_TOKEN: password });
    expect((await ask("GET", other.url + QUEUES, { headers: basic(password) })).status).toBe(200);
    expect((await ask("GET", other.url + QUEUES, { headers: OPERATOR })).status).toBe(401);
  });

  it("the queue dashboard answers a wrong password with 401 and a new challenge", async () => {
    const wrong = ["", "wrong", OPS_TOKEN.slice(1), `${OPS_TOKEN}!`, OPS_TOKEN.toUpperCase(), "__proto__"];
    for (const password of wrong) {
      const { status, headers, text } = await open(password);
      expect([status, headers.get("www-authenticate")], password).toEqual([401, CHALLENGE]);
      expect(JSON.parse(text)).toMatchObject({ code: "wrong_password" });
      if (password.length > 5) expect(text).not.toContain(password);
    }
  });

  it("the queue dashboard asks for the password if the request has no valid HTTP Basic header", async () => {
    const encoded = Buffer.from(`operator:${OPS_TOKEN}`).toString("base64");
    const headers = [OPS_TOKEN, `Bearer ${OPS_TOKEN}`, `Bearer ${encoded}`, "Basic", `Basic ${OPS_TOKEN}`].map(
      (authorization): Record<string, string> => ({ authorization }),
    );
    headers.push({ authorization: `Basic ${Buffer.from(OPS_TOKEN).toString("base64")}` });
    for (const each of [...headers, { cookie: `operator=${OPS_TOKEN}` }, { "x-api-key": OPS_TOKEN }]) {
      const { status, text } = await ask("GET", api.url + QUEUES, { headers: { ...newAddress(), ...each } });
      expect(status, JSON.stringify(each)).toBe(401);
      expect(JSON.parse(text)).toMatchObject({ code: "missing_password" });
    }
  });
});

describe("the queue dashboard", () => {
  itOnOneRedis("the queue dashboard opens its connection to Redis with the first signed-in request", async () => {
    const fresh = await service.startApi({ OPS_TOKEN });
    const connections = async () => {
      const list = (await servers.redis.call("CLIENT", "LIST")) as string;
      // Dashboards of other test files use other databases.
      const own = new RegExp(`name=dashboard .* db=${servers.redis.options.db} `);
      return list.split("\n").filter((line) => own.test(line)).length;
    };
    const before = await connections();
    await browse(`${fresh.url}/ops/queues/jobs`);
    await ask("GET", fresh.url + QUEUES, { headers: basic("wrong") });
    expect(await connections()).toBe(before);
    await Promise.all([1, 2, 3].map(() => ask("GET", fresh.url + QUEUES, { headers: OPERATOR })));
    expect(await connections()).toBe(before + 1);
  });

  itOnOneRedis("the queue dashboard answers 503 without Redis, and only the process log has the cause", async () => {
    const proxy = await openTcpProxy(servers.redisUrl);
    const cut = await service.startApi({ OPS_TOKEN, REDIS_URL: proxy.url });
    const reasons = new Map<unknown, unknown>();
    cut.ctx.log.warn = ((line: Record<string, unknown>) =>
      reasons.set(line.requestId, line.reason)) as typeof cut.ctx.log.warn;
    const look = () => ask("GET", cut.url + QUEUES, { headers: OPERATOR });
    try {
      await until(async () => (await look()).status === 200);
      for (const [fail, reason] of [
        [proxy.jam, /Command timed out/],
        [proxy.cut, /Error: ./],
      ] as const) {
        fail();
        const { status, headers, text } = await look();
        const requestId = headers.get("x-request-id");
        const error = "Redis does not answer at the moment.";
        expect([status, JSON.parse(text)]).toEqual([503, { error, code: "unavailable", requestId }]);
        await until(() => reasons.has(requestId));
        expect(reasons.get(requestId)).toMatch(reason);
      }
    } finally {
      proxy.mend();
      await cut.close();
      await proxy.close();
    }
  });

  it("the queue dashboard leaves the settings of the queues unchanged", async () => {
    const settings = `${servers.queuePrefix}:redeem:meta`;
    const before = await servers.redis.hgetall(settings);
    await servers.redis.hset(settings, "opts.maxLenEvents", "4321");
    const fresh = await service.startApi({ OPS_TOKEN });
    // Waits until the API has opened the queue, because opening overwrites the settings.
    await until(async () => (await servers.redis.hget(settings, "opts.maxLenEvents")) !== "4321");
    await servers.redis.hset(settings, "opts.maxLenEvents", "4321");
    expect((await ask("GET", fresh.url + QUEUES, { headers: OPERATOR })).status).toBe(200);
    expect(await servers.redis.hget(settings, "opts.maxLenEvents")).toBe("4321");
    await servers.redis.hset(settings, before);
  });

  it("the queue dashboard works under BASE_URL, loads only from its own origin and forbids caching", async () => {
    const { status, headers, text } = await browse(`${plain.url}/ops/queues/jobs`, { headers: BROWSER });
    expect(status).toBe(200);
    expect(text).toContain('<base href="/api/ops/queues/jobs/"');
    expect(headers.get("content-security-policy")).toMatch(/default-src 'none';.*connect-src 'self'/);
    expect(headers.get("content-security-policy")).not.toMatch(/https?:|\*/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("x-powered-by")).toBe(false);
    const script = /src="(static\/js\/main[^"]+)"/.exec(text)?.[1];
    expect((await ask("GET", `${plain.url}/ops/queues/jobs/${script}`, { headers: OPERATOR })).status).toBe(200);
  });

  it("the queue dashboard shows a job's voucher, key and outcome, but no text and no secret of a caller", async () => {
    const voucher = await issue();
    const { ticket, token } = (await rival.reserve(voucher.code)).body;
    const wrongToken = { ticket, token: "tok_wrong-token-of-the-till", externalRef: "reference-refused" };
    // The API would refuse this request without adding a job, so the test adds the job itself.
    const { serverId: origin } = api.ctx.deployment;
    const fields = { ticket, tokenHash: hashToken(wrongToken.token) };
    const refused = redeemJob(partner, service.keys.till.id, voucher.id, wrongToken.externalRef, fields);
    await queue.add(redeemQueue.name, { ...refused, origin }, { jobId: newAttempt(voucher.id) });
    await until(async () => (await queue.getCompletedCount()) === 1);
    const words = { externalRef: "reference-confirmed", note: "a note that names Mrs Miller" };
    const { redeemCode } = (await till.redeem({ ticket, token, ...words })).body;
    expect(redeemCode).toEqual(expect.any(String));
    // A job that no worker can process, and a job that waits.
    await queue.add("redeem", { externalRef: "reference-broken", code: voucher.code, list: ["a secret in a list"] });
    await until(async () => (await queue.getFailedCount()) === 1);
    await queue.add("redeem", "a secret as a text" as never, { delay: 3_600_000 });
    const seen: string[] = [];
    const look = async (path: string) => {
      const { status, text } = await ask("GET", `${api.url}/ops/queues/jobs${path}`, { headers: OPERATOR });
      expect(status, path).toBe(200);
      seen.push(text);
      return text;
    };
    const ids = new Set<string>();
    for (const status of ["latest", "active", "waiting", "completed", "failed", "delayed", "prioritized"]) {
      const text = await look(`/api/queues?activeQueue=redeem&status=${status}&page=1&jobsPerPage=50`);
      for (const { id } of JSON.parse(text).queues[0].jobs) ids.add(id);
    }
    expect(ids.size).toBe(4);
    for (const id of ids) for (const part of ["", "/logs", "/flow"]) await look(`/api/queues/redeem/${id}${part}`);
    await look("/queue/redeem");

    const all = seen.join("\n");
    for (const known of [voucher.id, partner.organizationId, service.keys.till.id, '"redeemed"', '"token_mismatch"']) {
      expect(all).toContain(known);
    }
    const secrets = [
      ...[voucher.code, voucher.code.replaceAll("-", ""), ticket, token, wrongToken.token, redeemCode],
      ...["Miller", "reference-", "secret", service.keys.rival.key],
    ];
    for (const secret of secrets) expect(all.toLowerCase()).not.toContain(String(secret).toLowerCase());
    // The jobs' data contain tokens only as hashes of 64 hexadecimal digits. The page must not show them.
    expect(all).not.toMatch(/[0-9a-f]{64}/);
    await queue.obliterate({ force: true });
  });
});

const fill = (route: string, job: string) =>
  route
    .replace(":queueName", "redeem")
    .replace(":queueStatus", "failed")
    .replace(":jobId", job)
    .replace(":schedulerId", "sweep");

describe.each([
  ["with OPS_WRITABLE", () => writable],
  ["without it", () => api],
])("the queue dashboard %s", (_, at) => {
  it("the queue dashboard serves bull-board's pages and four GET routes, with all queues read-only", async () => {
    const job = await queue.add("redeem", { voucherId: "vch_waiting" }, { delay: 3_600_000 });
    const { entryPoint, api: routes } = appRoutes;
    const reads = routes.filter(({ method }) => method === "get");
    const served: string[] = [];
    for (const route of [...entryPoint.route, ...reads.map(({ route }) => route)].map(String)) {
      const path = fill(route, job.id ?? "");
      const { status } = await ask("GET", `${at().url}/ops/queues/jobs${path}`, { headers: OPERATOR });
      if (status === 404) continue;
      expect(status, path).toBe(200);
      served.push(route);
    }
    await job.remove();
    expect(reads.length).toBeGreaterThan(10);
    const ofJob = "/api/queues/:queueName/:jobId";
    expect(served.sort()).toEqual(
      [
        "/",
        "/queue/:queueName",
        "/queue/:queueName/:jobId",
        "/job-schedulers",
        "/metrics-history",
        "/api/queues",
        ofJob,
        `${ofJob}/logs`,
        `${ofJob}/flow`,
      ].sort(),
    );
    const { text } = await ask("GET", at().url + QUEUES, { headers: OPERATOR });
    expect(JSON.parse(text).queues).toMatchObject(QUEUE_NAMES.map(() => ({ readOnlyMode: true, isPaused: false })));
  });

  it("the queue dashboard answers 405 to bull-board's other routes, so it is read-only", async () => {
    const job = await queue.add("redeem", { voucherId: "vch_waiting" }, { delay: 3_600_000 });
    const changing = appRoutes.api.filter(({ method }) => method !== "get");
    expect(changing.length).toBeGreaterThan(20);
    const json = { force: true, concurrency: 1, max: 1, duration: 1 };
    for (const { method, route } of changing) {
      const path = fill(String(route), job.id ?? "");
      const url = `${at().url}/ops/queues/jobs${path}`;
      const { status, headers, text } = await ask(String(method).toUpperCase(), url, { headers: OPERATOR, json });
      expect([status, headers.get("allow")], path).toEqual([405, "GET, HEAD"]);
      expect(JSON.parse(text)).toMatchObject({ code: "method_not_allowed" });
    }
    expect(await queue.isPaused()).toBe(false);
    expect(await queue.getDelayedCount()).toBe(1);
    await job.remove();
  });
});

it("the queue dashboard shows a webhook job's endpoint as a link, and no other data of the job", async () => {
  const webhooks = openQueue("webhook");
  await webhooks.add("webhook", { endpointId: "whk_1", origin: { deployment: "x" } });
  await webhooks.close();
  const { text } = await ask("GET", api.url + QUEUES.replace("redeem", "webhook"), { headers: OPERATOR });
  const shown = JSON.parse(text).queues.find((each: { name: string }) => each.name === "webhook");
  expect(shown.jobs).toMatchObject([
    {
      externalUrl: { displayText: "Endpoint", href: "/ops/webhooks/whk_1" },
      data: { endpointId: "whk_1", origin: { redacted: true } },
    },
  ]);
});

const openQueue = (name: string) =>
  new Queue(name, { prefix: servers.queuePrefix, connection: servers.redis, skipMetasUpdate: true });

/** Sends a request with the Accept header of a program. */
const ask = (
  method: string,
  url: string,
  { headers = {}, json }: { headers?: Record<string, string>; json?: unknown } = {},
) => browse(url, { method, json, headers: { accept: "*/*", ...headers } });

/** An address without earlier sign-ins. */
function newAddress(): Record<string, string> {
  addresses += 1;
  return { "x-forwarded-for": `192.0.2.${addresses}` };
}
