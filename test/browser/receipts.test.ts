import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  findAxeViolations,
  LOOKS,
  measureOverflow,
  openPage,
  photograph,
  startBrowser,
  type Visit,
} from "../support/browser.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { beginLog, type LogFiles, logKey, makeLogFiles, openSequencer, startWitness } from "../support/log-setup.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi } from "../support/service.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../support/write-log-vectors.ts";

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const redemption = String(vectors.receipts[2]?.receipt);
const FILE = pathToFileURL(resolve("docs/receipt-verifier.html")).href;

let browser: Browser;
let servers: TestServers;
let files: LogFiles;
let api: TestApi;
let till: PartnerClient;
/** Two redeemed vouchers whose events are in the log, and one whose redemption is not in the log yet. */
let first: { id: string; code: string };
let second: { id: string; code: string };
let waiting: { id: string; code: string };

beforeAll(async () => {
  servers = await openTestServers();
  files = makeLogFiles();
  files.setWitnesses([(await startWitness(servers, files)).url]);
  [api, , browser] = await Promise.all([startApi(servers), startWorkers(servers), startBrowser()]);
  const partner = await makePartner(servers.db, { sandbox: true });
  till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  const made = await issueVouchers(servers.db, partner, 3);
  const [one, two, three] = made;
  if (one === undefined || two === undefined || three === undefined) throw new Error("no vouchers");
  [first, second, waiting] = [one, two, three];
  await till.redeem({ code: first.code, externalRef: "order-1", note: "<b>Jürgen</b> 😀" });
  await till.redeem({ code: second.code, externalRef: "order-2" });
  await beginLog(servers.db, files);
  expect(await openSequencer(servers, files).run()).toMatchObject({ published: 5 });
  await till.redeem({ code: waiting.code, externalRef: "order-3" });
});

afterAll(async () => {
  await browser.close();
  await endService(servers);
  files.remove();
});

const historyOf = ({ id }: { id: string }) => `${api.url}/integrity/events/VoucherInstance/${id}`;

async function visit(address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const opened = await openPage(browser, options);
  await opened.page.goto(address);
  return opened;
}

/** Verifies a receipt with a page's form. `policy`, if given, replaces the policy in the form. */
async function verify(page: Page, receipt: string, policy?: string) {
  await page.getByLabel("Receipt", { exact: true }).fill(receipt);
  if (policy !== undefined) await page.getByLabel("Policy: the log and the witnesses that you trust").fill(policy);
  await page.getByRole("button", { name: "Verify the receipt" }).click();
  const result = page.locator("#receipt-result.verdict");
  await result.waitFor();
  return { look: (await result.getAttribute("class"))?.replace("verdict ", ""), words: await result.innerText() };
}

it("the verifier file verifies a receipt without a network, shows what it proves, and requests nothing", async () => {
  const { page, complaints, close } = await openPage(browser, { offline: true });
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(FILE);
  const { look, words } = await verify(page, redemption, vectors.policy);
  expect(look).toBe("good");
  for (const part of [
    "This receipt is valid under this policy",
    "Leaf 2 is in the checkpoint of vouchers.example.com/log with 9 leaves.",
    "witness.example.net/w1 saw it at 2027-01-15T08:00:00Z.",
    "voucher.instance.redeemed",
    "Bestellung № 4711/ä",
    "19.9",
  ]) {
    expect(words).toContain(part);
  }
  expect(words).not.toContain("sandbox");
  expect(requests).toEqual([FILE]);
  expect(complaints).toEqual([]);
  await close();
});

it("the verifier file accepts every valid receipt of the test vectors, and rejects every broken one unless a text field repairs its line ends", async () => {
  const { page, close } = await visit(FILE);
  for (const { receipt, name } of vectors.receipts) {
    expect((await verify(page, receipt, vectors.policy)).look, name).toBe("good");
  }
  const accepted: string[] = [];
  for (const { receipt, name } of vectors.broken) {
    const { look, words } = await verify(page, receipt);
    if (look === "good") accepted.push(name);
    else {
      const what = words.includes("The policy has no log") ? "of a log that the policy does not name" : "not valid";
      expect(words, name).toMatch(new RegExp(`^This receipt is ${what}\\. Do not rely on it\n+\\S.*\\.$`, "s"));
    }
  }
  // A text field turns CR and LF into LF, and the page adds the end of the last line.
  expect(accepted).toEqual(["the lines end with CR and LF", "the last line end is missing"]);
  await close();
});

it("the verifier file verifies nothing without a receipt and a policy that names the log, and warns about a policy without witnesses", async () => {
  const { page, close } = await visit(FILE);
  expect(await verify(page, redemption, "")).toMatchObject({ look: "waiting", words: /Whom do you trust/ });
  expect(await verify(page, redemption, logKey.text)).toMatchObject({
    look: "bad",
    words:
      /^This receipt is of a log that the policy does not name\. Do not rely on it\n+The policy has no log vouchers.example.com\/log\.$/,
  });
  expect(await verify(page, redemption, vectors.keys.log.vkey.slice(0, -1))).toMatchObject({
    look: "waiting",
    words: /^The policy cannot be read\. The receipt is not verified\n+Line 1 of the policy /,
  });
  expect(await verify(page, "https://vouchers.example.com/", vectors.policy)).toMatchObject({
    look: "waiting",
    words: /^This is not a receipt\n+A receipt begins with /,
  });
  const { look, words } = await verify(page, redemption, vectors.keys.log.vkey);
  expect([look, words]).toEqual(["good", expect.stringContaining("could show another log to others")]);
  await close();
});

it("the verifier file uses a policy that is saved in the file", async () => {
  const copy = join(files.directory, "verifier.html");
  const withPolicy = readFileSync("docs/receipt-verifier.html", "utf8").replace(
    /(<textarea id="policy"[^>]*>)/,
    `$1${vectors.policy}`,
  );
  writeFileSync(copy, withPolicy);
  const { page, complaints, close } = await visit(pathToFileURL(copy).href);
  expect((await verify(page, redemption)).look).toBe("good");
  expect(complaints).toEqual([]);
  await close();
  rmSync(copy);
});

it("the verifier file runs no other script and loads nothing, because its content security policy forbids it", async () => {
  const copy = join(files.directory, "forged.html");
  const forged = `<script>document.title = "forged"</script><img src="${api.url}/assets/x">`;
  writeFileSync(copy, readFileSync("docs/receipt-verifier.html", "utf8").replace("</main>", `</main>${forged}`));
  const { page, complaints, close } = await openPage(browser);
  const requests: string[] = [];
  page.on("requestfinished", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(copy).href);
  expect(await page.title()).toBe("Receipt verifier");
  expect(complaints).toHaveLength(2);
  expect(requests.filter((url) => url.startsWith("http"))).toEqual([]);
  await close();
  rmSync(copy);
});

it("the verifier file reports no receipt as verified in a browser without Ed25519, and says why", async () => {
  const { page, close } = await openPage(browser);
  await page.addInitScript(
    "crypto.subtle.importKey = () => Promise.reject(new DOMException('no', 'NotSupportedError'))",
  );
  await page.goto(FILE);
  const { look, words } = await verify(page, redemption, vectors.policy);
  expect(look).toBe("waiting");
  expect(words).toContain("This browser cannot verify signatures. The receipt is not verified");
  expect(words).toContain("need Chrome or Edge 137, Firefox 129 or Safari 17");
  expect(await page.locator("#receipt-result li.good").count()).toBe(1);
  // It still detects errors that need no signature check.
  const broken = vectors.broken.find(({ name }) => name === "a bit of the payload was flipped");
  expect((await verify(page, String(broken?.receipt))).look).toBe("bad");
  await photograph(page, "receipt, no Ed25519");
  await close();
});

it("the verification page shows which entries are in the log, with links to their proofs, and the size of the checkpoint", async () => {
  const { page, complaints, close } = await visit(historyOf(first));
  expect(await page.locator("#log").innerText()).toBe(
    "Every entry here is in the log vouchers.test/log, up to its checkpoint of 5 leaves.",
  );
  expect(await page.locator("td.leaf").allInnerTexts()).toEqual([
    expect.stringMatching(/^Leaf [0-2] · Proof\s+of entry 1$/),
    expect.stringMatching(/^Leaf [34] · Proof\s+of entry 2$/),
  ]);
  await page.goto(historyOf(waiting));
  expect(await page.locator("#log").innerText()).toMatch(
    /^Entry 2 is not yet in the log .* leaves\. It usually gets there within seconds\. This page looks again by itself\.$/,
  );
  expect(await page.locator("#entry-2 .leaf").innerText()).toBe("Not in the log yet");
  expect(complaints).toEqual([]);
  await close();
});

it("the verification page verifies a sandbox's receipt with the served policy, says that it is one, finds its entry in the history, and sends nothing", async () => {
  const receipt = (await till.receipt("order-1")).body;
  const { page, complaints, close } = await visit(historyOf(first));
  await page.locator("#verdict.good").waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const { look, words } = await verify(page, receipt);
  expect([look, words]).toEqual(["good", expect.stringContaining("It is entry 2 of the history on this page.")]);
  expect(words).toContain("<b>Jürgen</b> 😀");
  expect(words).toMatch(/Sandbox\s+true: the voucher is for tests and has no value\n/);
  expect(await verify(page, (await till.receipt("order-2")).body)).toEqual({
    look: "waiting",
    words: expect.stringMatching(
      new RegExp(
        `^This receipt is valid under this policy, but it is of another voucher.*It is about another voucher: ${second.id}\\.`,
        "s",
      ),
    ),
  });
  expect((await verify(page, receipt.replace(/index \d/, "index 0"))).look).toBe("bad");
  expect([requests, complaints]).toEqual([[], []]);
  await close();
});

it("the verification page verifies the proof of an entry with the hash that the page shows", async () => {
  const { page, close } = await visit(historyOf(first));
  const proof = await (await fetch(`${historyOf(first)}/2/proof`)).text();
  expect((await verify(page, proof)).look).toBe("good");
  const other = await (await fetch(`${historyOf(second)}/2/proof`)).text();
  expect(await verify(page, other)).toMatchObject({ look: "bad", words: /no recordHash was given/ });
  await close();
});

it("the verification page says that a receipt contradicts the page if the history on the page was changed", async () => {
  const receipt = (await till.receipt("order-1")).body;
  const { page, close } = await openPage(browser);
  await page.route(historyOf(first), async (route) => {
    const response = await route.fetch();
    const forge = (markup: string) =>
      markup.replace(/(id="entry-2"[\s\S]*?record-hash copied">)[0-9a-f]{8}/, "$100000000");
    await route.fulfill({ response, body: forge(await response.text()) });
  });
  await page.goto(historyOf(first));
  const { look, words } = await verify(page, receipt);
  expect([look, words]).toEqual(["bad", expect.stringMatching(/contradicts the history on this page\. Keep it\./)]);
  await photograph(page, "receipt, contradiction");
  await close();
});

it("the verification page looks again by itself until the log has every entry", async () => {
  const { page, close } = await visit(historyOf(waiting));
  await page.locator("#log.pending").waitFor();
  expect(await openSequencer(servers, files).run()).toMatchObject({ published: 6 });
  await page.locator("#log:not(.pending)").waitFor();
  expect(await page.locator("#log").innerText()).toMatch(/^Every entry here is in the log/);
  await close();
});

it("the verification page offers the verifier file as a download", async () => {
  const { page, close } = await visit(historyOf(first));
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "The same as a file" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe(readFileSync("docs/receipt-verifier.html", "utf8"));
  await close();
});

describe.each(LOOKS)("on a %s", (look, options) => {
  it("the file and the page pass axe and do not overflow, with a valid and with a broken receipt", async () => {
    for (const [what, address, policy] of [
      ["file", FILE, vectors.policy],
      ["history", historyOf(first), vectors.policy],
    ] as const) {
      const { page, complaints, close } = await visit(address, options);
      await verify(page, redemption, policy);
      expect(await findAxeViolations(page)).toEqual([]);
      expect(await measureOverflow(page)).toBe(0);
      await photograph(page, `receipt, ${what}, valid, ${look}`);
      await verify(page, redemption.replace("index 2", "index 3"));
      expect(await findAxeViolations(page)).toEqual([]);
      expect(await measureOverflow(page)).toBe(0);
      await photograph(page, `receipt, ${what}, broken, ${look}`);
      expect(complaints).toEqual([]);
      await close();
    }
  });
});
