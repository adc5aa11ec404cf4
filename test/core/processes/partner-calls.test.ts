import { pino } from "pino";
import { expect, it, onTestFinished, vi } from "vitest";
import { keptRequestId } from "../../../src/core/processes/observe-requests.ts";
import { PartnerCalls, readCalls } from "../../../src/core/processes/partner-calls.ts";
import { AppError } from "../../../src/platform/api/errors.ts";
import { openFailFast, untilReady } from "../../../src/platform/redis/connections.ts";
import { basic, browse, nextOf, OPS_TOKEN } from "../../support/browse.ts";
import { itOnOneRedis } from "../../support/servers.ts";
import { makeKey, makePartner } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const { api, servers, db, partner, stranger, keys, issue } = useService({ env: { OPS_TOKEN } });

const headers = basic(OPS_TOKEN);
/** The form in which the service stores a request id that the caller chose. */
const keptForm = (requestId: string) => String(keptRequestId(api.ctx.tokenSecrets, requestId));
const search = (words: string) => browse(`${api.url}/ops/vouchers`, { headers, form: { words } });

it("the page of an organization's last calls shows each call's key, route, status and id, but no content", async () => {
  const { code } = await issue();
  const [till, rival] = [keys.till.key, keys.rival.key];
  const order = { code, externalRef: "order-of-mrs-miller", note: "a note of the till" };
  expect((await call("POST", "/partner/vouchers/redeem", till, "first", order)).status).toBe(200);
  expect(
    (await call("POST", "/partner/vouchers/redeem", rival, "second", { ...order, externalRef: "other-order" })).status,
  ).toBe(409);
  expect((await call("GET", `/partner/vouchers/${code}`, till, "third")).status).toBe(200);
  await call("GET", `/partner/vouchers/${code}`, "pvk_wrong", "refused");
  let text = "";
  await until(async () => {
    ({ text } = await pageOf(partner.organizationId));
    return rowsOf(text).length === 3;
  });
  const rows = rowsOf(text).map((row) => row.replace(/[\d.,]+ ms/, "N ms"));
  expect(rows).toEqual([
    `${keys.till.id} GET /partner/vouchers/:codeOrTicket 200 N ms ${keptForm("third")}`,
    `${keys.rival.id} POST /partner/vouchers/redeem 409 voucher_used N ms ${keptForm("second")}`,
    `${keys.till.id} POST /partner/vouchers/redeem 200 N ms ${keptForm("first")}`,
  ]);
  const kept = JSON.stringify(await readCalls(api.ctx, partner.organizationId));
  for (const secret of [code, code.replaceAll("-", ""), "miller", "a note", "other-order", till, rival]) {
    expect(text + kept).not.toContain(secret);
  }
  expect(rowsOf((await pageOf(partner.organizationId, `?key=${keys.rival.id}`)).text)).toHaveLength(1);
  expect(rowsOf((await pageOf(stranger.organizationId)).text)).toEqual([]);
  expect((await pageOf("org_none")).status).toBe(404);
});

it("a search by request id finds a call of the last hour, and each view of the call adds an audit entry", async () => {
  const looks = async () =>
    (
      await db.query("SELECT FROM audit_entries WHERE command = 'page calls' AND entity_id = $1", [
        stranger.organizationId,
      ])
    ).rowCount ?? 0;
  const requestId = "call-of-the-stranger:1";
  await call("GET", "/partner/vouchers/7Q4K-9MZX-2HTB-W8RC", keys.foreign.key, requestId);
  await until(async () => (await search(requestId)).status === 303);
  const { location } = await search(` ${requestId} `);
  expect(location).toBe(
    `/ops/organizations/${stranger.organizationId}/calls?request=${encodeURIComponent(keptForm(requestId))}`,
  );
  const before = await looks();
  expect(rowsOf((await browse(api.url + location, { headers })).text)).toMatchObject([
    expect.stringContaining(`404 voucher_not_found`),
  ]);
  expect(await looks()).toBe(before + 1);
  expect((await search("call-that-was-not-made")).text).toContain("Nothing found");
});

it("a caller's request id is kept unchanged only if it is a UUID or 32 hexadecimal digits", () => {
  const random = [crypto.randomUUID(), "4BF92F3577B34DA6A3CE929D0E0E4736"];
  expect(random.map(keptForm)).toEqual(random.map((id) => `given:${id}`));
  for (const id of ["order-4711", `${crypto.randomUUID()}-4711`, "4711"]) expect(keptForm(id)).not.toContain("4711");
});

it("a request id that equals a reference is echoed, but neither logged nor stored", async () => {
  const { organizationId } = await makePartner(db);
  const { key } = await makeKey(db, organizationId);
  const requestId = "order-of-mrs-jones";
  const lines: string[] = [];
  const info = vi.spyOn(api.ctx.log, "info").mockImplementation((line) => void lines.push(JSON.stringify(line)));
  onTestFinished(() => info.mockRestore());
  const refused = await call("GET", "/partner/vouchers/7Q4K-9MZX-2HTB-W8RC", key, requestId);
  expect([refused.headers.get("x-request-id"), JSON.parse(refused.text).requestId]).toEqual([requestId, requestId]);
  await until(async () => (await search(requestId)).status === 303);
  const { location } = await search(requestId);
  expect(rowsOf((await browse(api.url + location, { headers })).text)).toHaveLength(1);
  // A search for the id in its logged form also finds the call.
  expect((await search(keptForm(requestId))).location).toBe(location);
  const { redis, deployment } = api.ctx;
  const names = await redis.keys(`{pva:${deployment.id}:calls}*`);
  const stored = await Promise.all(names.map((name) => redis.zrange(name, "0", "-1")));
  expect(lines.join()).toContain(keptForm(requestId));
  expect(JSON.stringify([stored, lines])).not.toContain(requestId);
});

it("the page of calls and the process log mark a request id that the caller chose", async () => {
  const { organizationId } = await makePartner(db);
  const { key } = await makeKey(db, organizationId);
  const lines: Record<string, unknown>[] = [];
  const info = vi.spyOn(api.ctx.log, "info").mockImplementation((line) => void lines.push({ ...Object(line) }));
  onTestFinished(() => info.mockRestore());
  const path = "/partner/vouchers/7Q4K-9MZX-2HTB-W8RC";
  const given = await browse(api.url + path, { headers: { "x-api-key": key } });
  const own = given.headers.get("x-request-id") ?? "";
  // Another partner sends the id of this call as its own, and this partner sends an id that is too long.
  await call("GET", path, keys.foreign.key, own);
  await call("GET", path, key, "x".repeat(10_000));
  await until(async () => rowsOf((await pageOf(organizationId)).text).length === 2);
  const rows = rowsOf((await pageOf(organizationId)).text);
  expect(rows.at(-1)).toMatch(new RegExp(` ${own}$`));
  for (const row of rows) expect(row).toMatch(/ [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  const logged = lines.map(({ requestId }) => requestId);
  expect(logged.filter((id) => id === own || id === keptForm(own))).toEqual([own, keptForm(own)]);
  // The search finds both partners' calls, each under its own id.
  await until(async () => (await search(own)).status === 200);
  const { text } = await search(own);
  for (const id of [organizationId, stranger.organizationId]) {
    const sent = id === organizationId ? own : encodeURIComponent(keptForm(own));
    expect(text).toContain(`/ops/organizations/${id}/calls?request=${sent}`);
  }
});

it("an organization's last 200 calls are kept for an hour, on pages smaller than 100 kB", async () => {
  const { organizationId } = await makePartner(db);
  const { calls } = api.ctx;
  const prefix = `{pva:${api.ctx.deployment.id}:calls}`;
  const old = {
    at: 1,
    keyId: "key_1",
    route: "GET /old",
    status: 200,
    errorCode: null,
    durationMs: 1,
    requestId: "old",
  };
  const anHourAgo = Date.now() - 3_700_000;
  await servers.redis.zadd(`${prefix}:of:${organizationId}`, anHourAgo, JSON.stringify(old));
  await servers.redis.zadd(`${prefix}:requests:${organizationId}`, anHourAgo, "old");
  noteCalls(calls, organizationId, 3);
  await until(async () => (await readCalls(api.ctx, organizationId)).length === 3);
  expect(await servers.redis.zcard(`${prefix}:of:${organizationId}`)).toBe(3);
  expect(await servers.redis.zscore(`${prefix}:requests:${organizationId}`, "old")).toBeNull();
  noteCalls(calls, organizationId, 450);
  const newest = async () => (await readCalls(api.ctx, organizationId))[0]?.requestId;
  await until(async () => (await newest()) === "request-449");
  const found = await readCalls(api.ctx, organizationId);
  expect([found.length, found.at(-1)?.requestId]).toEqual([200, "request-250"]);
  for (const list of ["of", "requests"]) {
    expect(await servers.redis.zcard(`${prefix}:${list}:${organizationId}`)).toBe(200);
    const left = await servers.redis.pttl(`${prefix}:${list}:${organizationId}`);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(3_600_000);
  }
  const first = await pageOf(organizationId);
  expect([rowsOf(first.text).length, first.text.length < 90_000]).toEqual([100, true]);
  const next = await browse(api.url + nextOf(first.text, ""), { headers });
  expect([rowsOf(next.text).length, nextOf(next.text, "")]).toEqual([100, ""]);
  expect(rowsOf(next.text).at(-1)).toContain("request-250");
});

it("successful and rate-limited calls do not push a failed call out of a partner's list of last calls", async () => {
  const { organizationId } = await makePartner(db);
  const { calls } = api.ctx;
  const note = (status: number, requestId: string, errorCode: string | null) => {
    const call = { keyId: "key_1", route: "GET /x", status, errorCode, durationMs: 1, requestId };
    calls.note(organizationId, { ...call, endedAtMs: performance.now() });
  };
  note(503, "the-failed-one", "unavailable");
  noteCalls(calls, organizationId, 450);
  for (let at = 0; at < 5_000; at += 1) note(429, `over-${at}`, "rate_limited");
  await until(async () => (await search("the-failed-one")).status === 303);
  const found = await readCalls(api.ctx, organizationId);
  expect(found.filter(({ status }) => status === 200)).toHaveLength(200);
  expect(found.filter(({ status }) => status === 503)).toMatchObject([{ requestId: "the-failed-one" }]);
  const limited = found.filter(({ status }) => status === 429);
  expect(limited.length).toBeLessThanOrEqual(2);
  expect(limited.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(5_000);
  expect((await pageOf(organizationId, "?key=key_1")).text).toMatch(/<strong>[\d,]+ calls<\/strong>/);
});

it("a search by request id finds a call with an unknown key, and suggests where else to search", async () => {
  const requestId = crypto.randomUUID();
  await call("GET", "/partner/redemptions", `${keys.till.key}0`, requestId);
  await until(async () => (await search(requestId)).status === 303);
  const { location } = await search(requestId);
  expect(location).toMatch(/^\/ops\/calls\?request=/);
  const { text } = await browse(api.url + location, { headers });
  expect(rowsOf(text)).toMatchObject([expect.stringMatching(/^unknown GET \/partner\/redemptions 401 unknown_key/)]);
  const { text: none } = await search(crypto.randomUUID());
  expect(none).toMatch(/Where else to look for a call:[\s\S]*calls over a limit[\s\S]*log of each API process/);
});

it("a call that fails while Postgres is unreachable is listed under its key if the key worked before", async () => {
  const { key, id } = await makeKey(db, partner.organizationId);
  expect((await call("GET", "/partner/redemptions", key, "before")).status).toBe(200);
  const look = vi.spyOn(api.ctx.keys, "authenticate").mockRejectedValue(new AppError("unavailable"));
  onTestFinished(() => look.mockRestore());
  const requestId = crypto.randomUUID();
  expect((await call("GET", "/partner/redemptions", key, requestId)).status).toBe(503);
  await until(async () => {
    const failed = (await readCalls(api.ctx, partner.organizationId)).filter(({ status }) => status >= 500);
    return failed.some(({ keyId, requestId: kept }) => keyId === id && kept === `given:${requestId}`);
  });
});

it("the calls of the 1 000 organizations that called most recently are kept", async () => {
  const prefix = `{pva:${api.ctx.deployment.id}:calls}`;
  const quiet = Array.from({ length: 1_000 }, (_, at) => [Date.now() - 60_000 + at, `org_quiet_${at}`]).flat();
  await servers.redis.zadd(`${prefix}:organizations`, ...(quiet as [number, string]));
  await servers.redis.zadd(`${prefix}:of:org_quiet_0`, Date.now(), "{}");
  noteCalls(api.ctx.calls, "org_busy", 1);
  await until(async () => (await readCalls(api.ctx, "org_busy")).length === 1);
  await until(async () => (await servers.redis.exists(`${prefix}:of:org_quiet_0`)) === 0);
  expect(await servers.redis.zcard(`${prefix}:organizations`)).toBe(1_000);
  await servers.redis.del(`${prefix}:organizations`);
});

itOnOneRedis("while Redis is silent, a process keeps 2 000 records of calls, and drops and counts more", async () => {
  const proxy = await openTcpProxy(servers.redisUrl);
  const log = pino({ level: "silent" });
  const redis = openFailFast(proxy.url, "calls", log);
  await untilReady(redis, 30_000);
  let dropped = 0;
  const { deployment } = api.ctx;
  const calls = new PartnerCalls({ redis, deployment, log, onDropped: (count) => (dropped += count) });
  try {
    proxy.jam();
    noteCalls(calls, "org_first", 1);
    const written = calls.write();
    for (let at = 0; at < 25; at += 1) noteCalls(calls, `org_${at}`, 100);
    // Of a busy organization's calls, only the newest wait to be written.
    noteCalls(calls, "org_0", 100);
    expect(dropped).toBe(600);
    await calls.write();
    expect(dropped).toBe(600);
    await written;
    expect(dropped).toBe(601);
  } finally {
    proxy.mend();
    await calls.close();
    redis.disconnect();
    await proxy.close();
  }
});

it.each([
  "skip of the calls",
  "before of the audit",
])("the parameter %s must be one integer within its bounds", async (which) => {
  const [name = ""] = which.split(" ");
  const path = name === "skip" ? `/organizations/${partner.organizationId}/calls` : "/audit";
  const at = (query: string) => browse(`${api.url}/ops${path}?${query}`, { headers });
  const max = name === "skip" ? 2_000 : Number.MAX_SAFE_INTEGER;
  for (const good of ["", `${name}=`, `${name}=7`, `${name}=${max}`]) expect((await at(good)).status, good).toBe(200);
  for (const bad of [
    "-5",
    "1e9",
    "abc",
    "0x10",
    "1.5",
    "+1",
    "%201",
    "NaN",
    "Infinity",
    String(max + 1),
    `1&${name}=2`,
  ]) {
    const { status, text } = await at(`${name}=${bad}`);
    expect(status, bad).toBe(400);
    expect(text).toMatch(new RegExp(`${name} must be one whole number from [01] to ${max}\\.`));
  }
});

const pageOf = (organizationId: string, query = "") =>
  browse(`${api.url}/ops/organizations/${organizationId}/calls${query}`, { headers });

/** Calls the API as a partner's till, with a request id. */
const call = (method: string, path: string, key: string, requestId: string, json?: unknown) =>
  browse(api.url + path, { method, json, headers: { accept: "*/*", "x-api-key": key, "x-request-id": requestId } });

const rowsOf = (text: string) =>
  Array.from(text.matchAll(/<tr><td[^>]*><time[^>]*>[^<]*<\/time><\/td>(.*?)<\/tr>/g), ([, row = ""]) =>
    row
      .replaceAll(/<[^>]*>/g, " ")
      .replaceAll(/\s+/g, " ")
      .trim(),
  );

/** Records calls as they end, by number from 0. */
const noteCalls = (calls: PartnerCalls, organizationId: string, count: number) => {
  for (let at = 0; at < count; at += 1) {
    const call = { keyId: "key_1", route: "GET /x", status: 200, errorCode: null, durationMs: 1 };
    calls.note(organizationId, { ...call, requestId: `request-${at}`, endedAtMs: performance.now() + at / 1_000 });
  }
};
