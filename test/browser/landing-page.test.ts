import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAxeViolations, LOOKS, measureOverflow, openPage, photograph, startBrowser } from "../support/browser.ts";
import { makeOffer, makeReferral } from "../support/marketplace.ts";
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

it.each(
  LOOKS,
)("the field that checks a voucher names the problem of a wrong text at the field, and passes axe on a %s", async (look, options) => {
  const { page, complaints, close } = await openPage(browser, options);
  await page.goto(`${api.url}/check?voucher=${encodeURIComponent("7Q4K-9MZX-2HTB-W8RC")}`);
  const field = page.getByLabel("Verify link or voucher id");
  expect(await field.inputValue()).toBe("7Q4K-9MZX-2HTB-W8RC");
  expect(await field.getAttribute("aria-invalid")).toBe("true");
  expect(await page.getByRole("alert").innerText()).toContain("A voucher's code cannot be checked here");
  expect(await findAxeViolations(page)).toEqual([]);
  expect(await measureOverflow(page)).toBe(0);
  await photograph(page, `check, ${look}`);
  // The console reports the status 400.
  expect(complaints.filter((complaint) => !complaint.includes("400"))).toEqual([]);
  await close();
});

it.each(
  LOOKS,
)("an unknown address is a page that leads to the start page and passes axe on a %s", async (look, options) => {
  const { page, close } = await openPage(browser, options);
  expect((await page.goto(`${api.url}/nowhere`))?.status()).toBe(404);
  expect(await findAxeViolations(page)).toEqual([]);
  expect(await measureOverflow(page)).toBe(0);
  await photograph(page, `unknown address, ${look}`);
  await page.getByRole("link", { name: "Go to the start page" }).click();
  await page.waitForURL(`${api.url}/`);
  await close();
});

it.each(LOOKS)("a referrer's link shows its offer and passes axe on a %s", async (look, options) => {
  const { code } = await makeReferral(servers.db, await makeOffer(servers.db, 2));
  const { page, complaints, close } = await openPage(browser, options);
  await page.goto(`${api.url}/r/${code}`);
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toMatch(/^Pass from Brand/);
  await page.getByText("Available").waitFor();
  expect(await findAxeViolations(page)).toEqual([]);
  expect(await measureOverflow(page)).toBe(0);
  expect(complaints).toEqual([]);
  await photograph(page, `referrer's link, ${look}`);
  await close();
});

describe("the landing page", () => {
  it.each(
    LOOKS,
  )("on a %s passes axe, does not overflow and violates no content security policy", async (look, options) => {
    const { page, complaints, close } = await openPage(browser, options);
    await page.goto(api.url);
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Redeem each voucher exactly once");
    expect(await findAxeViolations(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    expect(complaints).toEqual([]);
    await photograph(page, `landing, ${look}`);
    await close();
  });

  it("the landing page works without JavaScript and has a keyboard link that skips the header", async () => {
    const { page, close } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(api.url);
    expect(await page.getByRole("listitem").count()).toBeGreaterThanOrEqual(10);
    await page.getByLabel("Verify link or voucher id").fill("vch_none");
    await page.keyboard.press("Enter");
    await page.waitForURL(`${api.url}/integrity/events/VoucherInstance/vch_none`);
    await page.getByText("No voucher has this id").waitFor();
    await page.getByRole("link", { name: "Go to the start page" }).click();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.hash === "#main");
    await close();
  });

  it("the landing page links to the reference, the OpenAPI document, health and the dashboard", async () => {
    const { page, close } = await openPage(browser, { httpCredentials: { username: "", password: OPS_TOKEN } });
    await page.goto(api.url);
    await page.getByRole("listitem").getByRole("link", { name: "API reference" }).click();
    await page.getByText("/partner/vouchers/redeem").first().waitFor();
    await page.getByRole("link", { name: "Partner Voucher API" }).click();
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
