import { createHash } from "node:crypto";
import type { Browser, BrowserContextOptions, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sealVoucher } from "../../src/services/chain/seal-events.ts";
import {
  findAxeViolations,
  LOOKS,
  measureOverflow,
  openPage,
  photograph,
  startBrowser,
  updateImage,
  type Visit,
} from "../support/browser.ts";
import { partnerClient } from "../support/client.ts";
import { appendPending } from "../support/pending-events.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

interface Chained {
  id: string;
  payloads: string[];
  hashes: string[];
}

let servers: TestServers;
let api: TestApi;
let worker: TestWorker;
let partner: TestPartner;
let browser: Browser;
/** Three chains: issued and redeemed; 53 sealed events; issued, then claimed with a pending event. */
let redeemed: Chained;
let long: Chained;
let pending: Chained;
/** One page per set of browser options, shared by the tests. */
const visits = new Map<string, Visit>();

beforeAll(async () => {
  servers = await openTestServers();
  [api, worker, browser] = await Promise.all([startApi(servers), startWorkers(servers), startBrowser()]);
  partner = await makePartner(servers.db);
  const till = partnerClient(api.url, (await makeKey(servers.db, partner.organizationId)).key);
  const makeChain = async (grow: (voucher: { id: string; code: string }) => Promise<unknown>): Promise<Chained> => {
    const voucher = await issueVoucher(servers.db, partner);
    await grow(voucher);
    const { events } = (await till.events(voucher.code)).body;
    return {
      id: voucher.id,
      payloads: events.map((event: { payload: string }) => event.payload),
      hashes: events.map((event: { recordHash: string }) => event.recordHash),
    };
  };
  redeemed = await makeChain(({ code }) => till.redeem({ code, externalRef: "order 1", note: 'für "Jürgen" 😀\n' }));
  long = await makeChain(async ({ id }) => {
    await appendPending(servers.db, id, 52);
    await sealVoucher(worker.ctx, id);
  });
  pending = await makeChain(({ id }) => appendPending(servers.db, id, 1));
});

afterAll(async () => {
  await browser.close();
  await api.close();
  await worker.close();
  await servers.close();
});

const addressOf = ({ id }: Chained, query = "") => `${api.url}/integrity/events/VoucherInstance/${id}${query}`;

/** Opens an address in the page for these browser options. */
async function visit(address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const look = JSON.stringify(options);
  const visit = visits.get(look) ?? (await openPage(browser, options));
  visits.set(look, visit);
  visit.complaints.length = 0;
  await visit.page.goto(address);
  return visit;
}

/** Opens a chain's page with markup that a dishonest server has changed. */
async function visitForged(chain: Chained, forge: (markup: string) => string, options: BrowserContextOptions = {}) {
  const { page } = await visit("about:blank", options);
  const forgeOnce = async (route: Route) => {
    const response = await route.fetch();
    const markup = await response.text();
    const forged = forge(markup);
    expect(forged).not.toBe(markup);
    await route.fulfill({ response, body: forged });
  };
  await page.route(addressOf(chain), forgeOnce, { times: 1 });
  await page.goto(addressOf(chain));
  return page;
}

/** Pastes a text into the page and reads the page's verdict. */
async function paste({ page }: Pick<Visit, "page">, text: string) {
  await page.getByLabel("Payload of one entry").fill(text);
  await page.getByRole("button", { name: "Hash and compare" }).click();
  const result = page.locator("#payload-result");
  const hash = createHash("sha256").update(text.trim(), "utf8").digest("hex");
  return { result, hash, words: async () => (await result.innerText()).replaceAll(/\s+/g, " ") };
}

it("the verification page says first what happened last, in the reader's time, and that the history is intact", async () => {
  const { page } = await visit(addressOf(redeemed));
  await page.locator("#verdict.good").waitFor();
  const sentence = await page.locator("#verdict strong").innerText();
  expect(sentence).toMatch(/^Redeemed on \d+ \w+ \d{4}, \d\d:\d\d your time\. The history is intact\.$/);
  const shown = await page.locator("#verdict time").innerText();
  const moment = new Date((await page.locator("#verdict time").getAttribute("datetime")) ?? "");
  const berlin = new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: "Europe/Berlin" });
  expect(shown).toContain(`, ${berlin.format(moment)} your time`);
});

it("the verification page shows each event in plain words, with its time in UTC and in local time, and its seal", async () => {
  const { page, complaints } = await visit(addressOf(redeemed), { viewport: { width: 1000, height: 1165 } });
  const rows = page.getByRole("row").filter({ has: page.getByRole("rowheader") });
  expect(await rows.count()).toBe(2);
  const words = await rows.nth(1).innerText();
  expect(words).toContain("Redeemed");
  expect(words).toContain("The voucher was used at a checkout. It cannot be used again.");
  expect(words).toContain("Sealed");
  expect(words).not.toContain(redeemed.hashes[1]);
  expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC/);
  expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d CES?T local time/);
  await page.locator("#verdict.good").waitFor();
  await updateImage(page, "verification-page");
  expect(complaints).toEqual([]);
});

it("the verification page shows each time once to a reader in UTC", async () => {
  const { page } = await visit(addressOf(redeemed), { timezoneId: "UTC" });
  await page.locator("#verdict.good").waitFor();
  expect(await page.getByText("local time").count()).toBe(0);
  expect(await page.locator("#verdict strong").innerText()).toMatch(/, \d\d:\d\d UTC\. The history is intact\.$/);
});

it("the verification page folds the hashes away and copies each of them, and the voucher's id, at a click", async () => {
  const { page, complaints, close } = await openPage(browser, { permissions: ["clipboard-read", "clipboard-write"] });
  // The page says "Copied" for two seconds, which pass only when the test says so.
  await page.clock.install();
  await page.goto(addressOf(redeemed));
  await page.clock.pauseAt(Date.now() + 60_000);
  const hash = page.locator("#entry-2 .record-hash");
  expect(await hash.isVisible()).toBe(false);
  await page.locator("#entry-2 summary").click();
  expect(await hash.innerText()).toBe(redeemed.hashes[1]);
  const copied = async (name: string) => {
    await page.getByRole("button", { name, exact: true }).click();
    await page.getByText("Copied").waitFor();
    const text = await page.evaluate("navigator.clipboard.readText()");
    await page.clock.runFor(2_000);
    await page.getByText("Copied").waitFor({ state: "detached" });
    return text;
  };
  expect(await copied("Copy hash of entry 2")).toBe(redeemed.hashes[1]);
  expect(await copied("Copy previous hash of entry 2")).toBe(redeemed.hashes[0]);
  expect(await copied("Copy voucher id")).toBe(redeemed.id);
  expect(complaints).toEqual([]);
  await close();
});

it("the verification page checks every link itself and says that all hold", async () => {
  const { page } = await visit(addressOf(redeemed));
  const verdict = page.getByRole("status").first();
  await verdict.getByText("The history is intact.").waitFor();
  expect(await verdict.innerText()).toContain("each later entry contains the hash of the previous one");
  expect(await page.locator(".mark.good").allInnerTexts()).toEqual(["The start of the chain", "Linked to entry 1"]);
});

it.each<[what: string, forge: (markup: string) => string, says: string]>([
  [
    "a link to a wrong hash",
    (markup) =>
      markup.replace(`previous-hash copied">${redeemed.hashes[0]}`, `previous-hash copied">${redeemed.hashes[1]}`),
    "Entry 2: Its previous hash is not the hash of entry 1.",
  ],
  [
    "an entry with a changed hash",
    (markup) => markup.replace(`record-hash copied">${redeemed.hashes[0]}`, `record-hash copied">${"a".repeat(64)}`),
    "Entry 2: Its previous hash is not the hash of entry 1.",
  ],
  [
    "a missing first entry",
    (markup) => markup.replace(/<tr role="row" id="entry-1"[\s\S]*?<\/tr>/, ""),
    "Entry 2: Entry 1 is missing before it.",
  ],
  [
    "a first entry that does not link to zeros",
    (markup) => markup.replace("0".repeat(64), "f".repeat(64)),
    "Entry 1: It is the first entry, but its previous hash is not 64 zeros.",
  ],
  [
    "a malformed hash",
    (markup) => markup.replace(`record-hash copied">${redeemed.hashes[1]}`, `record-hash copied">${"z".repeat(64)}`),
    "Entry 2: Its hash is not a SHA-256 hash.",
  ],
])("the verification page says that the chain is broken, and names the entry: %s", async (_what, forge, says) => {
  const page = await visitForged(redeemed, forge);
  const verdict = page.getByRole("status").first();
  await verdict.getByText("This history is broken. Do not rely on it.").waitFor();
  expect(await verdict.innerText()).toContain(says);
  expect(await verdict.innerText()).not.toContain("intact");
  expect(await page.locator("tr.faulty").count()).toBe(1);
  expect(await page.locator("tr.faulty .mark.bad").isVisible()).toBe(true);
  expect(await page.locator(".mark.bad").count()).toBe(1);
});

it("the verification page is amber while an entry is pending, does not report it as a fault, and looks again until it is sealed", async () => {
  const voucher = await issueVoucher(servers.db, partner);
  await appendPending(servers.db, voucher.id, 1);
  const { page } = await visit(addressOf({ ...redeemed, id: voucher.id }));
  const verdict = page.locator("#verdict");
  await verdict.getByText("The sealed entries are intact.").waitFor();
  expect(await verdict.getAttribute("class")).toBe("verdict waiting");
  expect(await verdict.innerText()).toMatch(/Claimed on .*It has not been redeemed\./);
  expect(await verdict.innerText()).toContain("One entry is not sealed yet.");
  expect(await page.locator("#entry-2").innerText()).toMatch(/Claimed[\s\S]*Pending[\s\S]*Not sealed yet/);
  await photograph(page, "chain, pending");
  await sealVoucher(worker.ctx, voucher.id);
  await page.locator("#verdict.good").waitFor();
  expect(await page.locator("#entry-2").getAttribute("data-seal")).toBe("Sealed");
});

it("the verification page does not reload while the reader has a hash unfolded or has pasted a payload", async () => {
  const { page, close } = await openPage(browser);
  let loads = 0;
  page.on("load", () => {
    loads += 1;
  });
  await page.clock.install();
  await page.goto(addressOf(pending));
  const summary = page.locator("#entry-1 summary");
  await summary.click();
  await page.clock.runFor(60_000);
  await summary.click();
  await page.getByLabel("Payload of one entry").fill("a payload");
  await page.clock.runFor(60_000);
  expect(loads).toBe(1);
  await page.getByLabel("Payload of one entry").fill("");
  const reloaded = page.waitForEvent("load");
  await page.clock.runFor(1_000);
  await reloaded;
  await close();
});

it("the verification page checks a long chain page by page, including the link from each page to the previous one", async () => {
  const { page, complaints } = await visit(addressOf(long));
  await page.getByText("Every link on this page is valid.").waitFor();
  expect(await page.locator("#verdict strong").innerText()).toMatch(/^Entries 1 to 50 of a longer history\./);
  expect(await page.locator(".mark.good").count()).toBe(50);
  await page.getByRole("link", { name: "Later entries" }).click();
  await page.getByText("Entries 51 to 53 each contain the hash of the previous entry.").waitFor();
  expect(await page.locator(".mark.good").allInnerTexts()).toEqual([
    "Linked to entry 50",
    "Linked to entry 51",
    "Linked to entry 52",
  ]);
  await page.getByRole("link", { name: "Earlier entries" }).click();
  await page.getByText("Entry 1 starts the chain").waitFor();
  expect(complaints).toEqual([]);
});

it("the verification page says what happened and is a plain table without JavaScript, and says what to compare", async () => {
  const { page, complaints } = await visit(addressOf(redeemed), { javaScriptEnabled: false });
  expect(await page.locator("#verdict").innerText()).toMatch(/^Redeemed on \d+ \w+ \d{4}, \d\d:\d\d UTC\.$/);
  await page.locator("#entry-2 summary").click();
  expect(await page.getByRole("table", { name: "What happened" }).count()).toBe(1);
  expect(await page.getByRole("columnheader").allInnerTexts()).toEqual([
    "Number",
    "What happened",
    "When",
    "Seal",
    "Hashes",
  ]);
  const cells = await page.locator("#entry-2").getByRole("cell").allInnerTexts();
  expect(cells[0]).toBe("2");
  expect(cells[1]).toMatch(/UTC$/);
  expect(cells[2]).toBe("Sealed");
  expect(cells[3]).toContain(redeemed.hashes[1]);
  expect(cells[3]).toContain(redeemed.hashes[0]);
  expect(await page.getByRole("button", { name: /^Copy/ }).count()).toBe(0);
  expect(await page.locator("noscript p").isVisible()).toBe(true);
  expect(await page.getByLabel("Payload of one entry").isVisible()).toBe(false);
  await photograph(page, "chain, no script");
  expect(complaints).toEqual([]);
});

it("the verification page answers an unknown id with a page that links to the start page", async () => {
  const { page } = await visit(addressOf({ ...redeemed, id: "vch_none" }));
  expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Voucher not found");
  expect(await findAxeViolations(page)).toEqual([]);
  await photograph(page, "not found");
  await page.getByRole("link", { name: "To the start page" }).click();
  await page.waitForURL(`${api.url}/`);
});

it("a payload pasted into the page is hashed and found, with its link, sequence and voucher", async () => {
  const opened = await visit(addressOf(redeemed));
  for (const [index, payload] of redeemed.payloads.entries()) {
    const { result, hash, words } = await paste(opened, payload);
    await result.getByText(`This is entry ${index + 1}`).waitFor();
    expect(hash).toBe(redeemed.hashes[index]);
    expect(await words()).toContain(hash);
    expect(await result.locator("li.good").count()).toBe(5);
    expect(await result.locator("li.bad").count()).toBe(0);
    expect(await words()).toContain("Its previous hash is the one in the chain.");
  }
  expect(opened.complaints).toEqual([]);
});

it("a payload pasted into the page never leaves the page", async () => {
  const opened = await visit(addressOf(redeemed));
  const { page } = opened;
  await page.locator("#verdict.good").waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const { result } = await paste(opened, redeemed.payloads[1] ?? "");
  await result.getByText("exactly as it was sealed").waitFor();
  expect(requests).toEqual([]);
  expect(page.url()).toBe(addressOf(redeemed));
  page.removeAllListeners("request");
});

it("a payload pasted into the page may have spaces around it or be a quoted JSON string", async () => {
  const opened = await visit(addressOf(redeemed));
  for (const text of [`\n  ${redeemed.payloads[1]}\n`, JSON.stringify(redeemed.payloads[1])]) {
    const { result, words } = await paste(opened, text);
    await result.getByText("This is entry 2, “Redeemed”, exactly as it was sealed").waitFor();
    expect(await words()).toContain(redeemed.hashes[1]);
  }
  await (await paste(opened, " ")).result.getByText("There is nothing to hash").waitFor();
});

it.each<[what: string, change: (payload: string) => string]>([
  ["in one character", (payload) => payload.replace("order 1", "order 2")],
  [
    "in the order of its fields",
    (payload) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
  ],
  ["in its whitespace", (payload) => JSON.stringify(JSON.parse(payload), null, 1)],
  ["in its Unicode normal form", (payload) => payload.normalize("NFD")],
])("a payload pasted into the page is rejected with the number of its entry when changed %s", async (_what, change) => {
  const opened = await visit(addressOf(redeemed));
  const payload = redeemed.payloads[1] ?? "";
  expect(change(payload)).not.toBe(payload);
  const { result, hash, words } = await paste(opened, change(payload));
  await result.getByText("This is not what was sealed as entry 2").waitFor();
  expect(await words()).toContain(hash);
  expect(await result.getAttribute("class")).toBe("verdict bad");
});

it("a payload pasted into the page is rejected when its hash is on the page but its sequence and link differ", async () => {
  const payload = redeemed.payloads[1] ?? "";
  const said = { ...JSON.parse(payload), sequence: 7, previousHash: "1".repeat(64) };
  const forged = JSON.stringify(said);
  const hash = createHash("sha256").update(forged).digest("hex");
  const page = await visitForged(redeemed, (markup) => markup.replaceAll(redeemed.hashes[1] ?? "", hash));
  const { result } = await paste({ page }, forged);
  await result.getByText("the chain on this page differs").waitFor();
  expect(await result.locator("li.bad").allInnerTexts()).toEqual([
    expect.stringContaining("Its sequence number is 2."),
    expect.stringContaining("Its previous hash is the one in the chain."),
  ]);
});

it("a payload pasted into the page is identified as of another voucher, of another page, of a pending event, or as no payload", async () => {
  const opened = await visit(addressOf(redeemed));
  await (await paste(opened, pending.payloads[0] ?? "")).result
    .getByText("This payload is about another voucher")
    .waitFor();
  for (const text of ["hello", "{}", "[]", "null", '"quoted"', '{"entityId":7}', "<img src=x onerror=alert(1)>"]) {
    const { result, hash, words } = await paste(opened, text);
    await result.getByText("This is not the payload of an entry").waitFor();
    if (!text.startsWith('"')) expect(await words()).toContain(hash);
  }
  const markup = "<img src=x onerror=alert(1)>";
  const hostile = await paste(opened, JSON.stringify({ entityId: markup, sequence: markup }));
  await hostile.result.getByText(`It names ${markup}`).waitFor();
  expect(await opened.page.locator("img[src=x]").count()).toBe(0);
  expect(opened.complaints).toEqual([]);
  await visit(addressOf(long));
  await (await paste(opened, long.payloads[51] ?? "")).result.getByText("This entry is not on this page").waitFor();
  await visit(addressOf(pending));
  const early = JSON.stringify({ ...JSON.parse(pending.payloads[0] ?? ""), sequence: 2 });
  await (await paste(opened, early)).result.getByText("This entry is not sealed yet").waitFor();
  expect(opened.complaints).toEqual([]);
});

it("a payload pasted into the page cannot be hashed over plain HTTP, which the page says; the page still checks the links", async () => {
  const address = new URL(addressOf(redeemed));
  address.hostname = "vouchers.test";
  const { page, complaints } = await visit(address.href);
  await page.getByText("This browser cannot compute hashes here").waitFor();
  await page.getByText("The history is intact.").waitFor();
  expect(await page.getByRole("button", { name: "Hash and compare" }).isDisabled()).toBe(true);
  // Browsers warn that they ignore this header on insecure connections.
  expect(complaints.filter((complaint) => !complaint.startsWith("The Cross-Origin-Opener-Policy header"))).toEqual([]);
});

describe.each(LOOKS)("on a %s", (look, options) => {
  it("passes axe, does not overflow and keeps its policy, with a matching payload", async () => {
    const opened = await visit(addressOf(redeemed), options);
    const { result } = await paste(opened, redeemed.payloads[1] ?? "");
    await result.getByText("exactly as it was sealed").waitFor();
    expect(await findAxeViolations(opened.page)).toEqual([]);
    expect(await measureOverflow(opened.page)).toBe(0);
    await photograph(opened.page, `chain, ${look}`);
    expect(opened.complaints).toEqual([]);
  });

  it("passes axe and does not overflow with a broken chain, a pending event and a wrong payload", async () => {
    const breakStart = (markup: string) => markup.replace("0".repeat(64), "f".repeat(64));
    const page = await visitForged(pending, breakStart, options);
    const { result } = await paste({ page }, pending.payloads[0]?.replace("{", "{ ") ?? "");
    await result.getByText("This is not what was sealed").waitFor();
    expect(await findAxeViolations(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    await photograph(page, `broken chain, ${look}`);
  });
});
