import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  findBarriers,
  LOOKS,
  measureOverflow,
  openPage,
  photograph,
  startBrowser,
  type Visit,
} from "../support/browser.ts";
import { partnerClient } from "../support/client.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner } from "../support/supply.ts";

const TOKEN = "the token of the operators";
const NOTE = "a note that names Mrs Miller";
/** The board asks for a web font of another origin in its page, which the policy refuses. */
const WEB_FONT = /fonts\.googleapis\.com/;

let servers: TestServers;
let api: TestApi;
let worker: TestWorker;
let browser: Browser;
let voucher: { id: string; code: string };

beforeAll(async () => {
  servers = await openTestServers();
  const operated = { OPS_TOKEN: TOKEN, BASE_URL: "http://localhost" };
  [api, worker, browser] = await Promise.all([startApi(servers, operated), startWorkers(servers), startBrowser()]);
  const partner = await makePartner(servers.db);
  const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  voucher = await issueVoucher(servers.db, partner);
  await till.redeem({ code: voucher.code, externalRef: "order-of-dashboard-test", note: NOTE });
});

afterAll(async () => {
  await browser.close();
  await api.close();
  await worker.close();
  await servers.close();
});

async function logIn({ page }: Pick<Visit, "page">, token: string): Promise<void> {
  await page.goto(`${api.url}/ops/queues`);
  await page.getByLabel("Operations token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

describe("the queue dashboard", () => {
  it("asks who comes for the token, and refuses a wrong one", async () => {
    const { page, close } = await openPage(browser);
    await logIn({ page }, "the token of someone else");
    await page.getByRole("alert").getByText("That is not the token").waitFor();
    expect(page.url()).toBe(`${api.url}/ops/login`);
    expect(await findBarriers(page)).toEqual([]);
    await photograph(page, "login, refused");
    await page.goto(`${api.url}/ops/queues`);
    await page.waitForURL(`${api.url}/ops/login`);
    await close();
  });

  it("shows the three queues after the right token, and of a job what an operator may see", async () => {
    const { page, complaints, close } = await openPage(browser);
    await logIn({ page }, TOKEN);
    await page.waitForURL(`${api.url}/ops/queues`);
    const menu = page.getByRole("navigation");
    for (const name of ["redeem", "seal", "sweep"])
      await menu.getByRole("link", { name, exact: true }).first().waitFor();
    await photograph(page, "dashboard");
    await menu.getByRole("link", { name: "redeem", exact: true }).first().click();
    await page.getByText(voucher.id).first().waitFor();
    await page.getByText("externalRef").first().waitFor();
    await photograph(page, "dashboard, redeem");
    const words = await page.locator("body").innerText();
    expect(words).toContain("redacted");
    for (const secret of [voucher.code, NOTE, "order-of-dashboard-test"]) expect(words).not.toContain(secret);
    for (const action of ["Retry", "Promote", "Clean", "Pause", "Obliterate", "Add"]) {
      expect(await page.getByRole("button", { name: new RegExp(`^${action}`, "i") }).count(), action).toBe(0);
    }
    expect(complaints.filter((complaint) => !WEB_FONT.test(complaint))).toEqual([]);
    await close();
  });

  it("refuses its own page, too, to change a queue", async () => {
    const { page, close } = await openPage(browser);
    await logIn({ page }, TOKEN);
    await page.waitForURL(`${api.url}/ops/queues`);
    const pause = `fetch("/ops/queues/api/queues/redeem/pause", { method: "PUT" }).then((response) => response.status)`;
    expect(await page.evaluate(pause)).toBe(405);
    await close();
  });

  it("signs out from its menu, and is closed again", async () => {
    const { page, close } = await openPage(browser);
    await logIn({ page }, TOKEN);
    await page.waitForURL(`${api.url}/ops/queues`);
    await page.locator("header").getByRole("button").last().click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByText("You are signed in").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await photograph(page, "signed in");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Operations token").waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.goto(`${api.url}/ops/queues`);
    await page.waitForURL(`${api.url}/ops/login`);
    await close();
  });

  it.each(
    LOOKS,
  )("has a login that on a %s has no barrier that axe knows and does not overflow", async (look, options) => {
    const { page, complaints, close } = await openPage(browser, options);
    await page.goto(`${api.url}/ops/login`);
    expect(await findBarriers(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    expect(complaints).toEqual([]);
    await photograph(page, `login, ${look}`);
    await close();
  });
});
