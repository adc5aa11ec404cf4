import { globSync, readFileSync } from "node:fs";
import { beforeAll, expect, it } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { changeBrand } from "../../src/acts/brand/change.ts";
import { changeOrganization } from "../../src/acts/org/change.ts";
import { html } from "../../src/pages/html.ts";
import { send } from "../support/client.ts";
import { inSeconds, makeOffer, makeReferral, offerBatch, reservationVouchers } from "../support/marketplace.ts";
import { appendPending } from "../support/pending-events.ts";
import { startApi, startApiUnready } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { voidVoucher } from "../support/void-voucher.ts";

/** The Accept header of a browser that opens an address. */
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

const chainPath = (id: string, query = "") => `/integrity/events/VoucherInstance/${id}${query}`;
const expertsPath = (id: string, query = "") => chainPath(id, `/history${query}`);

it.each([
  ["page", [BROWSER, "text/html", "text/*", "text/html, application/json;q=0.9"]],
  ["page", ["application/json;q=0.4, text/html;q=0.5", "text/html;q=0.1, */*;q=0"]],
  ["JSON", [null, "*/*", "application/json", "application/json, text/plain, */*", "image/png", "text/html;q=0"]],
  ["JSON", ["text/html;q=0.5, application/json", "application/*, text/html;q=0.9", "text/html;q=x, */*;q=0.5"]],
])("an address that has a page and JSON returns the %s, and Vary, for the Accept headers %s", async (what, accepts) => {
  for (const accept of accepts) {
    for (const path of [chainPath(voucher.id), "/"]) {
      const { status, headers, kind } = await open(path, accept);
      // The start page is the same for every reader, so the service compresses the page.
      const page = path === "/" ? "Accept, Accept-Encoding" : "Accept, Accept-Language";
      const vary = what === "page" ? page : "Accept";
      expect([status, headers.get("vary"), kind], String(accept)).toEqual([200, vary, what]);
    }
    for (const path of [chainPath("vch_none"), chainPath(voucher.id, "?limit=x")]) {
      expect((await open(path, accept)).headers.get("vary"), path).toBe("Accept, Accept-Language");
    }
  }
});

it("a URL that serves both a page and JSON answers HEAD without a body, and other methods with 405", async () => {
  for (const path of ["/", chainPath(voucher.id)]) {
    const head = await open(path, BROWSER, "HEAD");
    expect([head.status, head.text, head.kind]).toEqual([200, "", "page"]);
    const post = await open(path, "*/*", "POST");
    expect([post.status, post.code, post.headers.get("allow")]).toEqual([405, "method_not_allowed", "GET, HEAD"]);
  }
});

it("pages load only the service's files and cannot be framed; all but a voucher's show the version", async () => {
  for (const path of [
    "/",
    "/check",
    "/nowhere",
    "/r/none",
    chainPath(voucher.id),
    expertsPath(voucher.id),
    chainPath("vch_none"),
  ]) {
    const { headers, text } = await open(path);
    const version = `Partner Voucher API, version ${packageJson.version}</p></footer>`;
    expect(text.includes(version), path).toBe(path !== chainPath(voucher.id));
    const policy = headers.get("content-security-policy") ?? "";
    expect(Object.fromEntries(policy.split(";").map((directive) => directive.trim().split(/ (.*)/))), path).toEqual({
      "default-src": "'none'",
      "script-src": "'self'",
      "style-src": "'self'",
      "img-src": "'self'",
      "form-action": path.startsWith("/integrity") ? "'none'" : "'self'",
      "base-uri": "'none'",
      "frame-ancestors": "'none'",
    });
    const names = ["x-content-type-options", "x-frame-options", "referrer-policy", "cache-control"];
    expect(names.map((name) => headers.get(name))).toEqual(["nosniff", "DENY", "same-origin", "no-store"]);
    expect(headers.has("strict-transport-security")).toBe(false);
    expect(headers.get("x-robots-tag"), path).toBe(/^\/(r|integrity)\//.test(path) ? "noindex" : null);
  }
});

it("the page of a voucher's chain has no inline style or script, and its files' URLs contain hashes", async () => {
  const { text } = await open(expertsPath(voucher.id));
  expect(text).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=|javascript:/i);
  const assets = [...text.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? "");
  expect(new Set(assets.map((path) => path.replace(/.*\./, "")))).toEqual(new Set(["svg", "css", "js"]));
  const types: Record<string, string> = {
    svg: "image/svg+xml",
    css: "text/css; charset=utf-8",
    js: "text/javascript; charset=utf-8",
  };
  for (const path of assets) {
    expect(path).toMatch(/^\/assets\/[a-z-]+\.[0-9a-f]{16}\.(svg|css|js)$/);
    const { status, headers, text: content } = await open(path, "*/*");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe(types[path.replace(/.*\./, "")]);
    expect(headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
    expect(headers.get("x-content-type-options")).toBe("nosniff");
    expect(content.length).toBeGreaterThan(100);
  }
});

it("no style sheet of this project chooses a colour by window size or device", () => {
  const sheets = globSync("src/pages/static/*.css").map((path) => readFileSync(path, "utf8"));
  const blocks = sheets.flatMap((sheet) => sheet.match(/@(media|container)(?! print)[^{]*\{.*?\n\}/gs) ?? []);
  expect(blocks.length).toBeGreaterThan(0);
  const colouring = /color|background|border|outline|opacity|display: none|fill|stroke|shadow|var\(|#[0-9a-f]{3}/i;
  for (const block of blocks) expect(block).not.toMatch(colouring);
});

it("unknown names under /assets get 404", async () => {
  for (const name of ["pages.css", "..%2f..%2fhtml.ts", "pages.0000000000000000.css", "__proto__", "style"]) {
    expect((await open(`/assets/${name}`, "*/*")).status, name).toBe(404);
  }
});

it("a voucher's page shows customers its product, brand and status, and leaves proofs to experts", async () => {
  const active = await issue();
  await changeBrand.run(provisioning(servers.db), partner.brandId, {
    logo: null,
    removeLogo: false,
    colour: "#0a7f5a",
  });
  const look = async (id: string) => (await open(chainPath(id))).text;
  const dateIn = (text: string) => /<dt>([^<]+)<\/dt><dd><time /.exec(text)?.[1];
  for (const [id, status, date] of [
    [voucher.id, "This voucher has been used.", "Redeemed"],
    [active.id, "This voucher can be used.", "Valid until"],
  ] as const) {
    const text = await look(id);
    const shown = text.replaceAll(/<[^>]+>/g, "");
    expect(shown).toMatch(/Pass from Brand \d+/);
    const facts = ["$50.00", "6 months", /please contact Brand \d+\./.exec(shown)?.[0] ?? "whom to ask"];
    for (const part of [status, "Issued", "The voucher was created.", ...facts]) expect(shown).toContain(part);
    expect(dateIn(text)).toBe(date);
    expect(shown).not.toMatch(/seal|hash|leaf|payload|receipt|VCH\d|curl|vch_/i);
    expect(text).toContain(`href="${expertsPath(id)}"`);
    expect(text).toContain('<link rel="stylesheet" href="/colours/0a7f5a.css">');
    expect(text).not.toContain("<script");
  }
  await voidVoucher(provisioning(servers.db), partner.organizationId, active.code, null);
  const voided = await look(active.id);
  expect(voided).toContain("The issuer has cancelled this voucher.");
  expect(dateIn(voided)).toBe("Cancelled");
});

it("pages for customers show times in the organization's time zone, and programs get times in UTC", async () => {
  const offer = await makeOffer(servers.db, 1, { validUntil: new Date("2051-02-28T23:00:00Z") });
  await changeOrganization.run(provisioning(servers.db), offer.organizationId, { timeZone: "Europe/Berlin" });
  const { code } = await makeReferral(servers.db, offer);
  const path = chainPath(offer.vouchers[0]?.id ?? "");
  for (const page of [path, `/r/${code}`, "/marketplace/listings?limit=100"])
    expect((await open(page)).text, page).toContain(">28 February 2051</time>");
  for (const page of [path, `${path}/history`]) {
    const { text } = await open(page);
    expect(text, page).toMatch(/<time datetime="[^"]*Z">\d+ \w+ \d{4}, \d\d:\d\d(:\d\d)? (CET|CEST)<\/time>/);
    expect(text, page).not.toContain("UTC");
  }
  expect((await send("GET", `${api.url}/r/${code}`)).body.validUntil).toBe("2051-02-28T23:00:00.000Z");
});

it("the page of a voucher's chain describes each event, with its time, seal, hash and link", async () => {
  const { text } = await open(expertsPath(voucher.id));
  expect(text.match(/>Sealed</g)).toHaveLength(2);
  for (const part of [
    voucher.id,
    "</bdi> from <bdi>Brand",
    "<strong>Issued</strong>",
    "<strong>Redeemed</strong>",
    "The voucher was used at a checkout. It cannot be used again.",
    `class="record-hash copied">${hashes[0]}<`,
    `class="record-hash copied">${hashes[1]}<`,
    `class="previous-hash copied">${hashes[0]}<`,
    `class="previous-hash copied">${"0".repeat(64)}<`,
  ]) {
    expect(text).toContain(part);
  }
  expect(text).toMatch(
    /<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z">\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC<\/time>/,
  );
});

it("the page of a voucher's chain shows no payload, code, reference or actor", async () => {
  const text = (await open(expertsPath(voucher.id))).text + (await open(chainPath(voucher.id))).text;
  const said = JSON.parse(payloads[1] ?? "");
  const { nonce, redeemCode } = said.data;
  const { code } = voucher;
  const { organizationId } = partner;
  const secrets = [code, code.replaceAll("-", ""), REFERENCE, NOTE, said.actorConnectedId, nonce, redeemCode];
  for (const secret of [...secrets, organizationId]) {
    expect(String(secret).length).toBeGreaterThan(5);
    expect(text.toLowerCase()).not.toContain(String(secret).toLowerCase());
  }
});

it("the page of a voucher's chain shows an unsealed event as pending, without a hash", async () => {
  const { id } = await issue();
  await appendPending(servers.db, id, 1);
  const { text } = await open(expertsPath(id));
  expect(text).toContain("<strong>Claimed</strong>");
  expect(text.match(/>Pending</g)).toHaveLength(1);
  expect(text.match(/Not sealed yet/g)).toHaveLength(1);
  expect(text).toContain('class="verdict waiting"');
  expect(text).toContain("One entry is not sealed yet.");
  expect(text.match(/class="record-hash copied"/g)).toHaveLength(1);
});

it("a long chain is shown on several pages, each with the hash of the event before the page", async () => {
  const { id } = await issue();
  await appendPending(servers.db, id, 52);
  const numbers = (text: string) => [...text.matchAll(/class="number">(\d+)</g)].map(([, number]) => Number(number));
  const follow = (text: string, rel: string) =>
    new RegExp(`rel="${rel}" href="([^"]+)"`).exec(text)?.[1]?.replaceAll("&#38;", "&");

  const first = (await open(expertsPath(id))).text;
  expect(numbers(first)).toEqual(Array.from({ length: 50 }, (_, index) => index + 1));
  expect(first).not.toContain('id="before"');
  expect(follow(first, "prev")).toBeUndefined();

  const second = (await open(follow(first, "next") ?? "")).text;
  expect(numbers(second)).toEqual([51, 52, 53]);
  expect(second).toContain('id="before" data-sequence="50"');
  expect(follow(second, "next")).toBeUndefined();
  expect(numbers((await open(follow(second, "prev") ?? "")).text)).toEqual(numbers(first));

  const fromTwo = (await open(expertsPath(id, "?after=1&limit=2"))).text;
  expect(numbers(fromTwo)).toEqual([2, 3]);
  const { events } = JSON.parse((await open(chainPath(id, "?limit=1"), "*/*")).text);
  expect(fromTwo).toMatch(new RegExp(`id="before" data-sequence="1">.*>${events[0].recordHash}<`));

  const behind = (await open(expertsPath(id, "?after=900"))).text;
  expect(numbers(behind)).toEqual([]);
  expect(behind).toContain("There are no entries after number 900.");
});

it("an unknown voucher or entity type gets a 404, as a page or in JSON", async () => {
  for (const path of [
    chainPath("vch_none"),
    chainPath("%00"),
    chainPath("%3Cscript%3Ealert(1)%3C%2Fscript%3E"),
    `/integrity/events/Order/${voucher.id}`,
  ]) {
    const page = await open(path);
    expect([page.status, page.kind]).toEqual([404, "page"]);
    expect(page.text).toContain("No voucher has this id.");
    expect(page.text).toContain(page.headers.get("x-request-id"));
    expect(page.text).not.toMatch(/<script>|alert\(1\)/);
    expect(await open(path, "*/*")).toMatchObject({ status: 404, code: "entity_not_found" });
  }
});

it("without Postgres, the page of a voucher's chain reports the failure and when to try again", async () => {
  const port = await findSteadyPort();
  const DATABASE_URL = `postgres://unknown:a-secret@127.0.0.1:${port}/nowhere`;
  const alone = await startApiUnready(servers, { DATABASE_URL });
  const { status, headers, text, kind } = await open(chainPath(voucher.id), BROWSER, "GET", alone.url);
  expect([status, kind]).toEqual([503, "page"]);
  expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  expect(text).toContain("Temporarily unavailable");
  expect(text).not.toMatch(/ECONN|nowhere|secret/);
});

it("the page of a voucher's chain answers a wrong `after` or `limit` with 400, and names the field", async () => {
  for (const query of ["?after=-1", "?limit=0", "?limit=1001", "?after=%3Cb%3E", "?after=1&after=2"]) {
    const { status, kind, text } = await open(expertsPath(voucher.id, query));
    expect([status, kind], query).toEqual([400, "page"]);
    expect(text).toMatch(/(after|limit) must be a whole number/);
  }
});

it("the start page and its JSON link to documents and readiness, and without OPS_TOKEN to no console", async () => {
  const { text } = await open("/");
  for (const path of ["/docs", "/openapi.json", "/readyz"]) expect(text).toContain(`href="${path}"`);
  expect(text).not.toContain("/ops/");
  expect(JSON.parse((await open("/", "*/*")).text)).toEqual({
    name: "Partner Voucher API",
    docs: "https://vouchers.test/docs",
    guide: "https://vouchers.test/docs/guide",
    openapi: "https://vouchers.test/openapi.json",
    health: "https://vouchers.test/healthz",
    readiness: "https://vouchers.test/readyz",
  });
});

it("all links on pages begin with the path of BASE_URL", async () => {
  const behindPath = { BASE_URL: "https://vouchers.test/api", OPS_TOKEN: "a token for operators" };
  const { url } = await startApi(servers, behindPath);
  for (const path of [
    "/",
    "/check",
    "/nowhere",
    "/docs",
    "/ops/queues",
    chainPath(voucher.id),
    chainPath("vch_none"),
  ]) {
    const { text } = await open(path, BROWSER, "GET", url);
    const found = text.matchAll(/(?:href|src|action|data-description)="(\/[^"]*)"/g);
    const addresses = Array.from(found, ([, address]) => address);
    expect(addresses.length).toBeGreaterThan(3);
    for (const address of addresses) expect(address).toMatch(/^\/api\//);
    if (path === "/") expect(addresses).toContain("/api/ops/queues");
  }
});

it("the marketplace's page has the same listings as GET /marketplace/listings, with names escaped", async () => {
  for (let one = 1; one <= 3; one += 1) {
    const offer = await makeOffer(servers.db, one, { audience: one === 3 ? "ReferrerOnly" : "OpenToAll" });
    await servers.db.query("UPDATE products SET name = $2 WHERE id = $1", [offer.productId, `<i>"${one}"\u202e`]);
  }
  const seen: string[] = [];
  for (let path: string | undefined = "/marketplace/listings?limit=2"; path !== undefined; ) {
    const { listings } = JSON.parse((await open(path, "*/*")).text);
    const { status, headers, text, kind } = await open(path);
    expect([status, kind]).toEqual([200, "page"]);
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

it("an unknown address answers 404 with a page for browsers and with JSON for programs", async () => {
  for (const path of ["/nowhere", "/partner", "/r/a/b", "/%00", "/<script>"]) {
    const { status, kind, text, headers } = await open(path);
    expect([status, kind, headers.get("vary")], path).toEqual([404, "page", "Accept, Accept-Language"]);
    expect(text).toContain("<h1>Page not found</h1>");
    expect(text).toContain('<a href="/">');
    expect(text).not.toContain("<script>");
    for (const accept of [null, "*/*", "application/json"])
      expect(await open(path, accept), path).toMatchObject({ status: 404, code: "not_found" });
  }
});

const check = (entered: string, accept: string | null = BROWSER) =>
  open("/check", accept, "POST", api.url, new URLSearchParams({ voucher: entered }));

it("the voucher field accepts an id or a verify link, and leads to the voucher's history", async () => {
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

it("the voucher field keeps an invalid text and explains the problem", async () => {
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
    expect(await check(entered, "*/*")).toMatchObject({ status: 400, code: "invalid_request" });
  }
  expect((await check("A1-B2")).text).toContain('value="A1-B2"');
});

it("the start page and /check have a field for the voucher to check", async () => {
  for (const path of ["/", "/check"]) {
    const { status, text } = await open(path);
    expect(status).toBe(200);
    expect(text).toContain('action="/check" method="post"');
    expect(text).not.toContain("This is neither");
  }
});

it("/check ignores its query, so a link with a code shows an empty field", async () => {
  const json = JSON.stringify({ voucher: voucher.code });
  for (const answer of [
    await open(`/check?voucher=${voucher.code}`),
    await open(`/check?voucher=${voucher.id}`),
    await open(`/check?voucher=${voucher.code}`, BROWSER, "POST"),
    await open("/check", BROWSER, "POST", api.url, new URLSearchParams([..."ab"].map((text) => ["voucher", text]))),
    await open("/check", BROWSER, "POST", api.url, json),
  ]) {
    expect({ status: answer.status, location: answer.headers.get("location") }).toEqual({
      status: 200,
      location: null,
    });
    expect(answer.text).toContain('name="voucher" type="text" value=""');
    expect(answer.text).not.toContain(voucher.code);
  }
  const long = await open("/check", BROWSER, "POST", api.url, new URLSearchParams({ voucher: "x".repeat(20_000) }));
  expect([long.status, long.kind]).toEqual([413, "page"]);
});

it("no form of the pages puts a typed text into a URL", () => {
  const forms = globSync("src/**/*.ts").flatMap((file) =>
    Array.from(readFileSync(file, "utf8").matchAll(/<form\b.*?<\/form>/gs), ([form]) => form),
  );
  expect(forms.length).toBeGreaterThan(8);
  const inUrl = forms.filter((form) => !/^<form\b[^>]* method="post"/.test(form));
  const fields = inUrl.flatMap((form) => form.match(/<(?:input|textarea|select)\b[^>]*\bname="[^>]*/g) ?? []);
  expect(fields.length).toBeGreaterThan(0);
  for (const field of fields) expect(field).toMatch(/^<select\b|\btype="(?:date|month|hidden)"/);
});

it("a referrer's link in a browser shows the offer, a preview and how to claim", async () => {
  const offer = await makeOffer(servers.db, 1, { audience: "ReferrerOnly" });
  const { code } = await makeReferral(servers.db, offer);
  const { status, kind, headers, text } = await open(`/r/${code}`);
  expect([status, kind, headers.get("vary")]).toEqual([200, "page", "Accept, Accept-Language"]);
  for (const words of [
    "Pass from Brand",
    "$50.00",
    "Length of the benefit",
    "6 months",
    "Available",
    "Use it by",
    `/r/${code}/claim`,
  ]) {
    expect(text).toContain(words);
  }
  expect(text).not.toContain(offer.vouchers[0]?.code);
  expect(text).toMatch(/<meta property="og:title" content="Pass from Brand \d+">/);
  expect(text).toMatch(/<meta property="og:description" content="A free voucher for Pass from Brand \d+\.">/);
  expect(text).toContain(`<meta property="og:url" content="https://vouchers.test/r/${code}">`);
});

it.each([
  ["page", [BROWSER, null, "*/*", "text/*", "image/png", "text/html, application/json", "application/json;q=0.5, */*"]],
  [
    "JSON",
    ["application/json", "application/json, text/plain, */*", "application/*", "text/html;q=0.5, application/json"],
  ],
])("a referrer's link returns the %s, even for errors, for these Accept headers: %s", async (what, accepts) => {
  const { code } = await makeReferral(servers.db, await makeOffer(servers.db, 1));
  for (const accept of accepts) {
    for (const [path, status] of [
      [`/r/${code}`, 200],
      ["/r/none", 404],
    ] as const) {
      const answer = await open(path, accept);
      const vary = what === "page" || status === 404 ? "Accept, Accept-Language" : "Accept";
      expect([answer.status, answer.kind, answer.headers.get("vary")], String(accept)).toEqual([status, what, vary]);
    }
  }
  const head = await open(`/r/${code}`, accepts[0], "HEAD");
  expect([head.status, head.kind, head.text]).toEqual([200, what, ""]);
});

it("a referrer's link as JSON shows which offer a claim by the link would get", async () => {
  const validUntil = new Date("2051-03-01T12:00:00Z");
  const offer = await makeOffer(servers.db, 2, { audience: "ReferrerOnly", validUntil });
  await offerBatch(servers.db, offer, 3, { validUntil: new Date("2052-03-01T12:00:00Z") });
  await offerBatch(servers.db, offer, 4, { windows: {} });
  const { code } = await makeReferral(servers.db, offer);
  const read = async (linkCode: string) => (await send("GET", `${api.url}/r/${linkCode}`)).body;
  expect(await read(code)).toEqual({
    code,
    brand: expect.stringMatching(/^Brand /),
    productName: "Pass",
    productKey: expect.any(String),
    retailPriceUsd: 50,
    priceUsd: 40.25,
    available: 5,
    validUntil: validUntil.toISOString(),
    canClaim: true,
    url: `https://vouchers.test/r/${code}`,
  });
  const later = await makeOffer(servers.db, 1, { windows: { claim: { opensAt: inSeconds(900), closesAt: null } } });
  const { code: early } = await makeReferral(servers.db, later);
  const none = { available: 0, validUntil: null, canClaim: false };
  expect(await read(early)).toMatchObject({ code: early, ...none });
  const single = await makeOffer(servers.db, 1);
  const { code: soldOut } = await makeReferral(servers.db, single);
  await reservationVouchers(servers.db, [single.vouchers[0]?.id ?? ""], inSeconds(900));
  expect(await read(soldOut)).toMatchObject({ code: soldOut, ...none });
});

it("a referrer's link as a page leads to STOREFRONT_URL with the link's code", async () => {
  const { code } = await makeReferral(servers.db, await makeOffer(servers.db, 1));
  const { text } = await open(`/r/${code}`);
  expect(text).not.toContain('class="button"');
  const withShop = await startApi(servers, { STOREFRONT_URL: "https://shop.test/claim?link={code}&from={code}" });
  const page = await open(`/r/${code}`, BROWSER, "GET", withShop.url);
  const href = `https://shop.test/claim?link=${code}&#38;from=${code}`;
  expect(page.text).toContain(`<a class="button" href="${href}">Continue to shop.test</a>`);
  for (const path of ["/r/none", chainPath("vch_none")]) {
    const [seen] = (await open(path, BROWSER, "GET", withShop.url)).text.split("<summary>For experts</summary>");
    expect(seen).toContain('<p><a href="https://shop.test/">Continue to shop.test</a></p>');
    for (const dead of [seen, (await open(path)).text.split("<summary>For experts</summary>")[0]])
      expect(dead, path).not.toMatch(/href="\/(docs[^"]*)?"/);
  }
  const { text: ofVoucher } = await open(chainPath(voucher.id), BROWSER, "GET", withShop.url);
  expect(ofVoucher).toMatch(
    /please contact <bdi>Brand \d+<\/bdi> \(<a href="https:\/\/shop\.test\/">shop\.test<\/a>\)/,
  );
  for (const shown of [text, page.text]) {
    const [first = "", forExperts = ""] = shown.split("<summary>For experts</summary>");
    for (const technical of ["curl", "USER_TOKEN"]) {
      expect(first).not.toContain(technical);
      expect(forExperts).toContain(technical);
    }
  }
});

it("a referrer's link in a browser shows the validUntil of the next voucher, not of an empty batch", async () => {
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

it("a referrer's link in a browser says if no voucher is left or the batch's window is closed", async () => {
  const offer = await makeOffer(servers.db, 1);
  const { code } = await makeReferral(servers.db, offer);
  await reservationVouchers(servers.db, [offer.vouchers[0]?.id ?? ""], inSeconds(900));
  const soldOut = (await open(`/r/${code}`)).text;
  for (const words of ["No vouchers are left at the moment.", "please contact <bdi>Brand"])
    expect(soldOut).toContain(words);
  expect(soldOut).not.toMatch(/How to claim|you get a free voucher/);
  const later = await makeOffer(servers.db, 1, { windows: { claim: { opensAt: inSeconds(900), closesAt: null } } });
  const closed = (await open(`/r/${(await makeReferral(servers.db, later)).code}`)).text;
  expect(closed).toContain("This offer is not open at the moment.");
  expect(closed).not.toContain("Use it by");
});

it("a referrer's link in a browser is 404 for an unknown code or an inactive contract", async () => {
  const offer = await makeOffer(servers.db, 1);
  const { code: over } = await makeReferral(servers.db, offer, "Active", new Date(Date.now() - 1_000));
  const { code: ended } = await makeReferral(servers.db, offer, "Ended");
  const { code: offered } = await makeReferral(servers.db, offer, "Offered");
  for (const path of [`/r/${over}`, `/r/${ended}`, `/r/${offered}`, "/r/none", "/r/%00", `/r/${"x".repeat(500)}`]) {
    const { status, kind, text, headers } = await open(path);
    expect([status, kind], path).toEqual([404, "page"]);
    const [first = "", forExperts] = text.split("<summary>For experts</summary>");
    for (const words of ["<h1>This link does not work</h1>", "This link is invalid or has expired. Ask for a new one."])
      expect(first).toContain(words);
    expect(first).not.toMatch(/API reference|404/);
    expect(forExperts).toContain(headers.get("x-request-id"));
    expect(first.includes("please contact <bdi>Brand"), path).toBe(/^\/r\/\w{12}$/.test(path));
  }
});

/** Opens an address of the service, by default with a browser's Accept header. */
async function open(
  path: string,
  accept: string | null = BROWSER,
  method = "GET",
  url = api.url,
  body: URLSearchParams | string | null = null,
) {
  // Without a header, fetch sends Accept: */*.
  const headers: Record<string, string> = accept === null ? {} : { accept };
  const response = await fetch(`${url}${path}`, { method, headers, body, redirect: "manual" });
  const type = response.headers.get("content-type") ?? "";
  const kind = { "text/html; charset=utf-8": "page", "application/json; charset=utf-8": "JSON" }[type] ?? type;
  const text = await response.text();
  const code: string = kind === "JSON" && text !== "" ? JSON.parse(text).code : "";
  return { status: response.status, headers: response.headers, text, kind, code };
}
