import { readFileSync } from "node:fs";
import { Queue } from "bullmq";
import { beforeAll, expect, it } from "vitest";
import { expectSound, findAxeViolations, LOOKS, photograph, updateImage, useBrowser } from "../support/browser.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";
const NOTE = "a note that names Mrs Miller";
const MANUAL = readFileSync(new URL("../../docs/console.md", import.meta.url), "utf8");
/** bull-board requests a web font from another host, which the page's policy blocks. */
const WEB_FONT = "fonts.googleapis.com";
const PAUSE = "/ops/queues/redeem/pause";

const { apis, servers, till, issue } = useService({
  apis: [{}, { OPS_WRITABLE: "true" }],
  env: { OPS_TOKEN: TOKEN, BASE_URL: "http://localhost" },
});
const [api, writable] = apis;
const visit = useBrowser(() => ({ httpCredentials: { username: "operator", password: TOKEN } }));
let voucher: { id: string; code: string };

beforeAll(async () => {
  voucher = await issue();
  await till.redeem({ code: voucher.code, externalRef: "order-of-dashboard-test", note: NOTE });
});

it.each(
  LOOKS,
)("the queue dashboard refuses a wrong password with a page that passes axe on a %s", async (look, options) => {
  const httpCredentials = { username: "operator", password: "the token of someone else" };
  const visited = await visit(`${api.url}/ops/queues/jobs`, { ...options, httpCredentials });
  expect(visited.status).toBe(401);
  await visited.page.getByText("This name and this token do not belong together").waitFor();
  await expectSound(visited, `dashboard refused, ${look}`, "401");
});

it.each(
  LOOKS,
)("on a %s, the queue dashboard has only accessibility violations listed in docs/console.md", async (look, options) => {
  const { page } = await visit("about:blank", options);
  const found = new Set<string>();
  for (const [path, element] of [
    ["/ops/queues/jobs", page.getByRole("link", { name: "Completed" })],
    ["/ops/queues/jobs/queue/redeem", page.getByText(voucher.id)],
  ] as const) {
    await page.goto(`${api.url}${path}`);
    await element.first().waitFor();
    for (const violation of await findAxeViolations(page)) found.add(violation.split(":")[0] ?? "");
  }
  const [list = ""] = /that axe reports, these remain:(?:.+\n)+/.exec(MANUAL) ?? [];
  const listed = Array.from(list.matchAll(/`([a-z-]+)`/g), ([, rule]) => rule);
  expect(
    [...found].filter((rule) => !listed.includes(rule)),
    look,
  ).toEqual([]);
  expect(listed.length).toBeGreaterThan(0);
});

it("the queue dashboard shows the queues redeem, seal and sweep after sign-in, without secrets", async () => {
  const { page, complaints } = await visit(`${api.url}/ops/queues/jobs`);
  const menu = page.getByRole("navigation");
  for (const name of ["redeem", "seal", "sweep"]) await menu.getByRole("link", { name, exact: true }).first().waitFor();
  await photograph(page, "dashboard");
  await menu.getByRole("link", { name: "redeem", exact: true }).first().click();
  await page.getByText(voucher.id).first().waitFor();
  await page.getByText("organizationId").first().waitFor();
  await photograph(page, "dashboard, redeem");
  await updateImage(page, "queue-dashboard");
  const words = await page.locator("body").innerText();
  expect(words).toContain("redacted");
  for (const secret of [voucher.code, NOTE, "order-of-dashboard-test"]) expect(words).not.toContain(secret);
  for (const action of ["Retry", "Promote", "Clean", "Pause", "Obliterate", "Add"]) {
    expect(await page.getByRole("button", { name: new RegExp(`^${action}`, "i") }).count(), action).toBe(0);
  }
  expect(otherThanFont(complaints)).toEqual([]);
});

it("the queue dashboard has the service's icon and loads only from its own origin", async () => {
  const { page, complaints } = await visit("about:blank");
  const origins = new Set<string>();
  page.on("response", (response) => origins.add(new URL(response.url()).origin));
  await page.goto(`${api.url}/ops/queues/jobs/queue/redeem`);
  await page.getByText(voucher.id).first().waitFor();
  expect(await page.locator("img[src*='/assets/icon.']").count()).toBe(1);
  expect(await page.locator("link[rel='icon']").getAttribute("href")).toContain("/assets/icon.");
  expect([...origins]).toEqual([api.url]);
  expect(otherThanFont(complaints)).toEqual([]);
});

it("the queue dashboard links a job to its voucher, and a failed job to the runbook", async () => {
  const queue = new Queue("redeem", {
    prefix: servers.queuePrefix,
    connection: { url: servers.redisUrl },
    skipMetasUpdate: true,
  });
  await queue.add("redeem", { code: "no worker can read this" });
  await until(async () => (await queue.getFailedCount()) === 1);
  await queue.close();
  const { page } = await visit(`${api.url}/ops/queues/jobs/queue/redeem?status=completed`);
  await page.locator(`a[href$='/ops/vouchers/${voucher.id}']`).first().waitFor();
  await page.goto(`${api.url}/ops/queues/jobs/queue/redeem?status=failed`);
  await page.locator("a[href$='/ops/runbook#VouchersJobsFail']").first().waitFor();
  await photograph(page, "dashboard, failed");
  await page.goto(`${api.url}/ops/runbook#VouchersJobsFail`);
  await page.getByRole("link", { name: "VouchersJobsFail" }).click();
  await page.getByRole("heading", { name: "VouchersJobsFail" }).waitFor();
});

it("the queue dashboard has a link back to the overview", async () => {
  const { page } = await visit(`${writable.url}/ops/queues/jobs/queue/redeem`);
  await page.getByText(voucher.id).first().waitFor();
  await page.locator("button[aria-haspopup='menu']").click();
  await page.getByRole("menuitem", { name: "Operations" }).click();
  await page.waitForURL(/\/ops\/?$/);
});

it("the queue dashboard in a browser requests only allowed read addresses, and each request succeeds", async () => {
  const { page, complaints } = await visit("about:blank");
  const asked = new Map<string, number>();
  page.on("response", (response) => asked.set(new URL(response.url()).pathname, response.status()));
  await page.goto(`${writable.url}/ops/queues/jobs/queue/redeem?status=completed`);
  await page.getByText(voucher.id).first().waitFor();
  await page.locator("a[href*='/queue/redeem/']").first().click();
  await page.getByText(voucher.id).first().waitFor();
  await page.getByText("organizationId").first().waitFor();
  const reads = [...asked].filter(([path]) => path.includes("/api/"));
  expect(reads.length).toBeGreaterThan(0);
  expect(reads.filter(([, status]) => status >= 400)).toEqual([]);
  expect(otherThanFont(complaints)).toEqual([]);
});

it("the queue dashboard refuses a change from another site, although the browser sends the password", async () => {
  const { page } = await visit(`${writable.url}/ops/queues`);
  // Under another host name the same service is another site. The policy of this page allows a form to the first site.
  await page.goto(`${writable.url.replace("127.0.0.1", "evil.test")}/assets/none`);
  const sent = page.waitForResponse((response) => response.url() === `${writable.url}${PAUSE}`);
  await page.evaluate(`
      const form = document.createElement("form");
      form.method = "post";
      form.action = "${writable.url}${PAUSE}";
      document.body.append(form);
      form.submit();
    `);
  const response = await sent;
  expect(await response.request().headerValue("authorization")).toMatch(/^Basic /);
  expect(response.status()).toBe(403);
  await page.getByText("This request came from a page of another site.").waitFor();
});

function otherThanFont(complaints: readonly string[]): string[] {
  return complaints.filter((complaint) => !complaint.includes(WEB_FONT));
}
