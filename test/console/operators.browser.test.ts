import { expect, it } from "vitest";
import { expectSound, photograph, useBrowser } from "../support/browser.ts";
import { makeOperators } from "../support/operators.ts";
import { issueVoucher } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";

const { api, db, partner } = useService({
  apis: [{ OPS_TOKEN: TOKEN, OPS_WRITABLE: "true", BASE_URL: "http://localhost" }],
  shards: 1,
});
const visit = useBrowser();

it("an admin creates an operator, who signs in with the token that the page shows once", async () => {
  const credentials = { httpCredentials: { username: "ada", password: TOKEN } };
  const admin = await visit(`${api.url}/ops/operators`, credentials);
  const { page } = admin;
  await page.getByRole("link", { name: "New operator" }).click();
  await expectSound(admin, "the form of an operator");
  await page.getByLabel("Name").fill("Zoë");
  await page.getByLabel("Role").selectOption("operator");
  await page.getByRole("button", { name: "Create an operator" }).click();
  const token = await page.locator(".secret").innerText();
  await photograph(page, "an operator's token");
  await page.getByRole("link", { name: "Continue" }).click();
  await page.goto(`${api.url}/ops/operators`);
  expect(await page.locator("main").innerText()).not.toContain(token);
  await expectSound(admin, "the operators");
  await photograph(page, "the operators");
  const operator = await visit(`${api.url}/ops`, { httpCredentials: { username: "Zoë", password: token } });
  expect(await operator.page.locator("main").innerText()).toContain("Signed in as Zoë, with the role operator.");
  await page.getByRole("link", { name: "Revoke" }).first().click();
  await page.getByRole("button", { name: "Revoke the operator" }).click();
  await page.getByText("Revoked").waitFor();
  expect((await operator.page.reload())?.status()).toBe(401);
});

it("an operator of each role sees exactly the actions of that role", async () => {
  const operators = await makeOperators(db);
  const { id } = await issueVoucher(db, partner);
  const { rows } = await db.query("SELECT batch_id AS batch FROM vouchers WHERE id = $1", [id]);
  const offers: Record<string, string[]> = {};
  for (const [role, { name, token }] of Object.entries(operators)) {
    const visitor = await visit(`${api.url}/ops`, { httpCredentials: { username: name, password: token } });
    const { page } = visitor;
    expect(await page.locator("main").innerText()).toContain(`Signed in as ${name}, with the role ${role}.`);
    offers[role] = [];
    for (const path of [`/vouchers/${id}`, `/batches/${rows[0].batch}`, "/queues/redeem", "/operators"]) {
      await page.goto(`${api.url}/ops${path}`);
      const acts = page.locator("main .actions a, main .actions button");
      offers[role].push(...(await acts.allInnerTexts()));
      await expectSound(visitor, `${path} as ${role}`);
    }
    const form = await page.goto(`${api.url}/ops/organizations/new`);
    expect([role, form?.status()]).toEqual([role, role === "admin" ? 200 : 403]);
    if (role !== "admin") {
      await page.getByText(`This needs the role admin. You are signed in as ${role}.`).waitFor();
      await photograph(page, `refused as ${role}`);
    }
    expect((await page.goto(`${api.url}/ops/queues/jobs/`))?.status()).toBe(200);
  }
  expect(offers.viewer).toEqual([]);
  expect(offers.operator).toEqual(expect.arrayContaining(["Void this voucher", "Print sheet", "Codes as CSV"]));
  expect(offers.operator).not.toEqual(expect.arrayContaining(["Void the batch"]));
  expect(offers.admin).toEqual(expect.arrayContaining([...(offers.operator ?? []), "Void the batch", "New operator"]));
});
