import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { html } from "../../src/http/pages/html.ts";
import { qrCode } from "../../src/http/pages/qr-code.ts";
import { inSeconds, makeOffer, makeReferral, offerBatch, reservationVouchers } from "../support/marketplace.ts";
import { appendPending } from "../support/pending-events.ts";
import { startApi, startApiUnready } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVoucher } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

/** What browsers send when they open an address. */
const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
const NOTE = "Tisch 4 & <b>";
const REFERENCE = "order-of-pages-test";

const { api, servers, partner, issue, till } = useService();
/** A redeemed voucher. */
let voucher: { id: string; code: string };
let payloads: string[];
let hashes: string[];

beforeAll(async () => {
  voucher = await issue();
  await till.redeem({ code: voucher.code, externalRef: REFERENCE, note: NOTE });
  const { events } = (await till.events(voucher.code)).body;
  payloads = events.map((event: { payload: string }) => event.payload);
  hashes = events.map((event: { recordHash: string }) => event.recordHash);
});

/** Opens an address of the service; with a browser's Accept unless told otherwise. */
async function open(path: string, accept: string | null = BROWSER, method = "GET") {
  // Without the header, fetch sends Accept: */*.
  const headers: Record<string, string> = accept === null ? {} : { accept };
  const response = await fetch(`${api.url}${path}`, { method, headers, redirect: "manual" });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const chainPath = (id: string, query = "") => `/integrity/events/VoucherInstance/${id}${query}`;
const isPage = (headers: Headers) => headers.get("content-type") === "text/html; charset=utf-8";
const isJson = (headers: Headers) => headers.get("content-type") === "application/json; charset=utf-8";

it.each([
  BROWSER,
  "text/html",
  "text/*",
  "text/html, application/json;q=0.9",
  "application/json;q=0.4, text/html;q=0.5",
  "text/html;q=0.1, */*;q=0",
])("an address that answers with a page or with JSON gives the page to callers who prefer HTML: %s", async (accept) => {
  for (const path of [chainPath(voucher.id), "/"]) {
    const { status, headers, text } = await open(path, accept);
    expect(status).toBe(200);
    expect(isPage(headers), accept).toBe(true);
    expect(text).toMatch(/^<!doctype html>/);
  }
});

it.each([
  null,
  "*/*",
  "application/json",
  "application/json, text/plain, */*",
  "text/html;q=0.5, application/json",
  "text/html;q=0",
  "application/*, text/html;q=0.9",
  "image/png",
  "text/html;q=x, */*;q=0.5",
])("an address that answers with a page or with JSON gives JSON to everyone else: %s", async (accept) => {
  for (const path of [chainPath(voucher.id), "/"]) {
    const { status, headers, text } = await open(path, accept);
    expect(status).toBe(200);
    expect(isJson(headers), String(accept)).toBe(true);
    JSON.parse(text);
  }
});

it("an address that answers with a page or with JSON names Accept in Vary with every answer", async () => {
  for (const accept of [BROWSER, "*/*"]) {
    for (const path of ["/", chainPath(voucher.id), chainPath("vch_none"), chainPath(voucher.id, "?limit=x")]) {
      expect((await open(path, accept)).headers.get("vary"), path).toBe("Accept");
    }
  }
});

it("an address that answers with a page or with JSON answers HEAD like GET without a body, and other methods with 405 in JSON", async () => {
  for (const path of ["/", chainPath(voucher.id)]) {
    const head = await open(path, BROWSER, "HEAD");
    expect({ status: head.status, text: head.text }).toEqual({ status: 200, text: "" });
    expect(isPage(head.headers)).toBe(true);
    const post = await open(path, "*/*", "POST");
    expect(post.status).toBe(405);
    expect(post.headers.get("allow")).toBe("GET, HEAD");
    expect(JSON.parse(post.text)).toMatchObject({ code: "method_not_allowed" });
  }
});

it.each([
  ["/", "'self'"],
  ["/check", "'self'"],
  ["/nowhere", "'self'"],
  [`/r/none`, "'self'"],
  // A pasted payload cannot leave this page.
  ["the verification page", "'none'"],
  [chainPath("vch_none"), "'none'"],
])("every page allows its own style, scripts and pictures and no others, cannot be framed and sends forms nowhere else: %s", async (page, formAction) => {
  for (const path of [page.startsWith("/") ? page : chainPath(voucher.id)]) {
    const { headers } = await open(path);
    const policy = headers.get("content-security-policy") ?? "";
    expect(Object.fromEntries(policy.split(";").map((directive) => directive.trim().split(/ (.*)/)))).toEqual({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self'",
      "form-action": formAction,
      "base-uri": "'none'",
      "frame-ancestors": "'none'",
    });
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(headers.get("x-frame-options")).toBe("DENY");
    expect(headers.get("referrer-policy")).toBe("same-origin");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.has("strict-transport-security")).toBe(false);
  }
});

it("every page has no inline style or script, and loads its files from addresses that change with their content", async () => {
  const { text } = await open(chainPath(voucher.id));
  expect(text).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=|javascript:/i);
  const assets = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  expect(new Set(assets.map((path) => path.replace(/.*\./, "")))).toEqual(new Set(["svg", "css", "js"]));
  const types = new Map([
    ["svg", "image/svg+xml"],
    ["css", "text/css; charset=utf-8"],
    ["js", "text/javascript; charset=utf-8"],
  ]);
  for (const path of assets) {
    expect(path).toMatch(/^\/assets\/[a-z-]+\.[0-9a-f]{16}\.(svg|css|js)$/);
    const { status, headers, text: content } = await open(path, "*/*");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe(types.get(path.replace(/.*\./, "")));
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(content.length).toBeGreaterThan(100);
  }
});

it("every page has no other files: other names under /assets get 404", async () => {
  for (const name of ["pages.css", "..%2f..%2fhtml.ts", "pages.0000000000000000.css", "__proto__", "style"]) {
    expect((await open(`/assets/${name}`, "*/*")).status, name).toBe(404);
  }
});

it("the page of a chain shows each event in plain words, with its time in UTC, its seal, its hash and its link", async () => {
  const { text } = await open(chainPath(voucher.id));
  expect(text).toContain(voucher.id);
  expect(text).toContain("<strong>Issued</strong>");
  expect(text).toContain("<strong>Redeemed</strong>");
  expect(text.match(/>Sealed</g)).toHaveLength(2);
  expect(text).toMatch(
    /<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z">\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC<\/time>/,
  );
  expect(text).toContain(`class="record-hash copied">${hashes[0]}<`);
  expect(text).toContain(`class="record-hash copied">${hashes[1]}<`);
  expect(text).toContain(`class="previous-hash copied">${hashes[0]}<`);
  expect(text).toContain(`class="previous-hash copied">${"0".repeat(64)}<`);
});

it("the page of a chain shows only what the public JSON contains: no payload, code, reference, note or actor", async () => {
  const { text } = await open(chainPath(voucher.id));
  const said = JSON.parse(payloads[1] ?? "");
  const secrets = [
    voucher.code,
    voucher.code.replaceAll("-", ""),
    REFERENCE,
    NOTE,
    said.actorConnectedId,
    said.data.nonce,
    said.data.redeemCode,
    partner.organizationId,
  ];
  for (const secret of secrets) {
    expect(String(secret).length).toBeGreaterThan(5);
    expect(text).not.toContain(secret);
    expect(text.toLowerCase()).not.toContain(String(secret).toLowerCase());
  }
});

it("the page of a chain says of an event that is not sealed yet that it is pending, and shows no hash for it", async () => {
  const { id } = await issueVoucher(servers.db, partner);
  await appendPending(servers.db, id, 1);
  const { text } = await open(chainPath(id));
  expect(text).toContain("<strong>Claimed</strong>");
  expect(text.match(/>Pending</g)).toHaveLength(1);
  expect(text.match(/Not sealed yet/g)).toHaveLength(1);
  expect(text).toContain('class="verdict waiting"');
  expect(text).toContain("One entry is not sealed yet.");
  expect(text.match(/class="record-hash copied"/g)).toHaveLength(1);
});

it("the page of a chain shows a long chain in pages, each with the hash that its first event links to", async () => {
  const { id } = await issueVoucher(servers.db, partner);
  await appendPending(servers.db, id, 52);
  const numbers = (text: string) => [...text.matchAll(/class="number">(\d+)</g)].map(([, number]) => Number(number));
  const follow = (text: string, rel: string) =>
    new RegExp(`rel="${rel}" href="([^"]+)"`).exec(text)?.[1]?.replaceAll("&#38;", "&");

  const first = (await open(chainPath(id))).text;
  expect(numbers(first)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  expect(first).not.toContain('id="before"');
  expect(follow(first, "prev")).toBeUndefined();

  const second = (await open(follow(first, "next") ?? "")).text;
  expect(numbers(second)).toEqual([51, 52, 53]);
  expect(second).toContain('id="before" data-sequence="50"');
  expect(follow(second, "next")).toBeUndefined();
  expect(numbers((await open(follow(second, "prev") ?? "")).text)).toEqual(numbers(first));

  const fromTwo = (await open(chainPath(id, "?after=1&limit=2"))).text;
  expect(numbers(fromTwo)).toEqual([2, 3]);
  const { events } = JSON.parse((await open(chainPath(id, "?limit=1"), "*/*")).text);
  expect(fromTwo).toMatch(new RegExp(`id="before" data-sequence="1">.*>${events[0].recordHash}<`));

  const behind = (await open(chainPath(id, "?after=900"))).text;
  expect(numbers(behind)).toEqual([]);
  expect(behind).toContain("There are no entries after number 900.");
});

it("the page of a chain answers an unknown voucher, an unknown type and nonsense with 404 as a page, and with 404 in JSON for others", async () => {
  for (const path of [
    chainPath("vch_none"),
    chainPath("%00"),
    chainPath("%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
    `/integrity/events/Order/${voucher.id}`,
  ]) {
    const page = await open(path);
    expect(page.status).toBe(404);
    expect(isPage(page.headers)).toBe(true);
    expect(page.text).toContain("No voucher has this id.");
    expect(page.text).toContain(page.headers.get("x-request-id"));
    expect(page.text).not.toMatch(/<script>|alert\(1\)/);
    const json = await open(path, "*/*");
    expect(json.status).toBe(404);
    expect(JSON.parse(json.text)).toMatchObject({ code: "entity_not_found" });
  }
});

it("the page of a chain says on a page that it cannot be shown while Postgres is away, and when to try again", async () => {
  const port = await findSteadyPort();
  const alone = await startApiUnready(servers, {
    DATABASE_URL: `postgres://unknown:a-secret@127.0.0.1:${port}/nowhere`,
  });
  try {
    const response = await fetch(alone.url + chainPath(voucher.id), { headers: { accept: BROWSER } });
    expect(response.status).toBe(503);
    expect(isPage(response.headers)).toBe(true);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    const text = await response.text();
    expect(text).toContain("Temporarily unavailable");
    expect(text).not.toMatch(/ECONN|nowhere|secret/);
  } finally {
    await alone.close();
  }
});

it("the page of a chain answers a bad after or limit with 400, on a page that names the field", async () => {
  for (const query of ["?after=-1", "?limit=0", "?limit=1001", "?after=%3Cb%3E", "?after=1&after=2"]) {
    const { status, headers, text } = await open(chainPath(voucher.id, query));
    expect(status, query).toBe(400);
    expect(isPage(headers)).toBe(true);
    expect(text).toMatch(/(after|limit) must be a whole number/);
  }
});

it("the landing page says what this is and links the reference, the OpenAPI document and health", async () => {
  const { text } = await open("/");
  for (const path of ["/docs", "/openapi.json", "/readyz"]) expect(text).toContain(`href="${path}"`);
});

it("the landing page links the queue dashboard only where there is one", async () => {
  expect((await open("/")).text).not.toContain("/ops/");
  const operated = await startApi(servers, { OPS_TOKEN: "a token for operators" });
  try {
    const page = await fetch(operated.url, { headers: { accept: BROWSER } });
    expect(await page.text()).toContain('href="/ops/queues"');
  } finally {
    await operated.close();
  }
});

it("the landing page gives programs its addresses as JSON, with the base address", async () => {
  const { text } = await open("/", "*/*");
  expect(JSON.parse(text)).toEqual({
    name: "Partner Voucher API",
    docs: "https://vouchers.test/docs",
    guide: "https://vouchers.test/docs/guide",
    openapi: "https://vouchers.test/openapi.json",
    health: "https://vouchers.test/healthz",
    readiness: "https://vouchers.test/readyz",
  });
});

it("the landing page puts the path of the base address before every address on its pages", async () => {
  const behindPath = await startApi(servers, {
    BASE_URL: "https://vouchers.test/api",
    OPS_TOKEN: "a token for operators",
  });
  try {
    for (const path of ["/", "/check", "/nowhere", chainPath(voucher.id), chainPath("vch_none"), "/ops/queues"]) {
      const text = await (await fetch(behindPath.url + path, { headers: { accept: BROWSER } })).text();
      const addresses = [...text.matchAll(/(?:href|src|action)="(\/[^"]*)"/g)].map(([, address]) => address);
      expect(addresses.length).toBeGreaterThan(3);
      for (const address of addresses) expect(address).toMatch(/^\/api\//);
    }
  } finally {
    await behindPath.close();
  }
});

describe("the marketplace in a browser", () => {
  it("the marketplace's page has the listings of the JSON for an anonymous user, page by page, with hostile names escaped", async () => {
    for (let one = 1; one <= 3; one += 1) {
      const offer = await makeOffer(servers.db, one, { audience: one === 3 ? "ReferrerOnly" : "OpenToAll" });
      await servers.db.query("UPDATE products SET name = $2 WHERE id = $1", [offer.productId, `<i>"${one}"\u202e`]);
    }
    const seen: string[] = [];
    for (let path: string | undefined = "/marketplace/listings?limit=2"; path !== undefined; ) {
      const { listings } = JSON.parse((await open(path, "*/*")).text);
      const { status, headers, text } = await open(path);
      expect(status).toBe(200);
      expect(isPage(headers)).toBe(true);
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
      const shown = [...text.matchAll(/<h2><bdi>(.*?)<\/bdi> from <bdi>(.*?)<\/bdi>/g)].map(([, name]) => name);
      const names = listings.map(({ productName }: { productName: string }) => html`${productName}`.markup);
      expect(shown).toEqual(names);
      for (const { available } of listings) expect(text).toContain(`Available: ${available}. Use it by`);
      seen.push(...shown.map(String));
      path = /rel="next" href="([^"]+)"/.exec(text)?.[1]?.replaceAll("&#38;", "&");
    }
    expect(seen.filter((name) => name.startsWith("&#60;i&#62;"))).toHaveLength(3);
    expect((await open("/marketplace/listings?limit=0")).status).toBe(400);
  });

  it("the marketplace's page is limited per address, like its JSON", async () => {
    const limited = await startApi(servers, { RATE_LIMIT_RPS: "1" });
    const request = () => fetch(`${limited.url}/marketplace/listings`, { headers: { accept: BROWSER } });
    const answers = await Promise.all(Array.from({ length: 40 }, request));
    expect(answers.map(({ status }) => status)).toContain(429);
    await limited.close();
  });
});

it("an unknown address answers browsers with a page that leads on, and programs with JSON, both with 404", async () => {
  for (const path of ["/nowhere", "/partner", "/r/a/b", "/%00", "/<script>"]) {
    const page = await open(path);
    expect(page.status, path).toBe(404);
    expect(isPage(page.headers), path).toBe(true);
    expect(page.text).toContain("<h1>Page not found</h1>");
    expect(page.text).toContain('<a href="/">');
    expect(page.text).not.toContain("<script>");
    expect(page.headers.get("vary")).toBe("Accept");
    for (const accept of [null, "*/*", "application/json"]) {
      const { status, headers, text } = await open(path, accept);
      expect({ status, json: isJson(headers) }, path).toEqual({ status: 404, json: true });
      expect(JSON.parse(text)).toMatchObject({ code: "not_found" });
    }
  }
});

describe("the field that checks a voucher", () => {
  const check = (entered: string, accept: string | null = BROWSER) =>
    open(`/check?voucher=${encodeURIComponent(entered)}`, accept);

  it("the field that checks a voucher leads from an id or a verify link, as typed or pasted, to the voucher's history", async () => {
    for (const entered of [
      voucher.id,
      `  ${voucher.id.toUpperCase()}\n`,
      `https://vouchers.test${chainPath(voucher.id)}`,
      `vouchers.test${chainPath(voucher.id)}?after=1#entry-2`,
    ]) {
      const { status, headers } = await check(entered);
      expect(status, entered).toBe(303);
      expect(headers.get("location")).toBe(chainPath(voucher.id));
    }
  });

  it("the field that checks a voucher says what is wrong with any other text, keeps the text and leads nowhere else", async () => {
    for (const entered of [
      voucher.code,
      "https://evil.test/integrity/events/VoucherInstance/..%2f..",
      "//evil.test/vch_1",
      "vch_",
      '"><script>alert(1)</script>',
      "vch_1\r\nSet-Cookie: a=b",
      "x".repeat(10_000),
    ]) {
      const { status, headers, text } = await check(entered);
      expect({ status, location: headers.get("location") }, entered).toEqual({ status: 400, location: null });
      expect(text).toContain("This is neither a verify link nor a voucher id.");
      expect(text).not.toContain("<script>");
      const json = await check(entered, "*/*");
      expect(json.status).toBe(400);
      expect(JSON.parse(json.text)).toMatchObject({ code: "invalid_request" });
    }
    expect((await check("A1-B2")).text).toContain('value="A1-B2"');
  });

  it("the field that checks a voucher is on the start page and alone at its address", async () => {
    for (const path of ["/", "/check", "/check?voucher=", "/check?voucher=a&voucher=b"]) {
      const { status, text } = await open(path);
      expect(status).toBe(200);
      expect(text).toContain('action="/check"');
      expect(text).not.toContain("This is neither");
    }
  });
});

describe("a referrer's link in a browser", () => {
  it("a referrer's link in a browser shows what the link offers and how to claim it, and does not exist for programs", async () => {
    const offer = await makeOffer(servers.db, 1, { audience: "ReferrerOnly" });
    const { code } = await makeReferral(servers.db, offer);
    const page = await open(`/r/${code}`);
    expect(page.status).toBe(200);
    expect(isPage(page.headers)).toBe(true);
    expect(page.headers.get("vary")).toBe("Accept");
    for (const words of ["Pass from Brand", "$50.00", "6 months", "Available", "Use it by", `/r/${code}/claim`]) {
      expect(page.text).toContain(words);
    }
    expect(page.text).not.toContain(offer.vouchers[0]?.code);
    const json = await open(`/r/${code}`, "*/*");
    expect(json.status).toBe(404);
    expect(JSON.parse(json.text)).toMatchObject({ code: "not_found" });
  });

  it("a referrer's link leads to the storefront with its code, and has the QR code of its own address", async () => {
    const { code } = await makeReferral(servers.db, await makeOffer(servers.db, 1));
    const { text } = await open(`/r/${code}`);
    expect(text).toContain(qrCode(`https://vouchers.test/r/${code}`).markup);
    expect(text).not.toContain('class="button"');
    const withShop = await startApi(servers, { STOREFRONT_URL: "https://shop.test/claim?link={code}&from={code}" });
    const page = await fetch(`${withShop.url}/r/${code}`, { headers: { accept: BROWSER } });
    const href = `https://shop.test/claim?link=${code}&#38;from=${code}`;
    expect(await page.text()).toContain(`<a class="button" href="${href}">Continue to shop.test</a>`);
    await withShop.close();
  });

  it("a referrer's link in a browser shows the validUntil of the vouchers that a claim gives, not of a batch with none left", async () => {
    const [soon, later] = [new Date("2051-03-01T12:00:00Z"), new Date("2052-04-01T12:00:00Z")];
    const offer = await makeOffer(servers.db, 1, { validUntil: soon });
    await offerBatch(servers.db, offer, 1, { validUntil: later });
    const { code } = await makeReferral(servers.db, offer);
    expect((await open(`/r/${code}`)).text).toContain("2051-03-01");
    await reservationVouchers(servers.db, [offer.vouchers[0]?.id ?? ""], inSeconds(900));
    const { text } = await open(`/r/${code}`);
    expect(text).toContain("2052-04-01");
    expect(text).not.toContain("2051-03-01");
  });

  it("a referrer's link in a browser says when nothing is left, and when the offer is not open", async () => {
    const offer = await makeOffer(servers.db, 1);
    const { code } = await makeReferral(servers.db, offer);
    await reservationVouchers(servers.db, [offer.vouchers[0]?.id ?? ""], inSeconds(900));
    expect((await open(`/r/${code}`)).text).toContain("No vouchers are left at the moment.");
    const later = await makeOffer(servers.db, 1, { windows: { claim: { opensAt: inSeconds(900), closesAt: null } } });
    const closed = (await open(`/r/${(await makeReferral(servers.db, later)).code}`)).text;
    expect(closed).toContain("This offer is not open at the moment.");
    expect(closed).not.toContain("Use it by");
  });

  it("a referrer's link in a browser does not exist for an unknown code, or unless the contract is in force", async () => {
    const offer = await makeOffer(servers.db, 1);
    const { code: over } = await makeReferral(servers.db, offer, "Active", new Date(Date.now() - 1_000));
    const { code: ended } = await makeReferral(servers.db, offer, "Ended");
    const { code: offered } = await makeReferral(servers.db, offer, "Offered");
    for (const path of [`/r/${over}`, `/r/${ended}`, `/r/${offered}`, "/r/none", "/r/%00", `/r/${"x".repeat(500)}`]) {
      const { status, headers, text } = await open(path);
      expect(status, path).toBe(404);
      expect(isPage(headers)).toBe(true);
      expect(text).toContain("This link is invalid or has expired.");
    }
  });
});

it("the foot of every page names the version", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"));
  for (const path of ["/", "/check", "/docs", "/nowhere", "/r/none", chainPath(voucher.id), chainPath("vch_none")]) {
    expect((await open(path)).text, path).toContain(`Partner Voucher API, version ${version}</p></footer>`);
  }
});
