import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DESCRIPTION } from "../support/api-description.ts";
import { findAxeViolations, LOOKS, measureOverflow, openPage, photograph, startBrowser } from "../support/browser.ts";
import { makeOffer } from "../support/marketplace.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, type TestApi } from "../support/service.ts";
import { findSteadyPort } from "../support/steady-port.ts";
import { issueVoucher, makeKey, makePartner } from "../support/supply.ts";
import { type IssuerKey, type KeysFile, makeIssuerKey, signUser, writeKeysFile } from "../support/user-tokens.ts";

let servers: TestServers;
let api: TestApi;
let browser: Browser;
let issuer: IssuerKey;
let keysFile: KeysFile;

beforeAll(async () => {
  servers = await openTestServers();
  issuer = await makeIssuerKey();
  keysFile = writeKeysFile(issuer);
  const port = String(await findSteadyPort());
  const env = { PORT: port, BASE_URL: `http://127.0.0.1:${port}`, AUTH_JWKS_URL: keysFile.url };
  [api, browser] = await Promise.all([startApi(servers, env), startBrowser()]);
});

afterAll(async () => {
  await browser.close();
  await api.close();
  await servers.close();
  keysFile.remove();
});

async function openReference(page: Page, address = `${api.url}/docs`): Promise<void> {
  await page.goto(address);
  await page.locator(".opblock").first().waitFor();
}

/** Expands an operation. */
async function openOperation(page: Page, tag: string, operationId: string) {
  const operation = page.locator(`#operations-${tag}-${operationId}`);
  await operation.locator(".opblock-summary-control").click();
  await operation.locator(".opblock-body").waitFor();
  return operation;
}

/** Enters a key or a token in the page's authorization dialog. */
async function authorize(page: Page, scheme: string, secret: string): Promise<void> {
  await page.locator(".btn.authorize").click();
  const form = page.locator(".auth-container").filter({ hasText: scheme });
  await form.locator("input").fill(secret);
  await form.getByRole("button", { name: "Apply credentials" }).click();
  await page.locator(".btn-done").first().click();
}

/** Submits an operation's form and returns the response's status and body. */
async function execute(operation: ReturnType<Page["locator"]>) {
  await operation.getByRole("button", { name: "Execute" }).click();
  const live = operation.locator(".live-responses-table");
  await live.waitFor();
  const status = Number((await live.locator(".response-col_status").last().innerText()).trim());
  return { status, body: JSON.parse(await live.locator(".highlight-code code").first().innerText()) };
}

describe("the reference page", () => {
  it.each(
    LOOKS,
  )("on a %s shows every operation, does not overflow, keeps its policy and passes axe", async (look, options) => {
    const { page, complaints, close } = await openPage(browser, options);
    await openReference(page);
    const paths = page.locator(".opblock-summary-path");
    const shown = await paths.evaluateAll((found) => found.map((path) => path.getAttribute("data-path")));
    const described = Object.entries({ ...DESCRIPTION.paths, ...DESCRIPTION.webhooks }).flatMap(([path, item]) =>
      Object.keys(item ?? {}).map(() => path),
    );
    expect(shown.toSorted()).toEqual(described.toSorted());
    expect(await page.locator("#elsewhere").isVisible()).toBe(false);
    await photograph(page, `docs, ${look}`);
    await openOperation(page, "Partner", "redeemVoucher");
    expect(await measureOverflow(page)).toBe(0);
    expect(await findAxeViolations(page)).toEqual([]);
    expect(page.url()).toBe(`${api.url}/docs#/Partner/redeemVoucher`);
    await photograph(page, `docs, redeem, ${look}`);
    expect(complaints).toEqual([]);
    await close();
  });

  it("the reference page looks up a voucher with a partner's key and does not store the key", async () => {
    const partner = await makePartner(servers.db);
    const { code } = await issueVoucher(servers.db, partner);
    const { key } = await makeKey(servers.db, partner.organizationId);
    const { page, complaints, close } = await openPage(browser);
    await openReference(page);
    await authorize(page, "apiKey", key);
    const lookUp = await openOperation(page, "Partner", "lookUpVoucher");
    await lookUp.getByRole("button", { name: "Try it out" }).click();
    await lookUp.getByPlaceholder("codeOrTicket").fill(code);
    expect(await execute(lookUp)).toMatchObject({ status: 200, body: { voucher: { code, status: "Active" } } });
    expect(complaints).toEqual([]);
    const kept = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])");
    expect(kept).not.toContain(key);
    await photograph(page, "docs, look-up");
    await close();
  });

  it("the reference page buys with a user's token and the example body", async () => {
    const offer = await makeOffer(servers.db, 1);
    const { page, complaints, close } = await openPage(browser);
    await openReference(page);
    await authorize(page, "userToken", await signUser(issuer, "user-of-the-page"));
    const buy = await openOperation(page, "Marketplace", "buyProduct");
    await buy.getByRole("button", { name: "Try it out" }).click();
    await buy.getByPlaceholder("id").fill(offer.productId);
    expect(await execute(buy)).toMatchObject({ status: 200, body: { voucher: { id: offer.vouchers[0]?.id } } });
    expect(complaints).toEqual([]);
    await close();
  });

  it("the reference page shows where requests go when opened at an address other than BASE_URL", async () => {
    const { page, close } = await openPage(browser);
    await openReference(page, `${api.url.replace("127.0.0.1", "localhost")}/docs`);
    expect(await page.locator("#elsewhere").innerText()).toContain(api.url);
    await page.locator("#elsewhere a").click();
    await page.waitForURL(`${api.url}/docs`);
    await close();
  });

  it("the reference page links to the OpenAPI document without JavaScript", async () => {
    const { page, close } = await openPage(browser, { javaScriptEnabled: false });
    await page.goto(`${api.url}/docs`);
    await page.getByRole("link", { name: "openapi.json" }).click();
    await page.waitForURL(`${api.url}/openapi.json`);
    await close();
  });
});
