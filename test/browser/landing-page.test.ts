import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAxeViolations, LOOKS, measureOverflow, openPage, photograph, startBrowser } from "../support/browser.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";

const OPS_TOKEN = "the token of the operators";

let servers: TestServers;
let api: TestApi;
let browser: Browser;

beforeAll(async () => {
  servers = await openTestServers();
  const operated = { OPS_TOKEN, BASE_URL: "http://localhost" };
  [api, browser] = await Promise.all([startApi(servers, operated), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
  await servers.close();
});

describe("the landing page", () => {
  it.each(LOOKS)("on a %s passes axe, does not overflow and keeps its policy", async (look, options) => {
    const { page, complaints, close } = await openPage(browser, options);
    await page.goto(api.url);
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Redeem each voucher exactly once");
    expect(await findAxeViolations(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    expect(complaints).toEqual([]);
    await photograph(page, `landing, ${look}`);
    await close();
  });

  it("works without JavaScript and has a keyboard link that skips the header", async () => {
    const { page, close } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(api.url);
    expect(await page.getByRole("listitem").count()).toBe(9);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(new URL(page.url()).hash).toBe("#main");
    await close();
  });

  it("links to the reference, the OpenAPI document, health and the dashboard", async () => {
    const { page, close } = await openPage(browser, { httpCredentials: { username: "", password: OPS_TOKEN } });
    await page.goto(api.url);
    await page.getByRole("listitem").getByRole("link", { name: "API reference" }).click();
    await page.getByText("/partner/vouchers/redeem").first().waitFor();
    await page.getByRole("link", { name: "Start page" }).click();
    await page.waitForURL(`${api.url}/`);
    await page.getByRole("link", { name: "OpenAPI document" }).click();
    expect(JSON.parse(await page.locator("body").innerText())).toMatchObject({ openapi: "3.1.0" });
    await page.goBack();
    await page.getByRole("link", { name: "Health" }).click();
    expect(JSON.parse(await page.locator("body").innerText())).toMatchObject({ status: "ok" });
    await page.goBack();
    await page.getByRole("link", { name: "Queue dashboard" }).click();
    await page.getByRole("navigation").getByRole("link", { name: "redeem", exact: true }).first().waitFor();
    await close();
  });
});
