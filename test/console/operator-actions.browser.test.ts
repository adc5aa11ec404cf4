import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { expectSound, LOOKS, photograph, useBrowser, type Visit } from "../support/browser.ts";
import { partnerClient } from "../support/client.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";
/** Markup, a change of text direction, and 160 characters without a line break opportunity. */
const HOSTILE = `<img src=x onerror=alert(1)> ‮ "quoted" ${"W".repeat(160)}`;

const { api } = useService({ apis: [{ OPS_TOKEN: TOKEN, OPS_WRITABLE: "true", BASE_URL: "http://localhost" }] });
const visit = useBrowser(() => ({ httpCredentials: { username: "zoe", password: TOKEN } }));

it.each(
  LOOKS,
)("an operator on a %s can act without JavaScript and mouse, and every page passes axe", async (look, options) => {
  const { page } = await visit(`${api.url}/ops`, { ...options, javaScriptEnabled: false });
  const acting = { page, inspector: await visit("about:blank", options), look };
  await createBatch(acting);
  const code = await printCodes(acting);
  const key = await createKey(acting);
  expect((await partnerClient(api.url, key).redeem({ code, externalRef: `order, ${look}` })).status).toBe(200);
  await voidBatch(acting);
  await linkReferrer(acting);
});

/** An operator's page without scripts, and one with scripts for axe, which checks accessibility. */
interface Acting {
  page: Page;
  inspector: Visit;
  look: string;
}

/** Opens the same address in the page with scripts, because axe is a script. */
async function inspect({ page, inspector, look }: Acting, what: string): Promise<void> {
  await inspector.page.goto(page.url());
  await expectSound(inspector, `acting, ${what}, ${look}`);
  expect((await page.content()).length, what).toBeLessThan(76_000);
}

/** Creates an organization, a brand, a product and a batch of 30 vouchers. */
async function createBatch(acting: Acting): Promise<void> {
  const { page, look } = acting;
  await page
    .getByRole("navigation", { name: "Operations" })
    .getByRole("link", { name: "Organizations" })
    .press("Enter");
  await page.getByRole("link", { name: "New organization" }).press("Enter");
  await inspect(acting, "a form");
  await send(page, { Name: "" });
  expect(await page.getByRole("alert").innerText()).toBe("Name must not be empty.");
  await photograph(page, `acting, a problem, ${look}`);
  await send(page, { Name: `${look} ${HOSTILE}`.slice(0, 200) });
  await page.getByRole("heading", { name: "Create a brand" }).waitFor();
  await send(page, { Name: HOSTILE });
  await inspect(acting, "a product's form");
  await send(page, { Name: HOSTILE, Key: "day", "List price": "20", "Price of the voucher": "15.00" });
  await inspect(acting, "a batch's form");
  await send(page, { "Number of vouchers": "30", "Valid until": "2999-12-31T23:59" });
  await inspect(acting, "a batch");
}

/** Downloads the codes of the batch and prints its first sheet. Returns the first code. */
async function printCodes(acting: Acting): Promise<string> {
  const { page, inspector, look } = acting;
  const downloading = page.waitForEvent("download");
  await page.getByRole("button", { name: "Codes as CSV" }).press("Enter");
  expect((await downloading).suggestedFilename()).toMatch(/^bat_\w+\.csv$/);
  await page.getByRole("link", { name: "Print sheet" }).press("Enter");
  await inspect(acting, "the choice of serials");
  await inspector.page.getByRole("button", { name: "Show these" }).press("Enter");
  await inspector.page.locator(".voucher").first().waitFor();
  await expectSound(inspector, `acting, the sheet on the screen, ${look}`);
  await page.getByRole("button", { name: "Show these" }).press("Enter");
  await page.locator(".voucher").first().waitFor();
  await page.waitForLoadState();
  expect((await page.content()).length).toBeLessThan(76_000);
  const code = await page.locator(".voucher code").first().innerText();
  expect(await page.locator(".voucher svg.qr").count()).toBe(24);
  await expectOnPaper(acting);
  return code;
}

/** Checks that the sheet fits one page of A4, with labels 34 mm high. */
async function expectOnPaper({ page, look }: Acting): Promise<void> {
  await page.emulateMedia({ media: "print" });
  await photograph(page, `acting, the sheet on paper, ${look}`);
  const boxes = await page
    .locator(".voucher")
    .evaluateAll((labels) => labels.map((label) => label.getBoundingClientRect().height));
  // A page has 96 dots per inch, and an inch has 25.4 mm.
  for (const height of boxes) expect(height).toBeCloseTo((34 * 96) / 25.4, 0);
  // Chromium writes one /Page object for each page of the PDF.
  const paper = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
  expect([paper.match(/\/Type \/Page\b/g)?.length, /\/MediaBox \[0 0 59[45](\.\d+)? 84[12]/.test(paper)]).toEqual([
    1,
    true,
  ]);
  await page.emulateMedia({ media: "screen" });
}

async function createKey(acting: Acting): Promise<string> {
  const { page, look } = acting;
  await page.getByRole("navigation", { name: "Where" }).getByRole("link").nth(1).press("Enter");
  await inspect(acting, "an organization");
  await page.getByRole("link", { name: "New API key" }).press("Enter");
  await inspect(acting, "a key's form");
  await send(page, { Label: "till <1>" });
  const key = await page.locator("pre.secret").innerText();
  await photograph(page, `acting, a key, ${look}`);
  return key;
}

/** Voids the batch, which has one redeemed voucher. */
async function voidBatch(acting: Acting): Promise<void> {
  const { page } = acting;
  await page.goBack();
  await page.goto(`${page.url().replace(/\/keys\/new$/, "")}#batches`);
  await page.getByRole("table", { name: "Batches" }).getByRole("link").first().press("Enter");
  await page.getByRole("link", { name: "Void the batch" }).press("Enter");
  await inspect(acting, "a void");
  await send(page, { "The product's name": HOSTILE });
  const report = "29 vouchers voided. Redeemed, voided or expired before: 1.";
  expect(await page.getByRole("status").innerText()).toContain(report);
}

/** Makes a link for a referrer whose contract with the brand is accepted. */
async function linkReferrer(acting: Acting): Promise<void> {
  const { page, look } = acting;
  await page.getByRole("navigation", { name: "Where" }).getByRole("link").nth(2).press("Enter");
  await page.getByRole("link", { name: "Offer a contract" }).press("Enter");
  await send(page, { User: `referrer on a ${look}` });
  await page.getByRole("link", { name: "Accept the contract" }).press("Enter");
  await send(page, {});
  await page.getByRole("link", { name: "Create a link" }).first().press("Enter");
  await send(page, {});
  // The page has only one QR code, because `waitFor` fails if two elements match.
  await page.locator("td svg.qr").waitFor();
  await inspect(acting, "a contract");
}

/** Fills in the fields with these labels and sends the form with the keyboard. */
async function send(page: Page, fields: Record<string, string>): Promise<void> {
  for (const [label, value] of Object.entries(fields)) await page.getByLabel(label).fill(value);
  await page.locator("form.act button").press("Enter");
}
