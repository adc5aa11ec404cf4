import { createHash } from "node:crypto";
import type { Browser, BrowserContextOptions, Route } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sealVoucher } from "../../src/services/seal-events.ts";
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
/** Issued and redeemed; 53 sealed events; issued, and claimed without a seal. */
let redeemed: Chained;
let long: Chained;
let pending: Chained;
/** One page for each way of looking, which one test after the other uses. */
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

/** Opens an address in the page for this way of looking. */
async function visit(address: string, options: BrowserContextOptions = {}): Promise<Visit> {
  const look = JSON.stringify(options);
  const visit = visits.get(look) ?? (await openPage(browser, options));
  visits.set(look, visit);
  visit.complaints.length = 0;
  await visit.page.goto(address);
  return visit;
}

/** Opens a chain's page as a server would serve it that lies. */
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

/** Pastes a text into the page and reads what it says. */
async function paste({ page }: Pick<Visit, "page">, text: string) {
  await page.getByLabel("Payload of one entry").fill(text);
  await page.getByRole("button", { name: "Hash and compare" }).click();
  const result = page.locator("#payload-result");
  const hash = createHash("sha256").update(text.trim(), "utf8").digest("hex");
  return { result, hash, words: async () => (await result.innerText()).replaceAll(/\s+/g, " ") };
}

describe("the page of a chain", () => {
  it("tells what happened in plain words, when in the world and where the reader is, and that it is sealed", async () => {
    const { page, complaints } = await visit(addressOf(redeemed));
    const rows = page.getByRole("row").filter({ has: page.getByRole("rowheader") });
    expect(await rows.count()).toBe(2);
    const words = await rows.nth(1).innerText();
    expect(words).toContain("Redeemed");
    expect(words).toContain("The voucher was used at a checkout. It cannot be used again.");
    expect(words).toContain("Sealed");
    expect(words).toContain(redeemed.hashes[1]);
    expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC/);
    expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d CES?T where you are/);
    expect(complaints).toEqual([]);
  });

  it("gives a reader in UTC each time once", async () => {
    const { page } = await visit(addressOf(redeemed), { timezoneId: "UTC" });
    await page.locator("#verdict.good").waitFor();
    expect(await page.getByText("where you are").count()).toBe(0);
  });

  it("checks every link by itself and says that they hold", async () => {
    const { page } = await visit(addressOf(redeemed));
    const verdict = page.getByRole("status").first();
    await verdict.getByText("Every link holds").waitFor();
    expect(await verdict.innerText()).toContain("each entry after it names the hash of the one before");
    expect(await page.locator(".mark.good").allInnerTexts()).toEqual(["The start of the chain", "The hash of entry 1"]);
  });

  it.each<[what: string, forge: (markup: string) => string, says: string]>([
    [
      "a link that names another hash",
      (markup) => markup.replace(`previous-hash">${redeemed.hashes[0]}`, `previous-hash">${redeemed.hashes[1]}`),
      "Entry 2: The hash before that it names is not the hash of entry 1.",
    ],
    [
      "an entry whose hash was changed",
      (markup) => markup.replace(`record-hash">${redeemed.hashes[0]}`, `record-hash">${"a".repeat(64)}`),
      "Entry 2: The hash before that it names is not the hash of entry 1.",
    ],
    [
      "a first entry that is gone",
      (markup) => markup.replace(/<tr role="row" id="entry-1"[\s\S]*?<\/tr>/, ""),
      "Entry 2: Entry 1 is missing before it.",
    ],
    [
      "a chain that does not begin with zeros",
      (markup) => markup.replace("0".repeat(64), "f".repeat(64)),
      "Entry 1: It is the first entry and does not begin with 64 zeros.",
    ],
    [
      "a hash that is none",
      (markup) => markup.replace(`record-hash">${redeemed.hashes[1]}`, `record-hash">${"z".repeat(64)}`),
      "Entry 2: Its hash is not a SHA-256 hash.",
    ],
  ])("says that the chain is broken, and where: %s", async (_what, forge, says) => {
    const page = await visitForged(redeemed, forge);
    const verdict = page.getByRole("status").first();
    await verdict.getByText("The chain is broken").waitFor();
    expect(await verdict.innerText()).toContain(says);
    expect(await page.locator("tr.faulty").count()).toBe(1);
    expect(await page.locator(".mark.bad").count()).toBe(1);
  });

  it("says that an event is pending, and does not take that for a fault", async () => {
    const { page } = await visit(addressOf(pending));
    const verdict = page.getByRole("status").first();
    await verdict.getByText("Every link holds").waitFor();
    expect(await verdict.innerText()).toContain("1 entry is not sealed yet");
    expect(await page.locator("#entry-2").innerText()).toMatch(/Claimed[\s\S]*Pending[\s\S]*Not sealed yet/);
  });

  it("checks a long chain page by page, with the link from each page to the one before", async () => {
    const { page, complaints } = await visit(addressOf(long));
    await page.getByText("Every link holds").waitFor();
    expect(await page.locator(".mark.good").count()).toBe(50);
    await page.getByRole("link", { name: "Later entries" }).click();
    await page.getByText("Entries 51 to 53 each name the hash of the entry before.").waitFor();
    expect(await page.locator(".mark.good").allInnerTexts()).toEqual([
      "The hash of entry 50",
      "The hash of entry 51",
      "The hash of entry 52",
    ]);
    await page.getByRole("link", { name: "Earlier entries" }).click();
    await page.getByText("Entry 1 starts the chain").waitFor();
    expect(complaints).toEqual([]);
  });

  it("is a plain table where JavaScript is off, and says what to compare", async () => {
    const { page, complaints } = await visit(addressOf(redeemed), { javaScriptEnabled: false });
    expect(await page.getByRole("table", { name: "What happened" }).count()).toBe(1);
    expect(await page.getByRole("columnheader").allInnerTexts()).toEqual([
      "Number",
      "What happened",
      "When",
      "Seal",
      "Hash",
      "Hash of the entry before",
    ]);
    const cells = await page.locator("#entry-2").getByRole("cell").allInnerTexts();
    expect(cells[0]).toBe("2");
    expect(cells[1]).toMatch(/UTC$/);
    expect(cells[2]).toBe("Sealed");
    expect(cells[3]).toContain(redeemed.hashes[1]);
    expect(cells[4]).toContain(redeemed.hashes[0]);
    expect(await page.locator("noscript p").isVisible()).toBe(true);
    expect(await page.getByLabel("Payload of one entry").isVisible()).toBe(false);
    await photograph(page, "chain, no script");
    expect(complaints).toEqual([]);
  });

  it("shows a stranger a page that says there is nothing, and takes them to the start", async () => {
    const { page } = await visit(addressOf({ ...redeemed, id: "vch_none" }));
    expect(await page.getByRole("heading", { level: 1 }).innerText()).toBe("Nothing here");
    expect(await findBarriers(page)).toEqual([]);
    await photograph(page, "not found");
    await page.getByRole("link", { name: "To the start page" }).click();
    await page.waitForURL(`${api.url}/`);
  });
});

describe("a payload that is pasted into the page", () => {
  it("is hashed and found, with its link, its number and its voucher", async () => {
    const opened = await visit(addressOf(redeemed));
    for (const [index, payload] of redeemed.payloads.entries()) {
      const { result, hash, words } = await paste(opened, payload);
      await result.getByText(`This is entry ${index + 1}`).waitFor();
      expect(hash).toBe(redeemed.hashes[index]);
      expect(await words()).toContain(hash);
      expect(await result.locator("li.good").count()).toBe(5);
      expect(await result.locator("li.bad").count()).toBe(0);
      expect(await words()).toContain("It names the same hash before as the chain does.");
    }
    expect(opened.complaints).toEqual([]);
  });

  it("never leaves the page", async () => {
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

  it("may have blanks around it or come in the quotes of the JSON that it was copied from", async () => {
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
      "in its order of fields",
      (payload) => JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
    ],
    ["in its blanks", (payload) => JSON.stringify(JSON.parse(payload), null, 1)],
    ["in its letters' form", (payload) => payload.normalize("NFD")],
  ])("is refused when it was changed %s, and told which entry it is not", async (_what, change) => {
    const opened = await visit(addressOf(redeemed));
    const payload = redeemed.payloads[1] ?? "";
    expect(change(payload)).not.toBe(payload);
    const { result, hash, words } = await paste(opened, change(payload));
    await result.getByText("This is not what was sealed as entry 2").waitFor();
    expect(await words()).toContain(hash);
    expect(await result.getAttribute("class")).toBe("verdict bad");
  });

  it("is refused when its hash is on the page and its entry is another: number, link, time or voucher", async () => {
    const payload = redeemed.payloads[1] ?? "";
    const said = { ...JSON.parse(payload), sequence: 7, previousHash: "1".repeat(64) };
    const forged = JSON.stringify(said);
    const hash = createHash("sha256").update(forged).digest("hex");
    const page = await visitForged(redeemed, (markup) => markup.replaceAll(redeemed.hashes[1] ?? "", hash));
    const { result } = await paste({ page }, forged);
    await result.getByText("the chain here does not say the same").waitFor();
    expect(await result.locator("li.bad").allInnerTexts()).toEqual([
      expect.stringContaining("It says that it is entry 7."),
      expect.stringContaining("It names the same hash before as the chain does."),
    ]);
  });

  it("is told that it belongs to another voucher, to another page, to an open seal, or that it is none", async () => {
    const opened = await visit(addressOf(redeemed));
    await (await paste(opened, pending.payloads[0] ?? "")).result.getByText("This is about another voucher").waitFor();
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

  it("cannot be hashed over plain http, which the page says, while it checks its links all the same", async () => {
    const address = new URL(addressOf(redeemed));
    address.hostname = "vouchers.test";
    const { page, complaints } = await visit(address.href);
    await page.getByText("This browser cannot hash here").waitFor();
    await page.getByText("Every link holds").waitFor();
    expect(await page.getByRole("button", { name: "Hash and compare" }).isDisabled()).toBe(true);
    // Browsers heed this header on secure connections only, and say so.
    expect(complaints.filter((complaint) => !complaint.startsWith("The Cross-Origin-Opener-Policy header"))).toEqual(
      [],
    );
  });
});

describe.each(LOOKS)("on a %s", (look, options) => {
  it("has no barrier that axe knows, does not overflow and keeps its policy, with a payload that fits", async () => {
    const opened = await visit(addressOf(redeemed), options);
    const { result } = await paste(opened, redeemed.payloads[1] ?? "");
    await result.getByText("exactly as it was sealed").waitFor();
    expect(await findBarriers(opened.page)).toEqual([]);
    expect(await measureOverflow(opened.page)).toBe(0);
    await photograph(opened.page, `chain, ${look}`);
    expect(opened.complaints).toEqual([]);
  });

  it("has none either with a broken chain, a pending entry and a payload that does not fit", async () => {
    const breakStart = (markup: string) => markup.replace("0".repeat(64), "f".repeat(64));
    const page = await visitForged(pending, breakStart, options);
    const { result } = await paste({ page }, pending.payloads[0]?.replace("{", "{ ") ?? "");
    await result.getByText("This is not what was sealed").waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(await measureOverflow(page)).toBe(0);
    await photograph(page, `broken chain, ${look}`);
  });
});
