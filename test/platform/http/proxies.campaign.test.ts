import { Agent, fetch as fetchFrom } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { basic, browse, OPS_TOKEN } from "../../support/browse.ts";
import { hasProgram } from "../../support/has-program.ts";
import { FILES, PROXY_EXAMPLES, type ProxyExample, startProxy } from "../../support/proxy-examples.ts";
import { startApi, startWorkers, testConfig } from "../../support/service.ts";
import { makeKey } from "../../support/supply.ts";
import { openTcpProxy } from "../../support/tcp-proxy.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

/** The maximum that the service allows. Milliseconds. */
const REDEEM_WAIT_MS = 60_000;

const ORIGIN = "https://vouchers.test";

const installed = new Set(["nginx", "haproxy", "caddy"].filter((program) => hasProgram(program)));
const runnable = PROXY_EXAMPLES.filter(({ program }) => installed.has(program));

const { servers, partner, keys, issue } = useService({ apis: [], workers: [] });

interface Running {
  /** The proxy's address with the service's path. */
  url: string;
  /** The number of connections to the API that the proxy has opened. */
  connections(): number;
  /** The answer to a redeem that no worker runs, and its duration. */
  slow: { reply: Awaited<ReturnType<typeof call>>; tookMs: number };
}

const running = new Map<string, Running>();
const stops: (() => Promise<unknown>)[] = [];
let reader: string;

beforeAll(async () => {
  const apis = new Map<string, string>();
  for (const path of new Set(PROXY_EXAMPLES.map((example) => example.path))) {
    const env = {
      BASE_URL: ORIGIN + path,
      TRUST_PROXY: "127.0.0.1",
      REDEEM_WAIT_MS: String(REDEEM_WAIT_MS),
      OPS_TOKEN,
    };
    const { url } = await startApi(servers, env);
    // HAProxy sends no request to an API whose first check fails, and a new process may still be opening its queue.
    await until(async () => (await fetch(`${url}/readyz`)).ok);
    apis.set(path, url);
  }
  reader = (await makeKey(servers.db, partner.organizationId, { scopes: ["voucher.read"] })).key;
  const open = async (example: ProxyExample) => {
    const counter = await openTcpProxy(apis.get(example.path) ?? "");
    stops.push(() => counter.close());
    const { url, stop } = await startProxy(example, counter.url);
    stops.push(stop);
    const startedAt = performance.now();
    const { code } = await issue();
    const reply = await redeem(url, { code, externalRef: `slow-${example.name}` });
    const slow = { reply, tookMs: performance.now() - startedAt };
    running.set(example.name, { url, connections: counter.accepted, slow });
  };
  // Without workers, each redeem waits for its whole time limit.
  await Promise.all(runnable.map(open));
  await startWorkers(servers);
});

afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

it("docs/proxies.md has examples for nginx, HAProxy and Caddy, each for a host and for a path", () => {
  for (const program of ["nginx", "haproxy", "caddy"] as const)
    for (const path of ["", "/vouchers"])
      expect(PROXY_EXAMPLES.filter((example) => example.program === program && example.path === path)).not.toEqual([]);
});

it("the examples in docs/proxies.md close idle connections before the service does", () => {
  const text = [...FILES.values()].join("\n");
  const kept = Array.from(text.matchAll(/keepalive(?:_timeout)? (\d+)s/g), ([, seconds]) => Number(seconds));
  expect(kept.length).toBeGreaterThan(2);
  expect(Math.max(...kept) * 1_000).toBeLessThan(testConfig(servers).keepAliveMs);
});

/** A caller's address, which differs from the proxy's. */
const ELSEWHERE = "127.0.0.7";

/** References that some proxy changes in a path, and one that no proxy changes. */
const REFERENCES = [
  ...["10001-1", "10001/1", "a//b", "../b", "a/../b", "50%", "%2F", "a+b", "a b", "a#b", "a?b=c&d=e", "a;b", "a\\b"],
  ...["Größe", "№1", "'\"<>"],
];

describe.each(runnable)("the example for $name", (example) => {
  it(`${example.name} waits long enough for the API's own answer to the longest redeem`, () => {
    const { reply, tookMs } = of(example).slow;
    expect(reply).toMatchObject({ status: 503, body: { code: "redeem_timeout" } });
    expect(reply.headers.has("retry-after")).toBe(true);
    expect(tookMs).toBeGreaterThan(REDEEM_WAIT_MS - 1_000);
  });

  it(`${example.name} passes on codes in paths and every reference in bodies and queries`, async () => {
    const { url } = of(example);
    for (const reference of REFERENCES) {
      const externalRef = `${reference} ${example.name}`;
      const { code } = await issue();
      expect((await call(url, `/partner/vouchers/${code}`)).body.voucher?.code).toBe(code);
      const { redeemCode } = (await redeem(url, { code, externalRef })).body;
      const read = await call(url, `/partner/redemptions?${inQuery(externalRef)}`);
      expect([reference, read.status, read.body.redemptions[0].redeemCode]).toEqual([reference, 200, redeemCode]);
      // The service has no log, so the redemption has no receipt.
      expect((await call(url, `/partner/redemptions/receipt?${inQuery(externalRef)}`)).body.code).toBe(
        "not_logged_yet",
      );
    }
  });

  it(`${example.name} passes on references in paths, and slashes only as docs/proxies.md says`, async () => {
    const { url } = of(example);
    const order = example.name.replace("/", "-");
    for (const [reference, arrives] of [
      [`${order}-1`, true],
      [`${order}/1`, example.keepsSlashes],
    ] as const) {
      await redeem(url, { code: (await issue()).code, externalRef: reference });
      const { status, body } = await call(url, `/partner/redemptions/${encodeURIComponent(reference)}`);
      expect([reference, status, body.redeemed]).toEqual([reference, arrives ? 200 : 404, arrives ? true : undefined]);
    }
  });

  it(`${example.name} passes on the caller's real address, and not an address from the caller's headers`, async () => {
    const { code } = await issue();
    const from = new Agent({ localAddress: ELSEWHERE });
    const statusFor = async (allowIp: string) => {
      const { key } = await makeKey(servers.db, partner.organizationId, { allowIps: [allowIp] });
      const headers = { "x-api-key": key, "x-forwarded-for": "203.0.113.7", "x-real-ip": "203.0.113.7" };
      return (await fetchFrom(`${of(example).url}/partner/vouchers/${code}`, { headers, dispatcher: from })).status;
    };
    const statuses = [await statusFor(ELSEWHERE), await statusFor("203.0.113.7"), await statusFor("127.0.0.1")];
    await from.close();
    expect(statuses).toEqual([200, 403, 403]);
  });

  it(`${example.name} reuses its connections to the API`, async () => {
    const { url, connections } = of(example);
    const before = connections();
    for (let count = 0; count < 50; count++) expect((await fetch(`${url}/healthz`)).status).toBe(200);
    // The number may be more than zero, because HAProxy checks the API's health on new connections.
    expect(connections() - before).toBeLessThan(10);
  });

  it(`${example.name} passes on bodies up to the API's limit, and the API's errors and headers`, async () => {
    const { url } = of(example);
    const body = (size: number) => ({ code: "0000-0000-0000-0000", externalRef: "x", pad: "x".repeat(size) });
    expect((await redeem(url, body(16_000))).body.code).toBe("voucher_not_found");
    for (const size of [17_000, 40_000]) expect((await redeem(url, body(size))).body.code).toBe("body_too_large");
    const asked = { "x-request-id": "asked-for-1", "x-api-key": keys.till.key };
    const answer = await fetch(`${url}/partner/vouchers/0000`, { headers: asked });
    expect([answer.status, answer.headers.get("x-request-id")]).toEqual([404, "asked-for-1"]);
    const csv = await fetch(`${url}/partner/redemptions?to=2099-01-01T00:00:00Z`, {
      headers: { ...asked, accept: "text/csv" },
    });
    expect([csv.status, csv.headers.has("complete-until")]).toEqual([200, true]);
  });

  it(`${example.name} serves every page that the public, portal and operator pages link to`, async () => {
    const { url } = of(example);
    const visit = (path: string) => {
      const secret = path.startsWith(`${example.path}/ops`) ? OPS_TOKEN : reader;
      return browse(new URL(path, url).href, { headers: basic(secret) });
    };
    const { verifyUrl } = (await call(url, `/partner/vouchers/${(await issue()).code}`)).body;
    const starts = [
      "/",
      "/docs",
      "/docs/guide",
      "/portal",
      "/portal/redemptions",
      "/portal/activity",
      "/ops",
      "/ops/queues",
      "/openapi.json",
    ];
    const paths = new Set([...starts.map((path) => example.path + path), verifyUrl.replace(ORIGIN, "")]);
    // Follows the links of these pages, but not those of the linked pages.
    for (const page of [...paths]) {
      const { text } = await visit(page);
      for (const [, link = ""] of text.matchAll(/\s(?:href|src|action)="(\/[^"#]*)/g))
        paths.add(link.replaceAll("&#38;", "&"));
    }
    expect(paths.size).toBeGreaterThan(30);
    for (const path of paths) {
      expect(path.startsWith(`${example.path}/`), path).toBe(true);
      // Signing out answers 401, so that the browser forgets the password.
      const expected = path.endsWith("/ops/sign-out") ? 401 : 200;
      expect([path, (await visit(path)).status]).toEqual([path, expected]);
    }
  });

  it(`${example.name} passes on a search in the portal and its redirect to each order's page`, async () => {
    const { url } = of(example);
    const { origin } = new URL(url);
    for (const reference of REFERENCES) {
      const externalRef = `${reference} in the portal of ${example.name}`;
      await redeem(url, { code: (await issue()).code, externalRef });
      // An old browser does not send Sec-Fetch-Site, but sends the origin of the page.
      const headers = { ...basic(reader), origin };
      const found = await browse(`${url}/portal`, { headers, form: { words: externalRef } });
      expect([reference, found.status, found.location.split("?")[0]]).toEqual([
        reference,
        303,
        `${example.path}/portal/orders`,
      ]);
      const order = await browse(origin + found.location, { headers: basic(reader) });
      expect([reference, order.status]).toEqual([reference, 200]);
    }
  });
});

/** Sends a till's call through a proxy, as a POST with the body. */
async function call(url: string, path: string, body?: unknown, key = keys.till.key) {
  const method = body === undefined ? "GET" : "POST";
  const headers = { "x-api-key": key, accept: "application/json" };
  const response = await fetch(url + path, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape, including a proxy's own page.
  const answer: any = isJson ? await response.json() : await response.text();
  return { status: response.status, headers: response.headers, body: answer };
}

const redeem = (url: string, order: { code: string; externalRef: string; pad?: string }) =>
  call(url, "/partner/vouchers/redeem", order);

const inQuery = (externalRef: string) => new URLSearchParams({ externalRef });
const of = ({ name }: ProxyExample): Running => running.get(name) as Running;
