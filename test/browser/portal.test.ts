import { readFileSync } from "node:fs";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findAxeViolations, LOOKS, measureOverflow, openPage, photograph, startBrowser } from "../support/browser.ts";
import { partnerClient } from "../support/client.ts";
import { beginLog, type LogFiles, makeLogFiles, openSequencer, startWitness } from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const COUNT = 12;
/** Names of 200 characters that would change a page that did not escape and isolate them. */
const NAME = `<img src=x onerror=document.title=1>\u202eلا&quot;`.padEnd(200, "W");

let servers: TestServers;
let files: LogFiles;
let api: TestApi;
let browser: Browser;
let reader: string;
let code: string;

beforeAll(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  files.setWitnesses([(await startWitness(servers, files)).url]);
  const env = { BASE_URL: "http://localhost", WEBHOOK_SECRET: "the root secret of the tests of the portal" };
  [api, , browser] = await Promise.all([startApi(servers, env), startWorkers(servers), startBrowser()]);
  const { organizationId, productId } = await makePartner(servers.db, { sandbox: true });
  const vouchers = await issueVouchers(servers.db, { organizationId, productId, brandId: "" }, COUNT);
  code = vouchers[COUNT - 1]?.code ?? "";
  const till = await makeKey(servers.db, organizationId);
  await servers.db.query("UPDATE organizations SET name = $2 WHERE id = $1", [organizationId, NAME]);
  await servers.db.query("UPDATE products SET name = $2 WHERE id = $1", [productId, NAME]);
  await servers.db.query("UPDATE api_keys SET label = $2 WHERE id = $1", [till.id, NAME]);
  for (const voucher of vouchers) {
    const externalRef = voucher.code === code ? "order-of-the-page" : `${NAME.slice(0, 100)} ${voucher.serial}`;
    expect((await partnerClient(api.url, till.key).redeem({ code: voucher.code, externalRef })).status).toBe(200);
  }
  await servers.db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, description, failing_since)
     VALUES ('whk_01jzbq0000e00a4g0g00000001', $1, 1, 'https://shop.example.com/' || repeat('x', 100), $2, now())`,
    [organizationId, NAME],
  );
  const scopes = ["voucher.read", "voucher.webhook"] as const;
  reader = (await makeKey(servers.db, organizationId, { scopes: [...scopes] })).key;
  await beginLog(servers.db, files);
  await openSequencer(servers, files).run();
  await until(async () => {
    const headers = { authorization: `Basic ${Buffer.from(`zoe:${reader}`).toString("base64")}` };
    return (await (await fetch(`${api.url}/portal`, { headers })).text()).includes(`${COUNT} redemptions`);
  });
});

afterAll(async () => {
  await browser.close();
  await endService(servers);
  files.remove();
});

const openSignedIn = (options: BrowserContextOptions = {}) =>
  openPage(browser, { ...options, httpCredentials: { username: "zoe", password: reader } });

describe.each(LOOKS)("on a %s", (look, options) => {
  it.each([
    ["overview", "/portal", 200],
    ["day", "/portal/redemptions", 200],
    ["order", "/portal/orders/order-of-the-page", 200],
    ["search without a result", "/portal?words=nothing", 200],
    ["webhook endpoints", "/portal/webhooks", 200],
    ["unknown order", "/portal/orders/none", 404],
    ["marketplace", "/marketplace/listings", 200],
  ])("%s passes axe, does not overflow, keeps its policy and escapes hostile names", async (what, path, status) => {
    const { page, complaints, close } = await openSignedIn(options);
    expect((await page.goto(api.url + path))?.status()).toBe(status);
    expect(await findAxeViolations(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    expect(await page.title()).toMatch(/Partner Voucher API$/);
    expect(await page.locator('img[src="x"]').count()).toBe(0);
    expect(await page.getByText("Sandbox.").count()).toBe(path.startsWith("/portal") ? 1 : 0);
    await photograph(page, `portal, ${what}, ${look}`);
    // The console reports the status 404.
    expect(complaints.filter((complaint) => !complaint.includes("404"))).toEqual([]);
    await close();
  });
});

it("a person of a partner goes from today's sum to the day, its CSV and an order by keyboard, without JavaScript", async () => {
  const { page, close } = await openSignedIn({ javaScriptEnabled: false });
  await page.goto(`${api.url}/portal`);
  const { rows } = await servers.db.query<{ sum: string }>(
    "SELECT sum(b.price_usd) FROM redemptions AS r JOIN vouchers AS v ON v.id = r.voucher_id JOIN batches AS b ON b.id = v.batch_id",
  );
  const total = `${COUNT} redemptions, $${Number(rows[0]?.sum).toFixed(2)}`;
  expect(await page.locator("section", { hasText: "Today" }).first().innerText()).toContain(total);
  await page.getByRole("link", { name: "Each of today" }).first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/portal\/redemptions\?day=/);
  expect(await page.getByText(total).count()).toBe(1);
  expect(await page.getByRole("row").count()).toBe(COUNT + 1);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "The day as CSV" }).click();
  const csv = readFileSync(await (await downloading).path(), "utf8");
  expect(csv.trimEnd().split("\r\n")).toHaveLength(COUNT + 1);
  await page.getByLabel("Find an order").fill(code);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.url}/portal/orders/order-of-the-page`);
  expect(await page.getByRole("list").last().innerText()).toMatch(/Issued[\s\S]*Redeemed/);
  await close();
});

it("a person of a partner downloads an order's receipt and verifies it on the page", async () => {
  const { page, complaints, close } = await openSignedIn();
  await page.goto(`${api.url}/portal/orders/order-of-the-page`);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the receipt" }).click();
  const receipt = readFileSync(await (await downloading).path(), "utf8");
  expect(receipt).toMatch(/^c2sp\.org\/tlog-proof@v1\n/);
  expect(await page.getByRole("textbox", { name: "Receipt" }).inputValue()).toBe(receipt);
  await page.getByRole("button", { name: "Verify the receipt" }).click();
  const result = page.locator("#receipt-result.verdict");
  await result.waitFor();
  expect(await result.getAttribute("class")).toContain("good");
  expect(await result.innerText()).toContain("order-of-the-page");
  expect(complaints).toEqual([]);
  await close();
});

it("a person of a partner sees a plot whose bars are visible and as high as the numbers of the table", async () => {
  const { page, close } = await openSignedIn();
  await page.goto(`${api.url}/portal`);
  const heights = (await page.evaluate(
    "[...document.querySelectorAll('svg.chart rect')].map((bar) => bar.getBoundingClientRect().height)",
  )) as number[];
  expect(heights).toHaveLength(30);
  expect(heights.slice(0, -1)).toEqual(Array(29).fill(0));
  expect(heights.at(-1)).toBeGreaterThan(100);
  await close();
});
