import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApp } from "../../src/app.ts";
import { openApiContext } from "../../src/context.ts";
import { listen } from "../../src/http/server.ts";
import { freePort } from "../../src/local/servers.ts";
import { type PartnerClient, partnerClient, type Reply, send } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { dumpRows } from "../support/row-dump.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker, testConfig } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

let servers: TestServers;
/** With both servers, without Redis, without Postgres, without either. */
let api: TestApi;
let withoutRedis: TestApi;
let withoutPostgres: TestApi;
let withoutBoth: TestApi;
let worker: TestWorker;
let partner: TestPartner;
let key: string;

beforeAll(async () => {
  servers = await openTestServers();
  const port = await freePort();
  const noRedis = { REDIS_URL: `redis://127.0.0.1:${port}/0` };
  const noPostgres = { DATABASE_URL: `postgres://nobody:a-secret-password@127.0.0.1:${port}/nowhere` };
  [api, worker] = await Promise.all([startApi(servers), startWorkers(servers)]);
  withoutRedis = await startUnready(noRedis);
  withoutPostgres = await startUnready(noPostgres);
  withoutBoth = await startUnready({ ...noRedis, ...noPostgres });
  partner = await makePartner(servers.db);
  key = (await makeKey(servers.db, partner.organizationId)).key;
});

afterAll(async () => {
  await assertInvariants(servers.db);
  for (const each of [api, withoutRedis, withoutPostgres, withoutBoth]) await each.close();
  await worker.close();
  await servers.close();
});

/** Starts an API that does not have all its servers, without waiting for any of them. */
async function startUnready(env: Record<string, string>): Promise<TestApi> {
  const ctx = openApiContext(testConfig(servers, env));
  const server = await listen(createApp(ctx), 0, ctx.log);
  return {
    url: `http://127.0.0.1:${server.port}`,
    metricsUrl: "",
    ctx,
    async close() {
      await server.close();
      await ctx.close();
    },
  };
}

/** Expects an answer that says when to try again, in the form of every error, and tells nothing of the inside. */
function expectUnavailable({ status, body, headers }: Reply, code: string): void {
  expect({ status, body }).toEqual({
    status: 503,
    body: { error: expect.stringMatching(/^[A-Z].*\.$/), code, requestId: headers.get("x-request-id") },
  });
  expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
  expect(JSON.stringify(body)).not.toMatch(/ECONN|127\.0\.0\.1|password|nowhere|ioredis/i);
}

describe("GET /healthz", () => {
  it("answers 200 as long as the process is up, whatever else is", async () => {
    for (const each of [api, withoutRedis, withoutPostgres, withoutBoth]) {
      const { status, body, headers } = await send("GET", `${each.url}/healthz`);
      expect({ status, body }).toEqual({ status: 200, body: { status: "ok" } });
      expect(headers.get("x-request-id")).toEqual(expect.any(String));
    }
  });
});

describe("GET /readyz", () => {
  it("answers 200 when Postgres and Redis answer", async () => {
    const { status, body } = await send("GET", `${api.url}/readyz`);
    expect({ status, body }).toEqual({ status: 200, body: { status: "ok", postgres: "ok", redis: "ok" } });
  });

  it.each([
    ["Redis", () => withoutRedis, { postgres: "ok", redis: "unavailable" }],
    ["Postgres", () => withoutPostgres, { postgres: "unavailable", redis: "ok" }],
    ["both", () => withoutBoth, { postgres: "unavailable", redis: "unavailable" }],
  ])("answers 503 with Retry-After and names the server that does not answer: %s", async (_which, which, named) => {
    const { status, body, headers } = await send("GET", `${which().url}/readyz`);
    expect({ status, body }).toMatchObject({ status: 503, body: named });
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(JSON.stringify(body)).not.toMatch(/ECONN|127\.0\.0\.1|password|nowhere/i);
  });

  it("answers 503 with the words, the code and the request id that every error body has", async () => {
    const { body, headers } = await send("GET", `${withoutBoth.url}/readyz`);
    expect(body).toMatchObject({
      error: expect.stringMatching(/Postgres.*Redis/),
      code: "unavailable",
      requestId: headers.get("x-request-id"),
    });
  });
});

describe("while Redis cannot be reached from the start", () => {
  let till: PartnerClient;

  beforeAll(() => {
    till = partnerClient(withoutRedis.url, key);
  });

  it("look-ups and events answer 200", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const found = await till.lookUp(voucher.code);
    expect({ status: found.status, id: found.body.voucher.id }).toEqual({ status: 200, id: voucher.id });
    expect(await till.events(voucher.code)).toMatchObject({ status: 200, body: { entityId: voucher.id } });
    const open = await send("GET", `${withoutRedis.url}/integrity/events/VoucherInstance/${voucher.id}`);
    expect(open.status).toBe(200);
    expect((await till.lookUp("7Q4K-9MZX-2HTB-W8RC")).status).toBe(404);
  });

  it("reserve answers 503 with Retry-After and holds nothing", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const before = await dumpRows(servers.db);
    expectUnavailable(await till.reserve(voucher.code), "unavailable");
    expect(await dumpRows(servers.db)).toEqual(before);
  });

  it("redeem answers 503 with Retry-After, claims nothing that it cannot know, and burns nothing", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const before = await dumpRows(servers.db);
    const reply = await till.redeem({ code: voucher.code, externalRef: "without-redis" });
    expectUnavailable(reply, "redeem_unknown");
    expect(reply.body.error).not.toMatch(/nothing was burned/i);
    expect(reply.body.error).toContain("externalRef");
    expect(await dumpRows(servers.db)).toEqual(before);
    const later = await partnerClient(api.url, key).redeem({ code: voucher.code, externalRef: "without-redis" });
    expect({ status: later.status, confirmed: later.body.alreadyConfirmed }).toEqual({ status: 200, confirmed: false });
  });

  it("what Postgres alone can tell is answered: own holds, confirmed references, refusals, releases", async () => {
    const [held, burnt] = await issueVouchers(servers.db, partner, 2);
    const expired = await issueVoucher(servers.db, partner, { validUntil: new Date(Date.now() - 1_000) });
    const full = partnerClient(api.url, key);
    const hold = (await full.reserve(held?.code ?? "")).body;
    const burn = (await full.redeem({ code: burnt?.code, externalRef: "before-redis-went" })).body;

    expect((await till.reserve(held?.code ?? "")).body).toEqual(hold);
    const retry = await till.redeem({ code: burnt?.code, externalRef: "before-redis-went" });
    expect({ status: retry.status, body: retry.body }).toEqual({
      status: 200,
      body: { ...burn, alreadyConfirmed: true },
    });
    expect((await till.redeem({ code: burnt?.code, externalRef: "other" })).body.code).toBe("voucher_used");
    expect((await till.reserve(expired.code)).body.code).toBe("voucher_expired");
    expect(await till.release(hold.ticket)).toMatchObject({ status: 200, body: { released: true } });
  });
});

describe("while Postgres cannot be reached from the start", () => {
  it("every partner and public route answers 503 with Retry-After", async () => {
    const till = partnerClient(withoutPostgres.url, key);
    for (const reply of [
      await till.lookUp("7Q4K-9MZX-2HTB-W8RC"),
      await till.events("7Q4K-9MZX-2HTB-W8RC"),
      await till.reserve("7Q4K-9MZX-2HTB-W8RC"),
      await till.redeem({ code: "7Q4K-9MZX-2HTB-W8RC", externalRef: "without-postgres" }),
      await till.release("rsv_1"),
      await send("GET", `${withoutPostgres.url}/integrity/events/VoucherInstance/vch_1`),
    ]) {
      expectUnavailable(reply, "unavailable");
    }
  });

  it("what needs no database is answered: a missing key, an unknown path, a wrong method", async () => {
    const { url } = withoutPostgres;
    expect((await send("GET", `${url}/partner/vouchers/7Q4K`)).status).toBe(401);
    expect((await send("GET", `${url}/nowhere`)).status).toBe(404);
    expect((await send("DELETE", `${url}/healthz`)).status).toBe(405);
  });
});
