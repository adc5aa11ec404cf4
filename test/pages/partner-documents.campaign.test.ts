import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { REFERENCE } from "../../src/open/endpoints.ts";
import { allDocuments, DOCUMENTS as OF_CORE, renderDocument, type ServedDocument } from "../../src/pages/documents.ts";
import { useService } from "../support/use-service.ts";

const { api, startApi } = useService({ workers: [] });

const DOCUMENTS = allDocuments(REFERENCE.documents);
const PAGES = DOCUMENTS.filter(({ sentAs }) => sentAs === null);

it("the documents for partners are pages that link to each other and load only the service's files", async () => {
  for (const { path, text: source } of PAGES) {
    const { status, type, headers, text, addresses } = await open(path);
    expect({ path, status, type }).toEqual({ path, status: 200, type: "text/html; charset=utf-8" });
    expect(headers.get("content-security-policy")).toMatch(/^default-src 'none';script-src 'self';style-src 'self';/);
    expect(text).toMatch(/^<!doctype html>.*<title>[^<]{5,} · Partner Voucher API<\/title>.*<h1 /s);
    expect(text, path).not.toMatch(/<style|style=|\son\w+=|javascript:/i);
    expect(text, path).not.toMatch(/<script(?! type="module" src="\/assets\/)/i);
    expect(text, path).not.toMatch(/<img(?![^>]* src="\/(assets|docs\/images)\/)/i);
    expect(text.match(/<link[^>]*href="(?!\/assets\/)/g)).toBeNull();
    expect(PAGES.filter((other) => !addresses.includes(other.path))).toEqual([]);
    expect(source.trim().split(/\s+/).length, path).toBeGreaterThan(100);
  }
});

it("the list of documents beside each document names all documents", () => {
  const files = globSync("**/*.md", { cwd: "docs" });
  expect(PAGES.map(({ name }) => name).toSorted()).toEqual(files.toSorted());
});

it.each([
  ["when to retry", "/docs/retries"],
  ["restor", "/docs/backup"],
  ["VouchersLogLag", "/docs/runbook/log#vouchersloglag"],
  ["otherVoucher", "/docs/guide#a-reference-that-was-used-before"],
])("the search of the documents finds %s, and links to %s", async (words, address) => {
  const { status, addresses, text } = await search(words);
  expect(status).toBe(200);
  expect(addresses).toContain(address);
  expect(text).toContain("<mark>");
});

it("the search of the documents says if it finds nothing, and shows the query as text", async () => {
  expect((await search("<b>zzzzqqq")).text).toMatch(/Nothing was found for “<bdi>&#60;b&#62;zzzzqqq<\/bdi>”/);
  for (const odd of ["", "   ", "\0", "$^+|(", "x".repeat(10_000)]) expect((await search(odd)).status).toBe(200);
  expect((await open("/docs/search?q=retry")).text).not.toContain("<mark>");
});

it("the documents for partners show the service's own address in examples", async () => {
  const { text } = await open("/docs/guide");
  expect(text).toContain(`API=${api.ctx.config.baseUrl} `);
  expect(text).not.toContain("https://vouchers.example.com");
});

it("a document's link to a document of an absent wing becomes plain text, and other links stay", async () => {
  const served = DOCUMENTS.map(({ name }) => name);
  for (const { name, path, text } of PAGES)
    for (const [, file = ""] of text.matchAll(/\]\((?!https?:)([\w./-]+\.md)/g)) {
      const target = join(dirname(name), file);
      if (!target.startsWith("..")) expect(served, `${path} links to ${file}`).toContain(target);
    }
  const guide = OF_CORE.find(({ path }) => path === "/docs/guide");
  const { markup } = await renderDocument(api.ctx.config, guide as ServedDocument, OF_CORE);
  expect(guide?.text).toMatch(/\]\(webhooks\.md/);
  expect(markup).not.toMatch(/href=""|webhooks/);
  expect(markup).toContain('href="/docs/errors"');
});

it("the documents for partners link only to existing addresses and headings", async () => {
  const opened = new Map<string, ReturnType<typeof open>>();
  const openOnce = (path: string) => {
    const page = opened.get(path) ?? open(path);
    opened.set(path, page);
    return page;
  };
  for (const { path } of PAGES) {
    const links = (await openOnce(path)).addresses.filter((address) => !address.startsWith("https://"));
    expect(links.length).toBeGreaterThan(5);
    for (const link of new Set(links)) {
      const [target = "", anchor] = link.split("#");
      const { status, text } = await openOnce(target === "" ? path : target);
      expect({ path, link, status }).toEqual({ path, link, status: 200 });
      if (anchor !== undefined && anchor !== "main") expect(text, `${path}: ${link}`).toContain(`id="${anchor}"`);
    }
  }
});

it.each([
  ["/docs/guide", ["when-to-retry"]],
  ["/docs/guide", ["a-client", "settling-a-day", "keeping-receipts", "verifying-a-vouchers-history", "keys", "limits"]],
  ["/docs/proof", ["the-chain-of-a-voucher", "the-rules", "verify-a-chain"]],
  ["/docs/webhooks", ["receivers"]],
])("the documents for partners keep the addresses of moved sections: %s", async (path, anchors) => {
  const { text } = await open(path);
  for (const anchor of anchors) expect(text).toContain(`<a id="${anchor}"></a>`);
});

it("the documents for partners show the checkout's diagram as a picture and a list, without scripts", async () => {
  const { text } = await open("/docs/guide");
  const [, address = "", list = ""] = /<img src="(\/docs\/[^"]+)".*?<ol>(.*?)<\/ol>/s.exec(text) ?? [];
  const picture = await open(address);
  expect(picture.type).toMatch(/^image\/svg\+xml/);
  const messages = Array.from(list.matchAll(/<strong>.*?<\/strong> (.*?)(?=\n|<)/g), ([, message = ""]) => message);
  const drawn = Array.from(picture.text.matchAll(/<text [^>]*>(.*?)<\/text>/g), ([, line]) => line).join(" ");
  expect(picture.text.match(/<path class="(call|answer)"/g)).toHaveLength(messages.length - 1);
  for (const message of messages) expect(drawn).toContain(message);
});

it.each([
  "/docs/guide",
  "/docs/clients",
])("the documents for partners show code with highlighting, but otherwise unchanged: %s", async (path) => {
  const { text } = await open(path);
  const source = DOCUMENTS.find((one) => one.path === path)?.text ?? "";
  const snippets = Array.from(
    source.matchAll(/^```(?:bash|js|python|php|ts)\n(.*?)\n```$/gms),
    ([, code = ""]) => code,
  );
  const shown = Array.from(text.matchAll(/<pre><code>(.*?)<\/code><\/pre>/gs), ([, code = ""]) => code);
  const characters: Record<string, string> = { lt: "<", gt: ">", quot: '"', amp: "&", "#x27": "'" };
  const plain = shown.map((code) =>
    code
      .replaceAll(/<span class="hljs-[\w ]+">|<\/span>/g, "")
      .replaceAll(/&(lt|gt|quot|amp|#x27);/g, (_, name: string) => characters[name] ?? ""),
  );
  expect(snippets.length).toBeGreaterThan(0);
  // The programs that are no snippets must be the contents of the tabs for other languages.
  const programs = plain.filter((code) => !snippets.includes(code));
  expect(plain.filter((code) => !programs.includes(code))).toEqual(snippets);
  const files = ["checkout.py", "checkout.php"].map((name) => readFileSync(`docs/${name}`, "utf8"));
  expect(programs).toEqual(path === "/docs/clients" ? files : []);
  for (const code of shown) expect(code).toContain('<span class="hljs-');
});

it("the API reference, the start page and every page's header link to the documents for partners", async () => {
  for (const path of ["/docs", "/docs/errors"]) expect((await open(path)).addresses).toContain("/docs/guide");
  const start = await read(await fetch(api.url, { headers: { accept: "text/html" } }));
  expect(start.addresses.filter((address) => address === "/docs/guide")).toHaveLength(2);
});

it("links in the documents for partners begin with the path of BASE_URL", async () => {
  const { url } = await startApi({ BASE_URL: "https://vouchers.test/api" });
  // One function makes the links of all documents. The second document is in a folder.
  for (const path of ["/docs/guide", "/docs/runbook/log"]) {
    const own = (await open(path, url)).addresses.filter((address) => address.startsWith("/"));
    expect(own.length).toBeGreaterThan(4);
    for (const address of own) expect(address).toMatch(/^\/api\//);
  }
});

it.each([
  "/openapi.json",
  "/docs/chain-vectors.json",
])("%s is JSON, is compressed, and is not sent again to a caller that has a valid copy", async (path) => {
  const first = await fetch(api.url + path, { headers: { "accept-encoding": "gzip" } });
  const etag = first.headers.get("etag") ?? "";
  expect(Object.keys((await first.json()) as object).length).toBeGreaterThan(1);
  const headers = ["content-type", "content-encoding"].map((name) => first.headers.get(name));
  expect([first.status, ...headers]).toEqual([200, "application/json; charset=utf-8", "gzip"]);
  const again = await fetch(api.url + path, { headers: { "if-none-match": etag, "cache-control": "max-age=0" } });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

it("crawlers may read the documents, but no page of a voucher", async () => {
  expect((await open("/robots.txt")).text).toMatch(/^User-agent: \*\n(Allow: \S+\n)+Disallow: \/\n$/);
});

it("security.txt names SECURITY_CONTACT and expires in half a year, and is 404 without that variable", async () => {
  const path = "/.well-known/security.txt";
  expect((await open(path)).status).toBe(404);
  const { url } = await startApi({ SECURITY_CONTACT: "mailto:security@shop.example" });
  const [contact, expires = "", canonical] = (await open(path, url)).text.split("\n");
  expect(contact).toBe("Contact: mailto:security@shop.example");
  const days = (Date.parse(expires.replace("Expires: ", "")) - Date.now()) / 86_400_000;
  expect(Math.round(days)).toBe(180);
  expect(canonical).toMatch(/^Canonical: http.*security\.txt$/);
});

const search = (q: string) => open("/docs/search", api.url, { method: "POST", body: new URLSearchParams({ q }) });

async function open(path: string, url = api.url, init: RequestInit = {}) {
  const response = await fetch(url + path, init);
  return { status: response.status, type: response.headers.get("content-type"), ...(await read(response)) };
}

/** Returns a response's text and headers, and every address that it loads or links to. */
async function read(response: Response) {
  const text = await response.text();
  const addresses = Array.from(text.matchAll(/(?:href|src)="([^"]+)"/g), ([, address = ""]) => address);
  return { headers: response.headers, text, addresses };
}
