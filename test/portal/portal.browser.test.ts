import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { expectSound, LOOKS, photograph, useBrowser } from "../support/browser.ts";
import { partnerClient } from "../support/client.ts";
import { beginTlog, makeTlogFiles, openSequencer, startWitness } from "../support/log-setup.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { avoidMidnight, until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const COUNT = 12;
/** Names of 200 characters, with markup and a change of text direction. A page must escape and isolate them. */
const NAME = `<img src=x onerror=document.title=1>\u202eلا&quot;`.padEnd(200, "W");

/** A month with more brands, products and keys than its page shows. */
const STATEMENT = "/portal/statement?month=2024-02";
const UNSIGNED_STATEMENT = "/portal/statement?month=2024-03";

const env = { BASE_URL: "http://localhost", WEBHOOK_SECRET: "the root secret of the tests of the portal" };
const { api, servers, db } = useService({ apis: [env] });
let reader: string;
let code: string;
const visit = useBrowser(() => ({ httpCredentials: { username: "zoe", password: reader } }));

beforeAll(async () => {
  await avoidMidnight();
  const files = makeTlogFiles();
  servers.onClose(async () => files.remove());
  files.setWitnesses([(await startWitness(servers, files)).url]);
  const partner = await makePartner(db, { sandbox: true });
  const { organizationId, productId } = partner;
  await db.query("UPDATE products SET name = $2, price_usd = 1234.5 WHERE id = $1", [productId, NAME]);
  const vouchers = await issueVouchers(db, partner, COUNT);
  code = vouchers[COUNT - 1]?.code ?? "";
  const till = await makeKey(db, organizationId);
  await db.query("UPDATE organizations SET name = $2 WHERE id = $1", [organizationId, NAME]);
  await db.query("UPDATE api_keys SET label = $2 WHERE id = $1", [till.id, NAME]);
  for (const voucher of vouchers) {
    const externalRef = voucher.code === code ? "order-of-the-page" : `${NAME.slice(0, 100)} ${voucher.serial}`;
    expect((await partnerClient(api.url, till.key).redeem({ code: voucher.code, externalRef })).status).toBe(200);
  }
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, description, failing_since)
     VALUES ('whk_01jzbq0000e00a4g0g00000001', $1, 1, 'https://shop.example.com/' || repeat('x', 100), $2, now())`,
    [organizationId, NAME],
  );
  reader = (await makeKey(db, organizationId, { scopes: ["voucher.read", "voucher.webhook"] })).key;
  await beginTlog(db, files);
  await openSequencer(servers, files).run();
  await until(async () => {
    const headers = { authorization: `Basic ${Buffer.from(`zoe:${reader}`).toString("base64")}` };
    return (await (await fetch(`${api.url}/portal`, { headers })).text()).includes(`${COUNT} redemptions`);
  });
  await keepStatement(organizationId);
});

const PAGES: [what: string, path: string, status: number][] = [
  ["overview", "/portal", 200],
  ["day", "/portal/redemptions", 200],
  ["month", `/portal/redemptions?month=${new Date().toISOString().slice(0, 7)}`, 200],
  ["statement", STATEMENT, 200],
  ["activity", "/portal/activity", 200],
  ["order", "/portal/orders/order-of-the-page", 200],
  ["webhook endpoints", "/portal/webhooks", 200],
  ["unknown order", "/portal/orders/none", 404],
  ["marketplace", "/marketplace/listings", 200],
];

/** The narrowest phone, in a language with long words. */
const NARROW = { ...LOOKS[1][1], viewport: { width: 360, height: 740 }, locale: "de-DE" };

describe.each([...LOOKS, ["narrow phone, German", NARROW] as const])("on a %s", (look, options) => {
  it("every portal page passes axe, does not overflow and escapes hostile names", async () => {
    // One page for all, because each new page starts processes of the browser.
    const visited = await visit("about:blank", options);
    for (const [what, path, status] of PAGES) {
      expect((await visited.page.goto(api.url + path))?.status(), what).toBe(status);
      expect(await visited.page.title()).toMatch(/Partner Voucher API$/);
      expect(await visited.page.locator('img[src="x"]').count(), what).toBe(0);
      expect(await visited.page.getByText("Sandbox.").count(), what).toBe(path.startsWith("/portal") ? 1 : 0);
      // The browser's console reports the status 404.
      await expectSound(visited, `portal, ${what}, ${look}`, "404");
    }
  });
});

it("a partner's user can navigate from today's redemptions to one order by keyboard, without JavaScript", async () => {
  const { page } = await visit(`${api.url}/portal`, { javaScriptEnabled: false });
  const { rows } = await db.query<{ sum: string }>(
    `SELECT sum(b.price_usd) FROM redemptions AS r
       JOIN vouchers AS v ON v.id = r.voucher_id JOIN batches AS b ON b.id = v.batch_id`,
  );
  const sum = Number(rows[0]?.sum).toLocaleString("en-US", { style: "currency", currency: "USD" });
  const total = `${COUNT} redemptions, ${sum}`;
  expect(await page.locator("section", { hasText: "Today" }).first().innerText()).toContain(total);
  await page.getByRole("link", { name: "All of today" }).press("Enter");
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
});

it("a portal search without a result shows a page that passes axe, with no searched word in the URL", async () => {
  const [look, phone] = LOOKS[1];
  const visited = await visit(`${api.url}/portal`, phone);
  await visited.page.getByLabel("Find an order").fill("nothing");
  await visited.page.keyboard.press("Enter");
  await visited.page.getByRole("heading", { name: "Nothing found" }).waitFor();
  expect(visited.page.url()).toBe(`${api.url}/portal`);
  await expectSound(visited, `portal, nothing found, ${look}`);
});

it("a partner's user downloads an order's receipt from the portal and verifies the receipt there", async () => {
  const { page, complaints } = await visit(`${api.url}/portal/orders/order-of-the-page`);
  expect(await page.locator(".life").innerText()).not.toContain("key_");
  expect(await page.getByRole("textbox", { name: "Receipt" }).isVisible()).toBe(false);
  expect(await page.getByText("The receipt is valid: this redemption is no.").count()).toBe(1);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download the receipt" }).click();
  const receipt = readFileSync(await (await downloading).path(), "utf8");
  expect(receipt).toMatch(/^c2sp\.org\/tlog-proof@v1\n/);
  await page.locator("summary", { hasText: "Verify the receipt" }).press("Enter");
  expect(await page.getByRole("textbox", { name: "Receipt" }).inputValue()).toBe(receipt);
  await page.getByRole("button", { name: "Verify the receipt" }).click();
  expect(await page.locator("#receipt-result.verdict.good").innerText()).toContain("order-of-the-page");
  expect(complaints).toEqual([]);
});

it("the portal's overview shows a plot whose bars match the numbers of its table", async () => {
  const { page } = await visit(`${api.url}/portal`);
  const bars = page.locator("svg.chart rect");
  const heights = await bars.evaluateAll((found) => found.map((bar) => bar.getBoundingClientRect().height));
  expect(heights.slice(0, -1)).toEqual(Array(29).fill(0));
  // The bar of twelve redemptions, on a scale up to twenty.
  expect(heights.at(-1)).toBeGreaterThan(80);
  expect(await page.locator("svg.chart text").allTextContents()).toEqual(
    expect.arrayContaining(["20", "10", "0", "12"]),
  );
});

it("the portal's tables fit a phone without horizontal scrolling, and print only figures", async () => {
  const { page } = await visit(`${api.url}/portal`, NARROW);
  const month = `/portal/redemptions?month=${new Date().toISOString().slice(0, 7)}`;
  for (const path of ["/portal", "/portal/redemptions", month, STATEMENT, "/portal/activity"]) {
    await page.goto(`${api.url}${path}`);
    const wide =
      "[...document.querySelectorAll('.scroll')].filter((part) => part.scrollWidth > part.clientWidth).length";
    expect([path, await page.evaluate(wide)]).toEqual([path, 0]);
    await photograph(page, `${path.slice(1).replace(/=.*/, "")}, German, phone`);
    await page.emulateMedia({ media: "print" });
    await photograph(page, `${path.slice(1).replace(/=.*/, "")}, German, paper`);
    for (const part of ["nav", "form", "footer"]) expect(await page.locator(part).first().isVisible()).toBe(false);
    expect(await page.getByRole("table").first().isVisible()).toBe(true);
    await page.emulateMedia({ media: null });
  }
});

it("the portal's monthly statement fits on one side of A4, with any number and length of names", async () => {
  const { page } = await visit(api.url + STATEMENT, { javaScriptEnabled: false, locale: "de-DE" });
  expect(await page.getByRole("row").count()).toBe(3 * (1 + 8 + 1 + 1));
  const pdf = (
    await page.pdf({ format: "A4", margin: { top: "10mm", right: "10mm", bottom: "10mm", left: "10mm" } })
  ).toString("latin1");
  expect(pdf.match(/\/Type \/Page\b/g)).toHaveLength(1);
  await page.emulateMedia({ media: "print" });
  const sizes = "[...document.querySelectorAll('.statement :not(h1)')].map((part) => getComputedStyle(part).fontSize)";
  // 9 pt.
  expect([...new Set((await page.evaluate(sizes)) as string[])].filter((size) => parseFloat(size) > 12)).toEqual([]);
});

it("a portal statement that is not signed by the transparency log yet asks its reader to reload the page", async () => {
  const { page } = await visit(api.url + UNSIGNED_STATEMENT);
  expect(await page.getByText("It becomes final in a few seconds: then reload the page.").count()).toBe(1);
});

/** Stores final statements like the service: one that needs no signature, and one that the log has not signed. */
async function keepStatement(organizationId: string) {
  const lines = Array.from({ length: 30 }, (_, n) => {
    const [brand, productName, keyLabel] = Array(3).fill(`${n} ${NAME}`);
    const ids = { productId: `prd_${n}`, productKey: `p${n}`, keyId: `key_${n}` };
    return { brand, productName, keyLabel, redemptions: 1_000, amountUsd: 19_990, ...ids };
  });
  const [firstRedeemedAt, lastRedeemedAt] = ["2024-02-01T00:00:00.000Z", "2024-02-29T23:59:59.999Z"];
  const sums = { redemptions: 30_000, amountUsd: 599_700, firstRedeemedAt, lastRedeemedAt };
  for (const [month, end, noteDue] of [
    ["2024-02", "2024-03", false],
    ["2024-03", "2024-04", true],
  ] as const) {
    const head = { organizationId, month, final: true, completeUntil: `${end}-01T00:00:00.000Z` };
    const content = JSON.stringify({ ...head, ...sums, lines, rowsHash: "5c".repeat(32) });
    await db.query("INSERT INTO statements (organization_id, month, content, note_due) VALUES ($1, $2, $3, $4)", [
      ...[organizationId, month, content, noteDue],
    ]);
  }
}
