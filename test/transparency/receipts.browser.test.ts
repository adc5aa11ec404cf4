import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Page } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { expectSound, LOOKS, photograph, useBrowser } from "../support/browser.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import {
  beginTlog,
  makeTlogFiles,
  openSequencer,
  startWitness,
  type TlogFiles,
  tlogKey,
} from "../support/log-setup.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";
import { LOG_VECTORS_FILE, type LogVectors } from "../support/write-log-vectors.ts";

const vectors: LogVectors = JSON.parse(readFileSync(LOG_VECTORS_FILE, "utf8"));
const redemption = String(vectors.receipts[2]?.receipt);
const FILE = pathToFileURL(resolve("dist/receipt-verifier.html")).href;

const { api, servers } = useService();
const visit = useBrowser();
let files: TlogFiles;
/** The client of a sandbox organization. */
let shop: PartnerClient;
/** The histories of two redeemed vouchers whose events are in the log, and of one that is not in the log yet. */
let [first, second, waiting] = ["", "", ""];

beforeAll(async () => {
  files = makeTlogFiles();
  servers.onClose(async () => files.remove());
  files.setWitnesses([(await startWitness(servers, files)).url]);
  const partner = await makePartner(servers.db, { sandbox: true });
  shop = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  const vouchers = await issueVouchers(servers.db, partner, 3);
  [first = "", second = "", waiting = ""] = vouchers.map(
    ({ id }) => `${api.url}/integrity/events/VoucherInstance/${id}/history`,
  );
  const redeem = (at: number) =>
    shop.redeem({ code: vouchers[at]?.code, externalRef: `order-${at + 1}`, note: "<b>Jürgen</b> 😀" });
  await redeem(0);
  await redeem(1);
  await beginTlog(servers.db, files);
  expect(await openSequencer(servers, files).run()).toMatchObject({ published: 5 });
  await redeem(2);
});

it("the downloadable verifier page verifies a receipt without a network, and shows its contents", async () => {
  const { page, complaints } = await visit("about:blank", { offline: true });
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
  expect([requests, complaints]).toEqual([[FILE], []]);
});

it("the downloadable verifier page accepts valid receipts, and broken ones only if pasting mends them", async () => {
  const { page } = await visit(FILE);
  for (const { receipt, name } of [...vectors.receipts, ...vectors.unusual]) {
    expect((await verify(page, receipt, vectors.policy)).look, name).toBe("good");
  }
  const accepted: string[] = [];
  for (const { receipt, name } of vectors.broken) {
    const { look, words } = await verify(page, receipt);
    if (look === "good") accepted.push(name);
    else if (look === "waiting") expect(words, name).toMatch(/^This is not a receipt\n/);
    else {
      const what = words.includes("The policy has no log") ? "of a log that the policy does not name" : "not valid";
      expect(words, name).toMatch(new RegExp(`^This receipt is ${what}\\. Do not rely on it\n+\\S.*\\.$`, "s"));
    }
  }
  // A text field turns CR and LF into LF, and the page trims a pasted text.
  expect(accepted).toEqual([
    "the lines end with CR and LF",
    "the last line end is missing",
    "there is a byte order mark before it",
    "an empty line is before it",
    "an empty line is after it",
  ]);
});

it("the downloadable verifier page needs a receipt and a policy that names the receipt's log", async () => {
  const { page } = await visit(FILE);
  for (const [receipt, policy, look, words] of [
    [redemption, "", "waiting", /Whom do you trust/],
    [
      redemption,
      tlogKey.text,
      "bad",
      /^This receipt is of a log that the policy does not name\. Do not .*\n+.* no log vouchers.example.com\/log\.$/,
    ],
    [
      redemption,
      vectors.keys.log.vkey.slice(0, -1),
      "waiting",
      /^The policy cannot be read\. The receipt is not verified\n+Line 1 of the policy /,
    ],
    ["https://vouchers.example.com/", vectors.policy, "waiting", /^This is not a receipt\n+A receipt begins with /],
    [redemption, vectors.keys.log.vkey, "good", /could show another log to others/],
  ] as const) {
    expect(await verify(page, receipt, policy)).toEqual({ look, words: expect.stringMatching(words) });
  }
});

it("a saved copy of the downloadable verifier page uses the policy that was saved with it", async () => {
  const withPolicy = (markup: string) => markup.replace(/(<textarea id="policy"[^>]*>)/, `$1${vectors.policy}`);
  const { page, complaints } = await visit(saveCopy("verifier.html", withPolicy));
  expect((await verify(page, redemption)).look).toBe("good");
  expect(complaints).toEqual([]);
});

it("the downloadable verifier page's content security policy allows only its own script, and no request", async () => {
  const forged = `<script>document.title = "forged"</script><img src="${api.url}/assets/x">`;
  const { page, complaints } = await visit("about:blank");
  const requests: string[] = [];
  page.on("requestfinished", (request) => requests.push(request.url()));
  await page.goto(saveCopy("forged.html", (markup) => markup.replace("</main>", `</main>${forged}`)));
  expect(await page.title()).toBe("Receipt verifier");
  expect(complaints).toHaveLength(2);
  expect(requests.filter((url) => url.startsWith("http"))).toEqual([]);
});

it("the downloadable verifier page says if the browser lacks Ed25519, and reports no receipt as verified", async () => {
  const { page } = await visit("about:blank");
  await page.addInitScript(
    "crypto.subtle.importKey = () => Promise.reject(new DOMException('no', 'NotSupportedError'))",
  );
  await page.goto(FILE);
  const { look, words } = await verify(page, redemption, vectors.policy);
  expect(look).toBe("waiting");
  expect(words).toContain("This browser cannot verify signatures. The receipt is not verified");
  expect(words).toContain("need Chrome or Edge 137, Firefox 129 or Safari 17");
  expect(await page.locator("#receipt-result li.good").count()).toBe(1);
  // Without signature checks, the browser still detects other errors.
  const broken = vectors.broken.find(({ name }) => name === "a bit of the payload was flipped");
  expect((await verify(page, String(broken?.receipt))).look).toBe("bad");
});

it("the verification page verifies a sandbox's receipt against the voucher's history, and sends nothing", async () => {
  const { page, complaints } = await visit(first);
  await page.locator("#verdict.good").waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const receipt = (await shop.receipt("order-1")).body;
  const { look, words } = await verify(page, receipt);
  expect(look).toBe("good");
  expect(words).toContain("It is entry 2 of the history on this page.");
  expect(words).toContain("<b>Jürgen</b> 😀");
  expect(words).toMatch(/Sandbox\s+true: the voucher is for tests and has no value\n/);
  const other = await verify(page, (await shop.receipt("order-2")).body);
  expect(other.look).toBe("waiting");
  expect(other.words).toMatch(/^This receipt is valid under this policy, but it is of another voucher/);
  expect(other.words).toContain(`It is about another voucher: ${second.split("/").at(-2)}.`);
  expect((await verify(page, receipt.replace(/index \d/, "index 0"))).look).toBe("bad");
  expect([requests, complaints]).toEqual([[], []]);
});

it("the verification page verifies an entry's proof with the displayed hash", async () => {
  const { page } = await visit(first);
  const proofOf = async (history: string) => (await fetch(new URL("2/proof", history))).text();
  expect((await verify(page, await proofOf(first))).look).toBe("good");
  expect(await verify(page, await proofOf(second))).toMatchObject({ look: "bad", words: /no recordHash was given/ });
});

it("the verification page says if a receipt contradicts the displayed history", async () => {
  const { page } = await visit("about:blank");
  await page.route(first, async (route) => {
    const response = await route.fetch();
    const markup = await response.text();
    const forged = markup.replace(/(id="entry-2"[\s\S]*?record-hash copied">)[0-9a-f]{8}/, "$100000000");
    await route.fulfill({ response, body: forged });
  });
  await page.goto(first);
  const { look, words } = await verify(page, (await shop.receipt("order-1")).body);
  expect([look, words]).toEqual(["bad", expect.stringMatching(/contradicts the history on this page\. Keep it\./)]);
  await photograph(page, "receipt, contradiction");
});

it("the verification page shows which entries are in the log, and reloads until all entries are", async () => {
  const { page, complaints } = await visit(first);
  expect(await page.locator("#log").innerText()).toBe(
    "Every entry here is in the log vouchers.test/log, up to its signed state of 5 entries.",
  );
  expect(await page.locator("td.leaf").allInnerTexts()).toEqual([
    expect.stringMatching(/^No\. [0-2] in the log · Proof\s+of entry 1$/),
    expect.stringMatching(/^No\. [34] in the log · Proof\s+of entry 2$/),
  ]);
  await page.goto(waiting);
  expect(await page.locator("#log.pending").innerText()).toMatch(
    /^Entry 2 is not yet in the log .* entries\. .* within seconds\. This page looks again by itself\.$/,
  );
  expect(await page.locator("#entry-2 .leaf").innerText()).toBe("Not in the log yet");
  expect(await openSequencer(servers, files).run()).toMatchObject({ published: 6 });
  await page.locator("#log:not(.pending)").waitFor();
  expect(await page.locator("#log").innerText()).toMatch(/^Every entry here is in the log/);
  expect(complaints).toEqual([]);
});

it("the verification page offers the downloadable verifier page", async () => {
  const { page } = await visit(first);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "The same as a file" }).click();
  expect(readFileSync(await (await download).path(), "utf8")).toBe(readFileSync("dist/receipt-verifier.html", "utf8"));
});

it.each(LOOKS)("both pages that verify receipts pass axe and do not overflow on a %s", async (look, options) => {
  for (const [what, address] of [
    ["file", FILE],
    ["history", first],
  ] as const) {
    const visited = await visit(address, options);
    await verify(visited.page, redemption, vectors.policy);
    await expectSound(visited, `receipt, ${what}, valid, ${look}`);
    await verify(visited.page, redemption.replace("index 2", "index 3"));
    await expectSound(visited, `receipt, ${what}, broken, ${look}`);
  }
});

/** Verifies a receipt with a page's form. `policy`, if given, replaces the policy in the form. */
async function verify(page: Page, receipt: string, policy?: string) {
  await page.getByLabel("Receipt", { exact: true }).fill(receipt);
  if (policy !== undefined) await page.getByLabel("Policy: the log and the witnesses that you trust").fill(policy);
  await page.getByRole("button", { name: "Verify the receipt" }).click();
  const result = page.locator("#receipt-result.verdict");
  await result.waitFor();
  return { look: (await result.getAttribute("class"))?.replace("verdict ", ""), words: await result.innerText() };
}

/** Saves a changed copy of the verifier's file. */
function saveCopy(name: string, change: (markup: string) => string): string {
  const copy = join(files.directory, name);
  writeFileSync(copy, change(readFileSync("dist/receipt-verifier.html", "utf8")));
  return pathToFileURL(copy).href;
}
