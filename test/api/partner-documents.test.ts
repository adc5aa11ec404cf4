import { describe, expect, it } from "vitest";
import { DOCUMENTS } from "../../src/http/pages/documents.ts";
import { startApi } from "../support/service.ts";
import { useService } from "../support/use-service.ts";

const { api, servers } = useService({ workers: [] });

const PAGES = DOCUMENTS.filter(({ sentAs }) => sentAs === null).map(({ path }) => path);

async function open(path: string, url = api.url) {
  const response = await fetch(url + path);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Every address that a page loads or links to. */
function addressesOf(text: string): string[] {
  return [...text.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, address = ""]) => address);
}

describe("the documents for partners", () => {
  it.each(
    PAGES,
  )("the documents for partners are served as pages that load nothing from elsewhere and have no inline style or script: %s", async (path) => {
    const { status, headers, text } = await open(path);
    expect({ status, type: headers.get("content-type") }).toEqual({ status: 200, type: "text/html; charset=utf-8" });
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none';script-src 'self';style-src 'self';/);
    expect(text).toMatch(/^<!doctype html>.*<title>[^<]{5,} · Partner Voucher API<\/title>.*<h1 /s);
    expect(text).not.toMatch(
      /<style|style=|<script(?! type="module" src="\/assets\/)|<img(?![^>]* src="\/(assets|docs\/images)\/)|\son\w+=|javascript:/i,
    );
    expect(text.match(/<link[^>]*href="(?!\/assets\/)/g)).toBeNull();
  });

  it("the documents for partners show the service's own address instead of an example", async () => {
    const { text } = await open("/docs/guide");
    expect(text).toContain(`API=${api.ctx.config.baseUrl} `);
    expect(text).not.toContain("https://vouchers.example.com");
  });

  it.each(
    PAGES,
  )("the documents for partners link only to addresses that exist, and to headings that exist: %s", async (path) => {
    const links = addressesOf((await open(path)).text).filter((address) => !address.startsWith("https://"));
    expect(links.length).toBeGreaterThan(5);
    for (const link of new Set(links)) {
      const [target = "", anchor] = link.split("#");
      const { status, text } = await open(target === "" ? path : target);
      expect({ link, status }).toEqual({ link, status: 200 });
      if (anchor !== undefined && anchor !== "main") expect(text, link).toContain(`id="${anchor}"`);
    }
  });

  it.each(PAGES)("the documents for partners have at most 1 500 words: %s", (path) => {
    const { text = "" } = DOCUMENTS.find((one) => one.path === path) ?? {};
    const words = text.trim().split(/\s+/).length;
    expect(words).toBeGreaterThan(100);
    expect(words).toBeLessThanOrEqual(1_500);
  });

  it.each([
    [
      "/docs/guide",
      ["a-client", "settling-a-day", "keeping-receipts", "verifying-a-vouchers-history", "keys", "limits"],
    ],
    ["/docs/proof", ["the-chain-of-a-voucher", "the-rules", "verify-a-chain"]],
    ["/docs/webhooks", ["receivers"]],
  ])("the documents for partners keep the addresses of sections that have moved to another page: %s", async (path, anchors) => {
    const { text } = await open(path);
    for (const anchor of anchors) expect(text).toContain(`<a id="${anchor}"></a>`);
  });

  it("the documents for partners are all listed on every page", async () => {
    for (const path of PAGES) {
      const own = addressesOf((await open(path)).text);
      expect(PAGES.filter((other) => !own.includes(other))).toEqual([]);
    }
  });

  it("the documents for partners show the checkout's diagram as a picture and as a list of its messages, without a script", async () => {
    const { text } = await open("/docs/guide");
    const [, address = "", list = ""] = /<img src="(\/docs\/[^"]+)".*?<ol>(.*?)<\/ol>/s.exec(text) ?? [];
    const picture = await open(address);
    expect(picture.headers.get("content-type")).toMatch(/^image\/svg\+xml/);
    const messages = Array.from(list.matchAll(/<strong>.*?<\/strong> (.*?)(?=\n|<)/g), ([, message = ""]) => message);
    const drawn = Array.from(picture.text.matchAll(/<text [^>]*>(.*?)<\/text>/g), ([, line]) => line).join(" ");
    expect(picture.text.match(/<path class="(call|answer)"/g)).toHaveLength(messages.length - 1);
    for (const message of messages) expect(drawn).toContain(message);
  });

  it.each([
    "/docs/guide",
    "/docs/clients",
  ])("the documents for partners keep their highlighted code as it is written: %s", async (path) => {
    const { text } = await open(path);
    const source = DOCUMENTS.find((one) => one.path === path)?.text ?? "";
    const snippets = Array.from(
      source.matchAll(/^```(?:bash|js|python|php|ts)\n(.*?)\n```$/gms),
      ([, code = ""]) => code,
    );
    const shown = Array.from(text.matchAll(/<pre><code>(.*?)<\/code><\/pre>/gs), ([, code = ""]) => code);
    const plain = shown.map((code) =>
      code
        .replaceAll(/<span class="hljs-[\w ]+">|<\/span>/g, "")
        .replaceAll(
          /&(lt|gt|quot|amp|#x27);/g,
          (_, name: string) => ({ lt: "<", gt: ">", quot: '"', amp: "&" })[name] ?? "'",
        ),
    );
    expect(snippets.length).toBeGreaterThan(1);
    expect(plain).toEqual(snippets);
    for (const code of shown) expect(code).toContain('<span class="hljs-');
  });

  it("the documents for partners come with the test vectors as JSON", async () => {
    const { status, headers, text } = await open("/docs/chain-vectors.json");
    expect({ status, type: headers.get("content-type") }).toEqual({
      status: 200,
      type: "application/json; charset=utf-8",
    });
    expect(JSON.parse(text).broken.length).toBeGreaterThan(10);
  });

  it("the documents for partners are linked from the reference, the start page and every page's head", async () => {
    for (const path of ["/docs", "/docs/errors"]) expect((await open(path)).text).toContain('href="/docs/guide"');
    const start = await fetch(api.url, { headers: { accept: "text/html" } });
    expect((await start.text()).match(/href="\/docs\/guide"/g)).toHaveLength(2);
  });

  it("the documents for partners link below the path of BASE_URL", async () => {
    const elsewhere = await startApi(servers, { BASE_URL: "https://vouchers.test/api" });
    for (const path of PAGES) {
      const own = addressesOf((await open(path, elsewhere.url)).text).filter((address) => address.startsWith("/"));
      expect(own.length).toBeGreaterThan(4);
      for (const address of own) expect(address).toMatch(/^\/api\//);
    }
  });
});

it.each([
  "/openapi.json",
  "/docs/chain-vectors.json",
])("%s is compressed, and sent once to a caller that keeps it", async (path) => {
  const first = await fetch(api.url + path, { headers: { "accept-encoding": "gzip" } });
  const etag = first.headers.get("etag") ?? "";
  await first.text();
  expect([first.status, first.headers.get("content-encoding")]).toEqual([200, "gzip"]);
  const again = await fetch(api.url + path, { headers: { "if-none-match": etag, "cache-control": "max-age=0" } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

it("a crawler may read the documents and no voucher's page", async () => {
  expect((await open("/robots.txt")).text).toBe("User-agent: *\nAllow: /$\nAllow: /docs\nDisallow: /\n");
});

it("security.txt names SECURITY_CONTACT for half a year, and does not exist without it", async () => {
  const path = "/.well-known/security.txt";
  expect((await open(path)).status).toBe(404);
  const named = await startApi(servers, { SECURITY_CONTACT: "mailto:security@shop.example" });
  const { text } = await open(path, named.url);
  const [contact, expires = "", canonical] = text.split("\n");
  expect(contact).toBe("Contact: mailto:security@shop.example");
  const days = (Date.parse(expires.replace("Expires: ", "")) - Date.now()) / 86_400_000;
  expect(Math.round(days)).toBe(180);
  expect(canonical).toMatch(/^Canonical: http.*security\.txt$/);
});
