import { renameSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { expectSound, follow, LOOKS, photograph, useBrowser } from "../support/browser.ts";
import { partnerClient, type Reply } from "../support/client.ts";
import { beginTlog, makeTlogFiles, startWitness, type TlogFiles, tlogKey } from "../support/log-setup.ts";
import { makeOffer } from "../support/marketplace.ts";
import { startWorkers } from "../support/service.ts";
import { signCheckpoint } from "../support/sign-checkpoint.ts";
import { makeKey } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const TOKEN = "the token of the operators";

const { api, servers, db } = useService({
  apis: [{ OPS_TOKEN: TOKEN, OPS_WRITABLE: "true", BASE_URL: "http://localhost" }],
  workers: [{ WORKER_QUEUES: "redeem,seal,sweep", SWEEP_INTERVAL_MS: "500" }],
});
const visit = useBrowser(() => ({ httpCredentials: { username: "zoe", password: TOKEN } }));
let files: TlogFiles;
let keyIds: [works: string, revoked: string];
let offer: Awaited<ReturnType<typeof makeOffer>>;
let redeemed: { id: string; code: string };
let reserved: { id: string; code: string };
const webhookId = "whk_01jzbq0000e00a4g0g00000001";

beforeAll(async () => {
  files = makeTlogFiles();
  servers.onClose(async () => files.remove());
  offer = await makeOffer(db, 30);
  const [key, revoked] = [await makeKey(db, offer.organizationId), await makeKey(db, offer.organizationId)];
  keyIds = [key.id, revoked.id];
  await db.query("UPDATE api_keys SET label = 'till 1 of the corner shop' WHERE id = $1", [key.id]);
  await db.query("UPDATE api_keys SET revoked_at = now() WHERE id = $1", [revoked.id]);
  await makeKey(db, offer.organizationId, { expiresAt: new Date("2026-01-02T03:04:05Z") });
  const till = partnerClient(api.url, key.key);
  const [first, second, ...others] = offer.vouchers;
  if (first === undefined || second === undefined) throw new Error("no vouchers");
  [redeemed, reserved] = [first, second];
  // Repeats a call after a 503, as a partner does.
  const done = (call: () => Promise<Reply>) =>
    until(async () => {
      const { status, body } = await call();
      return status === 200 && body;
    });
  for (const { code } of others.slice(0, 8))
    await done(() => till.redeem({ code, externalRef: `order-2026-11-22-${code}` }));
  const { ticket } = await done(() => till.reserve(first.code));
  await done(() => till.redeem({ ticket, externalRef: "order-of-the-page", note: "for Mrs Miller" }));
  await done(() => till.reserve(second.code));
  files.setWitnesses([(await startWitness(servers, files)).url]);
  await beginTlog(db, files);
  const log = { WORKER_QUEUES: "log", DATABASE_URL: servers.logUrl, LOG_INTERVAL_MS: "100", ...files.env };
  await startWorkers(servers, log);
  await until(async () => (await fetch(`${api.url}/log/checkpoint`)).status === 200);
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, description, failing_since)
     VALUES ($1, $2, 1, 'https://shop.example.com/hooks/vouchers?for=the-back-office-of-the-corner-shop',
             'orders of the web shop', now())`,
    [webhookId, offer.organizationId],
  );
  await db.query(
    `INSERT INTO webhook_deliveries
       (position, created_at, next_attempt_at, finished_at, sequence, attempts, last_status, endpoint_id,
        event_id, voucher_id, event_type, state, last_failure)
     SELECT n, now() + n * interval '1 second', CASE n WHEN 4 THEN now() END, CASE WHEN n < 4 THEN now() END, n,
            CASE n WHEN 3 THEN 10 WHEN 5 THEN 0 ELSE 1 END, CASE WHEN n < 3 THEN 204 WHEN n = 3 THEN 503 END, $1,
            $2 || '-' || n, $2, 'voucher.instance.redeemed',
            CASE WHEN n < 3 THEN 'Delivered' WHEN n = 3 THEN 'Failed' ELSE 'Pending' END,
            CASE n WHEN 3 THEN 'status' WHEN 4 THEN 'refused_address' END
       FROM generate_series(1, 5) AS n`,
    [webhookId, redeemed.id],
  );
});

describe.each(LOOKS)("on a %s", (look, options) => {
  it("every operator page passes axe without JavaScript and does not overflow", async () => {
    // Opens all pages in one tab, because each new tab starts processes of the browser.
    const visited = await visit("about:blank", options);
    for (const [what, path] of pages()) {
      await visited.page.goto(`${api.url}/ops${path}`);
      if (look.startsWith("phone") || ["organizations", "the audit", "the webhook targets"].includes(what)) {
        for (const table of await visited.page.locator(".stacks").all())
          expect(await table.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth), what).toBe(0);
      }
      await expectSound(visited, `operators, ${what}, ${look}`);
    }
  });
});

it("an operators' search without a result shows the searched words, but not in the URL, and passes axe", async () => {
  const [look, phone] = LOOKS[1];
  const visited = await visit(`${api.url}/ops`, phone);
  await visited.page.getByLabel("Find", { exact: true }).fill("nothing");
  await visited.page.keyboard.press("Enter");
  await visited.page.getByRole("heading", { name: "Nothing found" }).waitFor();
  expect(visited.page.url()).toBe(`${api.url}/ops/vouchers`);
  expect(await visited.page.getByLabel("Find", { exact: true }).inputValue()).toBe("nothing");
  await expectSound(visited, `operators, nothing found, ${look}`);
});

it("the operators' search field has one row and collapsed help, in the page's font, even at 360 pixels", async () => {
  for (const width of [1280, 360]) {
    const { page } = await visit(`${api.url}/ops`, { viewport: { width, height: 800 }, javaScriptEnabled: false });
    const search = page.getByRole("search");
    const [field, button, help] = [
      search.getByRole("searchbox"),
      search.getByRole("button"),
      search.getByText("by code, ticket"),
    ];
    const boxes = await Promise.all([search, field, button].map((part) => part.boundingBox()));
    expect(boxes[0]?.height).toBeLessThan(1.5 * (boxes[1]?.height ?? 0));
    expect(await help.isVisible()).toBe(false);
    await search.locator("summary").click();
    expect(await help.isVisible()).toBe(true);
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    const fonts =
      "[...document.querySelectorAll('body, input, select')].map((part) => getComputedStyle(part).fontFamily)";
    expect(new Set((await page.evaluate(fonts)) as string[]).size).toBe(1);
    await photograph(page, `operators, the search with its help, ${width}`);
  }
});

it("an operator without JavaScript finds a voucher by order reference, then its organization and batch", async () => {
  const { page } = await visit(`${api.url}/ops`, { javaScriptEnabled: false });
  await page.getByLabel("Find", { exact: true }).fill("order-of-the-page");
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.url}/ops/vouchers/${redeemed.id}`);
  const life = await page.getByRole("list").last().innerText();
  expect(life).toMatch(/Issued[\s\S]*Reserved[\s\S]*Redeemed[\s\S]*order-of-the-page/);
  await follow(page.getByRole("link", { name: offer.organizationId }));
  expect(await page.getByRole("table", { name: "Redemptions" }).getByRole("row").count()).toBe(10);
  await follow(page.getByRole("link", { name: offer.batchId }));
  expect(await page.getByText("21", { exact: true }).first().isVisible()).toBe(true);
});

it("an operator without JavaScript finds an API key by its id on a phone, marked among other keys", async () => {
  const [, phone] = LOOKS[1];
  const { page } = await visit(`${api.url}/ops`, { ...phone, javaScriptEnabled: false });
  await page.getByLabel("Find", { exact: true }).fill(keyIds[0]);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${api.url}/ops/organizations/${offer.organizationId}#${keyIds[0]}`);
  const row = page.getByRole("table", { name: "API keys" }).getByRole("row", { name: keyIds[0] });
  expect(await row.innerText()).toMatch(/till 1 of the corner shop\s+Active/);
  const outlineOf = (id: string) =>
    page.evaluate(`getComputedStyle(document.getElementById("${id}").closest("tr")).outlineStyle`);
  expect([await outlineOf(keyIds[0]), await outlineOf(keyIds[1])]).toEqual(["solid", "none"]);
  // The browser scrolls to an anchor after the load.
  await until(async () => {
    const { y = -1, height = 0 } = (await row.boundingBox()) ?? {};
    return y >= 0 && y + height <= phone.viewport.height;
  });
  await photograph(page, "operators, a key that was found");
});

it("an operator without JavaScript releases a reservation from the reservation's page", async () => {
  const { page } = await visit(`${api.url}/ops/vouchers/${reserved.id}`, { javaScriptEnabled: false });
  await page.getByRole("button", { name: "Release this reservation" }).click();
  await page.getByText("released by an operator").waitFor();
  expect(await page.getByRole("button", { name: "Release this reservation" }).count()).toBe(0);
});

it("an operator without JavaScript can pause and resume a queue, and sees the pause on each page", async () => {
  const [, phone] = LOOKS[1];
  const { page } = await visit(`${api.url}/ops/queues/webhook`, { ...phone, javaScriptEnabled: false });
  const submit = async (act: string, reason: string) => {
    await follow(page.getByRole("link", { name: act, exact: true }));
    await page.getByLabel("Reason").fill(reason);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${api.url}/ops/queues/webhook`);
  };
  await submit("Pause", "the receiver is moved");
  await page.getByText("Paused: no worker takes a job").waitFor();
  expect(await page.locator(".verdict.bad").innerText()).toMatch(/By shared: zoe on .*: the receiver is moved/);
  await expectSound(await visit(`${api.url}/ops/queues`, phone), "operators, a paused queue");
  await until(async () => {
    await page.goto(`${api.url}/ops`);
    return (await page.locator("#jobs").innerText()).includes("Paused");
  });
  await follow(page.locator("#jobs").getByRole("link", { name: "webhook" }));
  await submit("Resume", "it has moved");
  expect(await page.getByText("Paused").count()).toBe(0);
});

it("the overview without JavaScript shows the numbers of one organization in tables", async () => {
  const { page } = await visit("about:blank", { javaScriptEnabled: false });
  await until(async () => {
    await page.goto(`${api.url}/ops`);
    return (await page.locator("#sums").innerText()).includes("9 redemptions");
  });
  await page.getByLabel("Organization", { exact: true }).selectOption(offer.organizationId);
  await page.getByRole("button", { name: "Show" }).click();
  await page.waitForURL(`${api.url}/ops?organization=${offer.organizationId}`);
  await page.getByText("Numbers: Last hour, per minute").click();
  const cells = await page.locator("#minutes td:nth-child(2)").allInnerTexts();
  expect(cells).toHaveLength(60);
  const { rows } = await db.query("SELECT count(*)::int AS redeemed FROM redemptions");
  expect(cells.reduce((sum, cell) => sum + (Number(cell) || 0), 0)).toBe(rows[0].redeemed);
  expect(await page.locator("[data-plot]:visible").count()).toBe(0);
});

it("the overview draws plots, and its text does not move when the page refreshes", async () => {
  const visited = await visit(`${api.url}/ops`);
  const { page } = visited;
  expect(await page.locator("[data-plot] canvas:visible").count()).toBe(3);
  const heading = page.locator("#servers");
  await heading.scrollIntoViewIfNeeded();
  await page.evaluate("getSelection().selectAllChildren(document.querySelector('#jobs'))");
  const before = { y: (await heading.boundingBox())?.y, jobs: await page.locator("#jobs").innerHTML() };
  await db.query("UPDATE webhook_endpoints SET failures = 3 WHERE id = $1", [webhookId]);
  await servers.redis.zadd(`{pva:${api.ctx.deployment.id}}:redeem:failed`, Date.now(), "job");
  await page.getByText("A webhook endpoint fails", { exact: true }).waitFor({ state: "attached" });
  // Scroll positions are whole pixels.
  expect(Math.abs(((await heading.boundingBox())?.y ?? 0) - (before.y ?? -1))).toBeLessThan(1);
  // A part of the page that the reader has selected is not refreshed.
  expect(await page.locator("#jobs").innerHTML()).toBe(before.jobs);
  await page.evaluate("getSelection().removeAllRanges()");
  await until(async () => (await page.locator("#jobs").innerHTML()) !== before.jobs);
  await expectSound(visited, "operators, the overview with a fault");
  await follow(page.getByRole("link", { name: "What to do about: A webhook endpoint fails" }));
  expect(await page.getByRole("heading", { name: "VouchersWebhooksFail" }).isVisible()).toBe(true);
});

it("the transparency log's page shows numbers of logged and served events, witnesses and anchors", async () => {
  const { page } = await visit(`${api.url}/ops`, { javaScriptEnabled: false });
  await follow(page.getByRole("link", { name: "Log", exact: true }));
  const facts = (await page.locator(".facts").innerText()).replaceAll(/\s+/g, " ");
  const figures = (await page.locator(".figures").innerText()).replaceAll(/\s+/g, " ");
  expect(figures).toMatch(/Leaves (\d+) Served \1 Age of the checkpoint \d+ s/);
  expect(facts).toMatch(/Log vouchers\.test\/log Lag None: nothing waits/);
  expect(facts).toMatch(/Last pass .* UTC: \d+ leaves placed in [\d,]+ ms/);
  const rowOf = (table: string) => page.getByRole("table", { name: table }).getByRole("row").nth(1).innerText();
  expect(await rowOf("Witnesses")).toMatch(/^w2\.test http:.*\d+ leaves\s+Cosigned .* UTC$/s);
  expect(await rowOf("Anchors")).toMatch(/\/anchor\s+\d+ leaves\s+Within the tree$/s);
  expect(await page.locator("pre").innerText()).toContain("— w2.test ");
});

it("the transparency log's page shows why the log stopped, and links to the remedy", async () => {
  // Replaces the log's anchor file in one step, because a running worker reads it.
  writeFileSync(`${files.anchor}.new`, await signCheckpoint(tlogKey, { size: 10_000, root: Buffer.alloc(32, 7) }));
  renameSync(`${files.anchor}.new`, files.anchor);
  const visited = await visit("about:blank");
  const { page } = visited;
  await until(async () => {
    await page.goto(`${api.url}/ops/log`);
    return (await page.locator(".verdict.bad").count()) === 1;
  });
  expect(await page.locator(".verdict.bad").innerText()).toMatch(
    /A signed checkpoint has 10000 leaves, the database \d+/,
  );
  expect(await page.getByRole("table", { name: "Anchors" }).innerText()).toContain("Larger than the database");
  await expectSound(visited, "operators, a refused log");
  await follow(page.getByRole("link", { name: "What to do" }));
  expect(await page.getByRole("heading", { name: "VouchersLogRefused" }).isVisible()).toBe(true);
});

/** The pages that the test opens in each variant of `LOOKS`. */
function pages(): [what: string, path: string][] {
  return [
    ["the overview", ""],
    ["organizations", "/organizations"],
    ["a found voucher", `/vouchers/${redeemed.id}`],
    ["a reserved voucher", `/vouchers/${reserved.id}`],
    ["an organization with a found key", `/organizations/${offer.organizationId}#${keyIds[0]}`],
    ["the last calls", `/organizations/${offer.organizationId}/calls`],
    ["a batch", `/batches/${offer.batchId}`],
    ["a webhook endpoint", `/webhooks/${webhookId}`],
    ["the search", "/vouchers"],
    ["the runbook", "/runbook"],
    ["the queues", "/queues"],
    ["a queue", "/queues/redeem"],
    ["the form that pauses a queue", "/queues/redeem/pause"],
    ["the log", "/log"],
    ["the webhook targets", "/webhooks"],
    ["the audit", "/audit"],
  ];
}
