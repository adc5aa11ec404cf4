import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DOCUMENTS } from "../../src/http/pages/documents.ts";
import { findAxeViolations, LOOKS, measureOverflow, openPage, photograph, startBrowser } from "../support/browser.ts";
import { readSnippets } from "../support/document-snippets.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";

let servers: TestServers;
let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  servers = await openTestServers();
  [api, browser] = await Promise.all([startApi(servers), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
  await servers.close();
});

const PAGES = DOCUMENTS.filter(({ sentAs }) => sentAs === null).map(({ path }) => path.replace("/docs/", ""));

describe.each(PAGES)("the page /docs/%s", (name) => {
  it.each(LOOKS)("on a %s passes axe, does not overflow and keeps its policy", async (look, options) => {
    const { page, complaints, close } = await openPage(browser, options);
    await page.goto(`${api.url}/docs/${name}`);
    expect(await page.getByRole("heading", { level: 1 }).count()).toBe(1);
    expect(await findAxeViolations(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    expect(complaints).toEqual([]);
    await photograph(page, `${name}, ${look}`);
    await close();
  });
});

it("the guide has a button on each program that copies it as it is written", async () => {
  const { page, close } = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`${api.url}/docs/clients`);
  const programs = readSnippets("docs/clients.md");
  expect(await page.getByRole("button", { name: /^Copy / }).count()).toBe(programs.length);
  const { code = "" } = programs.find(({ language }) => language === "php") ?? {};
  const button = page.getByRole("button", { name: "Copy checkout.php" });
  await button.click();
  await page.getByText("Copied", { exact: true }).waitFor();
  expect(`${await page.evaluate("navigator.clipboard.readText()")}\n`).toBe(code);
  await close();
});

it("the guide is found from the reference, lists its sections and leads to the other documents, without JavaScript", async () => {
  const { page, close } = await openPage(browser, { javaScriptEnabled: false });
  await page.goto(`${api.url}/docs`);
  await page.getByRole("navigation", { name: "Site" }).getByRole("link", { name: "Guide" }).click();
  await page.waitForURL(`${api.url}/docs/guide`);
  await page.getByText("On this page", { exact: true }).click();
  await page.getByRole("link", { name: "When to retry" }).first().click();
  await page.waitForURL(`${api.url}/docs/guide#when-to-retry`);
  await page.getByRole("link", { name: "What may change" }).click();
  await page.waitForURL(`${api.url}/docs/versioning`);
  await close();
});
