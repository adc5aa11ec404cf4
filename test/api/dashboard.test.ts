import { request as httpRequest } from "node:http";
import { Queue } from "bullmq";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { PREFIX } from "../../src/queues/catalog.ts";
import { startNode } from "../support/child-process.ts";
import { partnerClient } from "../support/client.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const TOKEN = "the token of the operators";
const BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8";
const EIGHT_HOURS_MS = 28_800_000;

let servers: TestServers;
/** Read-only over https, as the default is; writable; over http; without a dashboard. */
let api: TestApi;
let writable: TestApi;
let plain: TestApi;
let without: TestApi;
let worker: TestWorker;
let partner: TestPartner;
let queue: Queue;

beforeAll(async () => {
  servers = await openTestServers();
  const TRUST_PROXY = "127.0.0.1";
  [api, writable, plain, without, worker] = await Promise.all([
    startApi(servers, { OPS_TOKEN: TOKEN, TRUST_PROXY }),
    startApi(servers, { OPS_TOKEN: TOKEN, OPS_WRITABLE: "true" }),
    startApi(servers, { OPS_TOKEN: TOKEN, BASE_URL: "http://vouchers.test/api" }),
    startApi(servers),
    startWorkers(servers),
  ]);
  partner = await makePartner(servers.db);
  queue = new Queue("redeem", { prefix: PREFIX, connection: { url: servers.redisUrl }, skipMetasUpdate: true });
});

afterAll(async () => {
  vi.useRealTimers();
  await queue.close();
  for (const each of [api, writable, plain, without]) await each.close();
  await worker.close();
  await servers.close();
});

interface Sent {
  headers?: Record<string, string>;
  /** Sent as a form. */
  form?: Record<string, string>;
  /** Sent as JSON. */
  json?: unknown;
}

/** Sends a request with exactly these headers: fetch would add those of a browser. */
function ask(method: string, url: string, { headers = {}, form, json }: Sent = {}) {
  const body =
    form === undefined ? (json === undefined ? "" : JSON.stringify(json)) : new URLSearchParams(form).toString();
  const type = form === undefined ? "application/json" : "application/x-www-form-urlencoded";
  return new Promise<{ status: number; headers: Headers; text: string }>((resolve, reject) => {
    const sent = httpRequest(
      url,
      { method, headers: { "content-type": type, "content-length": Buffer.byteLength(body), ...headers } },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => {
          const received = new Headers();
          for (const [name, values] of Object.entries(response.headersDistinct)) {
            for (const value of values ?? []) received.append(name, value);
          }
          resolve({ status: response.statusCode ?? 0, headers: received, text });
        });
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

let addresses = 0;

/** An address that has not tried to log in yet. */
function newAddress(): Record<string, string> {
  addresses += 1;
  return { "x-forwarded-for": `192.0.2.${addresses}` };
}

const logIn = (at: TestApi, token = TOKEN, headers: Record<string, string> = newAddress()) =>
  ask("POST", `${at.url}/ops/login`, { form: { token }, headers });

/** The Cookie header of a session. */
async function openSession(at: TestApi): Promise<{ cookie: string }> {
  const { headers } = await logIn(at);
  return { cookie: headers.getSetCookie()[0]?.split(";")[0] ?? "" };
}

const QUEUES = "/ops/queues/api/queues?activeQueue=redeem&status=latest&page=1&jobsPerPage=50";

describe("without OPS_TOKEN", () => {
  it("has no dashboard and no login: 404 like any other address", async () => {
    for (const path of [
      "/ops/queues",
      "/ops/queues/",
      QUEUES,
      "/ops/login",
      "/ops/logout",
      "/ops/queues/static/favicon.ico",
    ]) {
      for (const method of ["GET", "POST"]) {
        const { status, text } = await ask(method, without.url + path, { headers: { accept: BROWSER } });
        expect(status, path).toBe(404);
        expect(JSON.parse(text)).toMatchObject({ code: "not_found" });
      }
    }
  });

  const production = () => ({
    NODE_ENV: "production",
    DATABASE_URL: servers.databaseUrl,
    REDIS_URL: servers.redisUrl,
    RESERVATION_TOKEN_SECRET: "a secret of production",
    PORT: "0",
  });

  it("does not start an API process in production, and names the variable", async () => {
    const { exitCode, stderr } = await startNode(["src/main.ts"], production()).ended;
    expect(exitCode).toBe(78);
    expect(stderr).toMatch(/^OPS_TOKEN is not set/);
  });

  it.each([
    ["an API process that was told off", "src/main.ts", { OPS_TOKEN: "off" }, "listening"],
    ["a worker process without one", "workers/main.ts", {}, "working"],
  ])("starts %s in production", async (_name, script, env, line) => {
    const { child, output, ended } = startNode([script], { ...production(), ...env });
    try {
      await until(() => output().includes(`"msg":"${line}"`) || child.exitCode !== null, 30_000);
    } finally {
      child.kill("SIGTERM");
    }
    expect((await ended).exitCode, output()).toBe(0);
  });

  it("takes off for no dashboard, and never for a token", async () => {
    const off = await startApi(servers, { OPS_TOKEN: "off" });
    try {
      expect((await ask("GET", `${off.url}/ops/login`)).status).toBe(404);
      expect((await logIn(off, "off")).status).toBe(404);
    } finally {
      await off.close();
    }
  });
});

describe("the login", () => {
  it("shows a form that browsers may send to this origin alone", async () => {
    const { status, headers, text } = await ask("GET", `${api.url}/ops/login`, { headers: { accept: BROWSER } });
    expect(status).toBe(200);
    expect(text).toContain('<form method="post" action="/ops/login">');
    expect(headers.get("content-security-policy")).toContain("form-action 'self';");
    expect(headers.get("cache-control")).toBe("no-store");
  });

  it("gives the right token a session that scripts cannot read and other sites cannot use, for eight hours", async () => {
    const { status, headers } = await logIn(api);
    expect(status).toBe(303);
    expect(headers.get("location")).toBe("/ops/queues");
    const [cookie = ""] = headers.getSetCookie();
    const [pair = "", ...attributes] = cookie.split("; ");
    expect(pair).toMatch(/^__Host-operator=.{40,}$/);
    expect(new Set(attributes)).toEqual(
      new Set(["Path=/", "HttpOnly", "SameSite=Strict", "Secure", `Max-Age=${EIGHT_HOURS_MS / 1_000}`]),
    );
    expect(cookie).not.toContain(TOKEN);
  });

  it("leaves out Secure and its prefix where the base address is http, and goes on behind the base address's path", async () => {
    const { headers } = await logIn(plain);
    const [cookie = ""] = headers.getSetCookie();
    expect(cookie).toMatch(/^operator=/);
    expect(cookie).not.toMatch(/secure/i);
    expect(cookie).toContain("SameSite=Strict");
    expect(headers.get("location")).toBe("/api/ops/queues");
  });

  it.each([
    "",
    "wrong",
    TOKEN.slice(1),
    `${TOKEN} `,
    TOKEN.toUpperCase(),
    "__proto__",
  ])("refuses the token %j with 401 and no cookie", async (token) => {
    const { status, headers, text } = await logIn(api, token);
    expect(status).toBe(401);
    expect(headers.getSetCookie()).toEqual([]);
    expect(text).toContain("That is not the token");
    if (token.length > 1) expect(text).not.toContain(token);
  });

  it("refuses what is no form with one token in it", async () => {
    const address = newAddress();
    const post = (sent: Sent) =>
      ask("POST", `${api.url}/ops/login`, { ...sent, headers: { ...address, ...sent.headers } });
    const form = { "content-type": "application/x-www-form-urlencoded" };
    expect((await post({ json: { token: TOKEN } })).status).toBe(401);
    expect((await post({})).status).toBe(401);
    expect((await post({ form: { "token[]": TOKEN } })).status).toBe(401);
    expect((await post({ headers: form })).status).toBe(401);
    expect((await post({ form: { token: "x".repeat(20_000) } })).status).toBe(413);
  });

  it("lets an address try ten wrong tokens, however many at once, and then none for a while, right ones included", async () => {
    const address = newAddress();
    const tried = await Promise.all(Array.from({ length: 30 }, () => logIn(api, "wrong", address)));
    expect(tried.filter(({ status }) => status === 401)).toHaveLength(10);
    const refused = tried.filter(({ status }) => status === 429);
    expect(refused).toHaveLength(20);
    for (const { headers } of refused) {
      const seconds = Number(headers.get("retry-after"));
      expect(seconds).toBeGreaterThan(800);
      expect(seconds).toBeLessThanOrEqual(900);
    }
    expect((await logIn(api, TOKEN, address)).status).toBe(429);
    expect((await logIn(api, TOKEN, newAddress())).status).toBe(303);
  });

  it("charges no attempt for the right token", async () => {
    const address = newAddress();
    for (let i = 0; i < 9; i++) await logIn(api, "wrong", address);
    for (let i = 0; i < 3; i++) expect((await logIn(api, TOKEN, address)).status).toBe(303);
  });

  it("tells who is signed in, and signs out", async () => {
    const session = await openSession(api);
    const { text } = await ask("GET", `${api.url}/ops/login`, { headers: session });
    expect(text).toContain('<form method="post" action="/ops/logout">');
    const { status, headers } = await ask("POST", `${api.url}/ops/logout`, { headers: session, form: {} });
    expect(status).toBe(303);
    expect(headers.get("location")).toBe("/ops/login");
    expect(headers.getSetCookie()).toEqual([
      expect.stringMatching(/^__Host-operator=; Max-Age=0; Path=\/; HttpOnly; Secure; SameSite=Strict$/),
    ]);
  });
});

describe("a session", () => {
  it("is asked for by everything of the dashboard: pages go to the login, the rest is 401 in JSON", async () => {
    for (const path of ["/ops/queues", "/ops/queues/", "/ops/queues/queue/redeem"]) {
      const { status, headers } = await ask("GET", api.url + path, { headers: { accept: BROWSER } });
      expect(status, path).toBe(303);
      expect(headers.get("location")).toBe("/ops/login");
    }
    for (const [method, path, accept] of [
      ["GET", QUEUES, "application/json"],
      ["GET", QUEUES, BROWSER],
      ["GET", "/ops/queues", "*/*"],
      ["GET", "/ops/queues/static/favicon.ico", "image/*"],
      ["PUT", "/ops/queues/api/queues/redeem/pause", BROWSER],
      ["POST", "/ops/queues/api/queues/redeem/add", BROWSER],
    ] as const) {
      const { status, text } = await ask(method, api.url + path, { headers: { accept } });
      expect(status, path).toBe(401);
      expect(JSON.parse(text)).toEqual({
        error: "Sign in at /ops/login first.",
        code: "no_session",
        requestId: expect.any(String),
      });
    }
  });

  it("opens the dashboard in every API process that has the same token", async () => {
    const session = await openSession(api);
    for (const at of [api, writable]) {
      const { status, text } = await ask("GET", at.url + QUEUES, { headers: session });
      expect(status).toBe(200);
      expect(JSON.parse(text).queues.map(({ name }: { name: string }) => name)).toEqual(["redeem", "seal", "sweep"]);
    }
  });

  it("is no cookie that is changed, cut, unsigned, made with another token, or under another name", async () => {
    const other = await startApi(servers, { OPS_TOKEN: `${TOKEN}!` });
    const { cookie } = await openSession(api);
    const [name = "", value = ""] = cookie.split("=");
    const [header, claims = "", signature = ""] = value.split(".");
    const later = Buffer.from(JSON.stringify({ exp: 9_999_999_999 })).toString("base64url");
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    const forged = [
      `${name}=`,
      `${name}=true`,
      `${name}=${TOKEN}`,
      `${name}=${header}.${later}.${signature}`,
      `${name}=${none}.${claims}.`,
      `${name}=${header}.${claims}.${signature.slice(1)}`,
      `${name}=${header}.${claims}.${signature.replace(/^./, (first) => (first === "A" ? "B" : "A"))}`,
      `operator=${value}`,
      `${name}x=${value}`,
      (await openSession(other)).cookie,
    ];
    await other.close();
    for (const each of forged) {
      expect((await ask("GET", api.url + QUEUES, { headers: { cookie: each } })).status, each).toBe(401);
    }
    expect((await ask("GET", api.url + QUEUES, { headers: { cookie: `a=b; ${cookie}; c=d` } })).status).toBe(200);
  });

  it("ends after eight hours", async () => {
    const session = await openSession(api);
    const start = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: start + EIGHT_HOURS_MS - 60_000 });
    expect((await ask("GET", api.url + QUEUES, { headers: session })).status).toBe(200);
    vi.setSystemTime(start + EIGHT_HOURS_MS + 1_000);
    expect((await ask("GET", api.url + QUEUES, { headers: session })).status).toBe(401);
    vi.useRealTimers();
  });
});

describe("the dashboard", () => {
  it("costs nothing until an operator looks: no connection to Redis before", async () => {
    const fresh = await startApi(servers, { OPS_TOKEN: TOKEN });
    const connections = async () => {
      const list = (await servers.redis.call("CLIENT", "LIST")) as string;
      return list.split("\n").filter((line) => /name=dashboard\b/.test(line)).length;
    };
    try {
      const before = await connections();
      await ask("GET", `${fresh.url}/ops/queues`, { headers: { accept: BROWSER } });
      await ask("GET", `${fresh.url}/ops/login`);
      const session = await openSession(fresh);
      await ask("GET", fresh.url + QUEUES);
      expect(await connections()).toBe(before);
      await Promise.all([1, 2, 3].map(() => ask("GET", fresh.url + QUEUES, { headers: session })));
      expect(await connections()).toBe(before + 1);
    } finally {
      await fresh.close();
    }
  });

  it("leaves the queues' own settings as they are when it opens them", async () => {
    const settings = `${PREFIX}:redeem:meta`;
    const before = await servers.redis.hgetall(settings);
    await servers.redis.hset(settings, "opts.maxLenEvents", "4321");
    const fresh = await startApi(servers, { OPS_TOKEN: TOKEN });
    try {
      // The API's own end of the queue has written what it writes.
      await servers.redis.hset(settings, "opts.maxLenEvents", "4321");
      expect((await ask("GET", fresh.url + QUEUES, { headers: await openSession(fresh) })).status).toBe(200);
      expect(await servers.redis.hget(settings, "opts.maxLenEvents")).toBe("4321");
    } finally {
      await servers.redis.hset(settings, before);
      await fresh.close();
    }
  });

  it("serves its page under the public address, from this origin alone, for no cache", async () => {
    const session = await openSession(plain);
    const { status, headers, text } = await ask("GET", `${plain.url}/ops/queues`, {
      headers: { ...session, accept: BROWSER },
    });
    expect(status).toBe(200);
    expect(text).toContain('<base href="/api/ops/queues/"');
    expect(headers.get("content-security-policy")).toMatch(/default-src 'none';.*connect-src 'self'/);
    expect(headers.get("content-security-policy")).not.toMatch(/https?:|\*/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("x-powered-by")).toBe(false);
    const script = /src="(static\/js\/main[^"]+)"/.exec(text)?.[1];
    expect((await ask("GET", `${plain.url}/ops/queues/${script}`, { headers: session })).status).toBe(200);
  });

  it("tells nothing of Redis and of its connections", async () => {
    const session = await openSession(api);
    for (const path of ["redis/stats", "queues/redeem/workers"]) {
      const { status, text } = await ask("GET", `${api.url}/ops/queues/api/${path}`, { headers: session });
      expect(status, path).toBe(403);
      expect(text).not.toMatch(/version|addr/);
    }
  });

  it("shows of jobs which voucher, key and outcome, and nothing that a caller wrote or keeps secret", async () => {
    const first = await makeKey(servers.db, partner.organizationId);
    const second = await makeKey(servers.db, partner.organizationId);
    const shop = partnerClient(api.url, first.key);
    const till = partnerClient(api.url, second.key);
    const [voucher] = await issueVouchers(servers.db, partner, 1);
    if (voucher === undefined) throw new Error("no voucher");
    const { ticket, token } = (await shop.reserve(voucher.code)).body;
    const wrongToken = { ticket, token: "tok_wrong-token-of-the-till", externalRef: "reference-refused" };
    expect((await till.redeem(wrongToken)).body.code).toBe("token_mismatch");
    const words = { externalRef: "reference-confirmed", note: "a note that names Mrs Miller" };
    const { redeemCode } = (await till.redeem({ ticket, token, ...words })).body;
    expect(redeemCode).toEqual(expect.any(String));
    // One that no worker can take, and one that waits.
    await queue.add("redeem", { externalRef: "reference-broken", code: voucher.code, list: ["a secret in a list"] });
    await until(async () => (await queue.getFailedCount()) === 1);
    await queue.add("redeem", "a secret as a text" as never, { delay: 3_600_000 });

    const session = await openSession(api);
    const seen: string[] = [];
    const look = async (path: string) => {
      const { status, text } = await ask("GET", `${api.url}/ops/queues${path}`, { headers: session });
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
    for (const path of [
      "/api/job-schedulers",
      "/api/queues/redeem/metrics",
      "/api/queues/redeem/default-job-options",
    ]) {
      await look(path);
    }
    await look("/queue/redeem");

    const all = seen.join("\n");
    for (const known of [voucher.id, partner.organizationId, second.id, '"burnt"', '"token_mismatch"']) {
      expect(all).toContain(known);
    }
    const secrets = [
      voucher.code,
      voucher.code.replaceAll("-", ""),
      ticket,
      token,
      wrongToken.token,
      redeemCode,
      words.externalRef,
      words.note,
      "Miller",
      "reference-",
      "secret",
      first.key,
    ];
    for (const secret of secrets) expect(all.toLowerCase()).not.toContain(String(secret).toLowerCase());
    // Hashes of tokens are 64 hexadecimal digits.
    expect(all).not.toMatch(/[0-9a-f]{64}/);
    await queue.obliterate({ force: true });
  });
});

describe("a read-only dashboard", () => {
  it("refuses everything that changes something, whatever the board would do", async () => {
    const session = await openSession(api);
    for (const [method, path] of [
      ["PUT", "queues/redeem/pause"],
      ["PUT", "queues/pause"],
      ["PUT", "queues/redeem/retry/failed"],
      ["PUT", "queues/redeem/clean/completed"],
      ["PUT", "queues/redeem/empty"],
      ["PUT", "queues/redeem/obliterate"],
      ["PUT", "queues/redeem/concurrency"],
      ["POST", "queues/redeem/add"],
      ["PATCH", "queues/sweep/job-schedulers/sweep"],
      ["DELETE", "queues/redeem"],
    ] as const) {
      const { status, headers, text } = await ask(method, `${api.url}/ops/queues/api/${path}`, {
        headers: session,
        json: {},
      });
      expect(status, path).toBe(405);
      expect(headers.get("allow")).toBe("GET, HEAD");
      expect(JSON.parse(text)).toMatchObject({ code: "method_not_allowed" });
    }
    expect(await queue.isPaused()).toBe(false);
  });

  it("says of its queues that they are read-only", async () => {
    const { text } = await ask("GET", api.url + QUEUES, { headers: await openSession(api) });
    expect(JSON.parse(text).queues).toMatchObject([1, 2, 3].map(() => ({ readOnlyMode: true, allowRetries: false })));
  });
});

describe("a writable dashboard", () => {
  const put = async (path: string, headers: Record<string, string> = {}, method = "PUT", json: unknown = {}) =>
    ask(method, `${writable.url}/ops/queues/api/queues/${path}`, {
      headers: { ...(await openSession(writable)), ...headers },
      json,
    });

  it("pauses and resumes a queue", async () => {
    expect((await put("seal/pause")).status).toBe(200);
    const seal = new Queue("seal", { prefix: PREFIX, connection: { url: servers.redisUrl }, skipMetasUpdate: true });
    try {
      expect(await seal.isPaused()).toBe(true);
      expect((await put("seal/resume")).status).toBe(200);
      expect(await seal.isPaused()).toBe(false);
    } finally {
      await seal.resume();
      await seal.close();
    }
  });

  it.each([
    ["another site", { "sec-fetch-site": "cross-site" }],
    ["a neighbouring host", { "sec-fetch-site": "same-site" }],
    ["another site, told by an old browser", { origin: "https://evil.test" }],
    ["a sandboxed page, told by an old browser", { origin: "null" }],
  ])("refuses what comes from a page of %s, for all its cookie of a session", async (_who, headers) => {
    const { status, text } = await put("redeem/pause", headers as Record<string, string>);
    expect(status).toBe(403);
    expect(JSON.parse(text)).toMatchObject({ code: "cross_site" });
    expect(await queue.isPaused()).toBe(false);
    for (const path of ["login", "logout"]) {
      const sent = {
        form: { token: TOKEN },
        headers: { ...(await openSession(writable)), ...headers } as Record<string, string>,
      };
      const form = await ask("POST", `${writable.url}/ops/${path}`, sent);
      expect(form.status, path).toBe(403);
      expect(form.headers.getSetCookie()).toEqual([]);
    }
  });

  it("takes what its own page sends, told by a new browser or an old one", async () => {
    const { host } = new URL(writable.url);
    expect((await put("seal/resume", { "sec-fetch-site": "same-origin" })).status).toBe(200);
    expect((await put("seal/resume", { origin: `http://${host}` })).status).toBe(200);
  });

  it("adds, edits and obliterates nothing: what it shows is redacted, and a queue's limits are not an operator's", async () => {
    const { id } = await issueVoucher(servers.db, partner);
    const job = await queue.add("redeem", { voucherId: id }, { delay: 3_600_000 });
    for (const [method, path, json] of [
      ["POST", "redeem/add", { name: "redeem", data: {}, options: {} }],
      ["PATCH", `redeem/${job.id}/update-data`, { jobData: { voucherId: "vch_other" } }],
      ["PUT", "redeem/obliterate", { force: true }],
    ] as const) {
      expect((await put(path, {}, method, json)).status, path).toBe(403);
    }
    expect(await queue.getDelayedCount()).toBe(1);
    expect((await queue.getJob(job.id ?? ""))?.data).toEqual({ voucherId: id });
    expect((await put(`redeem/${job.id}/clean`)).status).toBe(204);
    expect(await queue.getDelayedCount()).toBe(0);
  });

  it("burns nothing when a finished redemption is retried", async () => {
    const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
    const voucher = await issueVoucher(servers.db, partner);
    await till.redeem({ code: voucher.code, externalRef: "retried" });
    const [job] = await queue.getCompleted();
    expect((await put(`redeem/${job?.id}/retry`)).status).toBe(204);
    await until(async () => (await queue.getJob(job?.id ?? ""))?.attemptsMade === 2);
    const { rows } = await servers.db.query("SELECT count(*)::int AS n FROM redemptions WHERE voucher_id = $1", [
      voucher.id,
    ]);
    expect(rows).toEqual([{ n: 1 }]);
  });
});
