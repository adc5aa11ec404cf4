import { readFileSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { changeBrand } from "../../src/acts/brand/change.ts";
import { readPicture } from "../../src/acts/picture.ts";
import { REFERENCE } from "../../src/open/endpoints.ts";
import { allDocuments } from "../../src/pages/documents.ts";
import { DESCRIPTION } from "../support/api-description.ts";
import { expectSound, follow, LOOKS, photograph, useBrowser } from "../support/browser.ts";
import { readSnippets } from "../support/document-snippets.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { signUser } from "../support/user-tokens.ts";

const PORT = String(await findSteadyPort());
const OPS_TOKEN = "the token of the operators";
/** The reference page sends requests only to BASE_URL. */
const env = { PORT, BASE_URL: `http://127.0.0.1:${PORT}`, OPS_TOKEN };
const { api, db, issue, issuer, keys } = useService({ apis: [env], workers: [], users: true });
const visit = useBrowser();
const DOCUMENTS = allDocuments(REFERENCE.documents);
const PAGES = DOCUMENTS.filter(({ sentAs }) => sentAs === null).map(({ path }) => path);

describe.each(LOOKS)("on a %s", (look, options) => {
  // All documents have the same page frame, so the test opens only some of them in every variant.
  const own = PAGES.filter((_, at) => LOOKS[at % LOOKS.length]?.[0] === look);
  const paths = new Set(["/", "/docs/guide", "/docs/clients", "/docs/search", ...own]);
  it("every document passes axe, does not overflow and keeps its content security policy", async () => {
    // One page for all, because each new page starts processes of the browser.
    const visited = await visit("about:blank", options);
    for (const path of paths) {
      await visited.page.goto(api.url + path);
      expect(await visited.page.getByRole("heading", { level: 1 }).count(), path).toBe(1);
      const cut = "[...document.images].filter((image) => image.width > image.parentElement.clientWidth).length";
      expect(await visited.page.evaluate(cut), path).toBe(0);
      const wide =
        "[...document.querySelectorAll('.document .scroll')].filter((part) => part.scrollWidth > part.clientWidth)";
      expect(await visited.page.evaluate(`innerWidth < 640 && ${wide}.length > 0`), path).toBe(false);
      await expectSound(visited, `${path.replace("/docs/", "")}, ${look}`);
    }
  });

  it("the voucher field on a page shows the problem of an invalid text beside the field, and passes axe", async () => {
    const visited = await visit(`${api.url}/check`, options);
    const requested: string[] = [];
    visited.page.on("request", (request) => requested.push(request.url()));
    const field = visited.page.getByLabel("Verify link or voucher id");
    await field.fill("7Q4K-9MZX-2HTB-W8RC");
    await field.press("Enter");
    await visited.page.getByRole("alert").waitFor();
    expect(requested).toContain(`${api.url}/check`);
    expect([...requested, visited.page.url()].join()).not.toContain("7Q4K");
    expect(await field.inputValue()).toBe("7Q4K-9MZX-2HTB-W8RC");
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    expect(await visited.page.getByRole("alert").innerText()).toContain("A voucher's code cannot be checked here");
    // The browser's console reports the page's status 400.
    await expectSound(visited, `check, ${look}`, "400");
  });

  it("an unknown address shows a page that links to the start page and passes axe", async () => {
    const visited = await visit(`${api.url}/nowhere`, options);
    expect(visited.status).toBe(404);
    await expectSound(visited, `unknown address, ${look}`, "404");
    await visited.page.getByRole("link", { name: "Go to the start page" }).click();
    await visited.page.waitForURL(`${api.url}/`);
  });

  it("customers' pages fit 360 px with long names and a brand's logo, and pass axe", async () => {
    const offer = await makeOffer(db, 2);
    const { code } = await makeReferral(db, offer);
    const { rows } = await db.query("SELECT brand_id AS brand FROM products WHERE id = $1", [offer.productId]);
    const logo = readPicture(readFileSync("docs/images/portal.png", "base64"));
    await changeBrand.run(provisioning(db), rows[0].brand, { logo, removeLogo: false, colour: "#ffd500" });
    await db.query("UPDATE brands SET name = $2 WHERE id = $1", [rows[0].brand, `Café ${"W".repeat(60)}`]);
    await db.query("UPDATE products SET name = $2 WHERE id = $1", [offer.productId, `Pass ${"M".repeat(60)}`]);
    const voucher = `/integrity/events/VoucherInstance/${offer.vouchers[0]?.id}`;
    const narrow = { ...options, ...(look.startsWith("phone") && { viewport: { width: 360, height: 740 } }) };
    const { code: dead } = await makeReferral(db, offer, "Ended");
    const visited = await visit("about:blank", narrow);
    for (const path of [`/r/${code}`, `/r/${dead}`, voucher, `${voucher}/history`, "/marketplace/listings", "/check"]) {
      await visited.page.goto(api.url + path);
      if (path === voucher || path.startsWith("/r/")) {
        expect(await visited.page.evaluate("document.querySelector('.face .logo').naturalWidth")).toBeGreaterThan(0);
      }
      // The browser's console reports the status of the page for an ended link.
      await expectSound(visited, `customers, ${path.replace(/(vch_)?\w{12,32}/, "x")}, ${look}`, "404");
    }
  });

  it("the API reference page shows its operations, does not overflow and passes axe", async () => {
    const visited = await visit(`${api.url}/docs`, options);
    const tags = visited.page.locator(".opblock-tag");
    await tags.first().waitFor();
    await photograph(visited.page, `docs, ${look}`);
    // Renders the operations at one width only, because this takes seconds and gives the same at each width.
    if (look.startsWith("desktop")) {
      for (const tag of await tags.all()) await tag.click();
      const paths = visited.page.locator(".opblock-summary-path");
      const shown = await paths.evaluateAll((found) => found.map((path) => path.getAttribute("data-path")));
      const described = Object.entries({ ...DESCRIPTION.paths, ...DESCRIPTION.webhooks }).flatMap(([path, item]) =>
        Object.keys(item ?? {}).map(() => path),
      );
      expect(shown.toSorted()).toEqual(described.toSorted());
    }
    expect(await visited.page.locator("#elsewhere").isVisible()).toBe(false);
    await openOperation(visited.page, "Partner", "redeemVoucher");
    await expectSound(visited, `docs, redeem, ${look}`);
    expect(visited.page.url()).toBe(`${api.url}/docs#/Partner/redeemVoucher`);
  });
});

it("the start page works without JavaScript and has a keyboard link that skips the header", async () => {
  const { page } = await visit(api.url, { javaScriptEnabled: false });
  expect(await page.getByRole("listitem").count()).toBeGreaterThanOrEqual(10);
  await page.getByLabel("Verify link or voucher id").fill("vch_none");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.url}/integrity/events/VoucherInstance/vch_none`);
  await page.getByText("No voucher has this id").waitFor();
  await page.getByText("For experts").click();
  await follow(page.getByRole("link", { name: "Go to the start page" }));
  await page.keyboard.press("Tab");
  expect(await page.getByRole("link", { name: "Skip to content" }).boundingBox()).toMatchObject({
    x: 0,
    height: expect.closeTo(20, -1),
  });
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.hash === "#main");
});

it("the start page links to the reference, the OpenAPI document, health and the dashboard", async () => {
  const { page } = await visit(api.url, { httpCredentials: { username: "", password: OPS_TOKEN } });
  await follow(page.getByRole("listitem").getByRole("link", { name: "API reference" }));
  expect(page.url()).toBe(`${api.url}/docs`);
  await page.getByRole("link", { name: "Partner Voucher API", exact: true }).click();
  await page.waitForURL(`${api.url}/`);
  await follow(page.getByRole("link", { name: "OpenAPI document" }));
  expect(JSON.parse(await page.locator("body").innerText())).toMatchObject({ openapi: "3.1.0" });
  await page.goBack();
  await follow(page.getByRole("link", { name: "Health" }));
  expect(JSON.parse(await page.locator("body").innerText())).toMatchObject({ status: "ok" });
  await page.goBack();
  await page.getByRole("link", { name: "Queue dashboard" }).click();
  await page.getByRole("link", { name: "redeem", exact: true }).waitFor();
});

it("the guide has a button that copies each program without changes", async () => {
  const { page } = await visit(`${api.url}/docs/clients`, { permissions: ["clipboard-read", "clipboard-write"] });
  const programs = readSnippets("docs/clients.md");
  // The checkout is also in tabs for Python and PHP, and one tab is visible.
  expect(await page.locator("pre > .copy").count()).toBe(programs.length + 2);
  await page.getByRole("button", { name: "Copy checkout.mjs" }).click();
  await page.getByText("Copied", { exact: true }).waitFor();
  const copied = `${await page.evaluate("navigator.clipboard.readText()")}\n`;
  expect(copied).toBe(programs.find(({ language }) => language === "js")?.code);
});

it("readers can search the documents and choose the samples' language without JavaScript", async () => {
  const { page } = await visit(`${api.url}/docs/clients`, { javaScriptEnabled: false });
  await page.getByRole("group", { name: "Language" }).getByText("Python").click();
  expect(await page.locator(".tabs pre:visible").innerText()).toContain("# checkout.py");
  await page.getByLabel("Search the documents").fill("when to retry");
  await page.keyboard.press("Enter");
  await page.getByRole("article").getByRole("link", { name: "When to retry", exact: true }).click();
  await page.waitForURL(`${api.url}/docs/retries`);
  const tree = page.getByRole("navigation", { name: "Documents" });
  expect(await tree.locator("[aria-current=page]").innerText()).toBe("When to retry");
  await tree.getByText("Settle and verify").click();
  await tree.getByRole("link", { name: "What can be proved, and how" }).click();
  await page.waitForURL(`${api.url}/docs/proof`);
});

it("the API reference page links to the guide, whose sections and documents work without JavaScript", async () => {
  const { page } = await visit(`${api.url}/docs`, { javaScriptEnabled: false });
  await page.getByRole("link", { name: "openapi.json" }).click();
  await page.waitForURL(`${api.url}/openapi.json`);
  await page.goBack();
  await page.getByRole("navigation", { name: "Site" }).getByRole("link", { name: "Guide" }).click();
  await page.waitForURL(`${api.url}/docs/guide`);
  await page.getByRole("navigation", { name: "On this page" }).getByRole("link", { name: "Time and money" }).click();
  await page.waitForURL(`${api.url}/docs/guide#time-and-money`);
  await page.getByRole("link", { name: "some changes" }).click();
  await page.waitForURL(`${api.url}/docs/versioning`);
});

/** Expands an operation. */
async function openOperation(page: Page, tag: string, operationId: string): Promise<Locator> {
  const closed = page.locator(`#operations-tag-${tag}[data-is-open=false]`);
  await page.locator(`#operations-tag-${tag}`).waitFor();
  if ((await closed.count()) > 0) await closed.click();
  const operation = page.locator(`#operations-${tag}-${operationId}`);
  await operation.locator(".opblock-summary-control").click();
  await operation.locator(".opblock-body").waitFor();
  return operation;
}

/** Enters a key or token in the dialog of the reference page, and calls an operation. Returns status and body. */
async function call(
  page: Page,
  [scheme, secret]: string[],
  [tag = "", id = ""]: string[],
  [name = "", value = ""]: string[],
) {
  await page.locator(".btn.authorize").click();
  const form = page.locator(".auth-container").filter({ hasText: scheme });
  await form.locator("input").fill(secret ?? "");
  await form.getByRole("button", { name: "Apply credentials" }).click();
  await page.locator(".btn-done").first().click();
  const operation = await openOperation(page, tag, id);
  await operation.getByRole("button", { name: "Try it out" }).click();
  await operation.getByPlaceholder(name).fill(value);
  await operation.getByRole("button", { name: "Execute" }).click();
  const live = operation.locator(".live-responses-table");
  await live.waitFor();
  const status = Number((await live.locator(".response-col_status").last().innerText()).trim());
  return { status, body: JSON.parse(await live.locator(".highlight-code code").first().innerText()) };
}

it("the API reference page sends calls with a partner's key or a user's token, and stores no key", async () => {
  const { code } = await issue();
  const { key } = keys.till;
  const { productId, vouchers } = await makeOffer(db, 1);
  const token = await signUser(issuer, "user-of-the-page");
  const { page, complaints } = await visit(`${api.url}/docs`);
  const reply = await call(page, ["apiKey", key], ["Partner", "lookUpVoucher"], ["codeOrTicket", code]);
  expect(reply).toMatchObject({ status: 200, body: { voucher: { code, status: "Active" } } });
  const kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])");
  expect(kept).not.toContain(key);
  // With the example body.
  const bought = await call(page, ["userToken", token], ["Marketplace", "buyProduct"], ["id", productId]);
  expect(bought).toMatchObject({ status: 200, body: { voucher: { id: vouchers[0]?.id } } });
  expect(complaints).toEqual([]);
});

it("the API reference page links to BASE_URL if it was opened at another address", async () => {
  const { page } = await visit("about:blank");
  // The page's notice about its address does not need Swagger UI, which takes seconds to start.
  await page.route(/swagger-ui-bundle/, (route) => route.abort());
  await page.goto(`${api.url.replace("127.0.0.1", "localhost")}/docs`);
  await page.locator("#elsewhere a").waitFor();
  expect(await page.locator("#elsewhere").innerText()).toContain(api.url);
  await page.locator("#elsewhere a").click();
  await page.waitForURL(`${api.url}/docs`);
});
