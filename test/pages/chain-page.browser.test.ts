import { createHash } from "node:crypto";
import type { BrowserContextOptions, Page, Route } from "playwright-core";
import { beforeAll, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { expectSound, LOOKS, photograph, updateImage, useBrowser } from "../support/browser.ts";
import { appendPending } from "../support/pending-events.ts";
import { sealVoucher } from "../support/seal-voucher.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

interface Chained {
  id: string;
  payloads: string[];
  hashes: string[];
}

const { api, worker, db, till, issue } = useService();
const visit = useBrowser();
/** Vouchers: redeemed; with 53 sealed events; claimed, with a Pending event; redeemed and erased. */
let redeemed: Chained;
let long: Chained;
let pending: Chained;
let erased: Chained;

beforeAll(async () => {
  const makeChain = async (grow: (voucher: { id: string; code: string }) => Promise<unknown>): Promise<Chained> => {
    const voucher = await issue();
    await grow(voucher);
    const events: { payload: string; recordHash: string }[] = (await till.events(voucher.code)).body.events;
    return {
      id: voucher.id,
      payloads: events.map(({ payload }) => payload),
      hashes: events.map(({ recordHash }) => recordHash),
    };
  };
  redeemed = await makeChain(({ code }) => till.redeem({ code, externalRef: "order 1", note: 'für "Jürgen" 😀\n' }));
  long = await makeChain(async ({ id }) => {
    await appendPending(db, id, 52);
    await sealVoucher(worker.ctx, id);
  });
  pending = await makeChain(({ id }) => appendPending(db, id, 1));
  erased = await makeChain(async ({ id, code }) => {
    await till.redeem({ code, externalRef: "an erased order" });
    await erasePerson(provisioning(db), { by: "voucher", voucherId: id }, null);
  });
});

const addressOf = ({ id }: { id: string }) => `${api.url}/integrity/events/VoucherInstance/${id}/history`;

it("the verification page shows the last event first, times in the reader's time zone, and valid links", async () => {
  const { page, complaints } = await visit(addressOf(redeemed), { viewport: { width: 1000, height: 1165 } });
  await page.locator("#verdict.good").waitFor();
  const sentence = await page.locator("#verdict strong").innerText();
  expect(sentence).toMatch(/^Redeemed on \d+ \w+ \d{4}, \d\d:\d\d your time\. The history is intact\.$/);
  const moment = new Date((await page.locator("#verdict time").getAttribute("datetime")) ?? "");
  const berlin = new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: "Europe/Berlin" });
  expect(sentence).toContain(`, ${berlin.format(moment)} your time`);
  expect(await page.locator("#verdict").innerText()).toContain(
    "each later entry contains the hash of the previous one",
  );
  expect(await page.locator(".mark.good").allInnerTexts()).toEqual(["The start of the chain", "Linked to entry 1"]);
  const words = await page.locator("#entry-2").innerText();
  expect(words).not.toContain(redeemed.hashes[1]);
  expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d UTC/);
  expect(words).toMatch(/\d+ \w+ \d{4}, \d\d:\d\d:\d\d CES?T local time/);
  await updateImage(page, "verification-page");
  expect(complaints).toEqual([]);
});

it.each([
  [
    "de-AT",
    /^Eingelöst am .* um \d\d:\d\d Uhr \(Ihre Zeit\)\./,
    "Der Verlauf ist unversehrt.",
    "Verbunden mit Eintrag 1",
    "Hash von Eintrag 2 kopieren",
  ],
  [
    "fr-FR",
    /^Utilisé le .* à \d\d:\d\d \(votre heure\)\./,
    "L'historique est intact.",
    "Liée à l'entrée 1",
    "Copier\u00a0: empreinte de l'entrée 2",
  ],
  [
    "es-MX",
    /^Canjeado el .* a las \d+:\d\d .*\(su hora\)\./,
    "El historial está intacto.",
    "Enlazada con la entrada 1",
    "Copiar: huella de la entrada 2",
  ],
  [
    "nl-BE",
    /^Ingewisseld op .* om \d\d:\d\d uur \(uw tijd\)\./,
    "De geschiedenis is ongeschonden.",
    "Verbonden met vermelding 1",
    "hash van vermelding 2 kopiëren",
  ],
])("the verification page and its script use the browser's language: %s", async (locale, last, whole, link, copy) => {
  const visited = await visit(addressOf(redeemed), { locale });
  const { page } = visited;
  await page.locator("#verdict.good").waitFor();
  const sentence = await page.locator("#verdict strong").innerText();
  expect(sentence).toMatch(last);
  expect(sentence).toContain(whole);
  expect((await page.locator(".mark.good").allInnerTexts())[1]).toBe(link);
  expect(await page.locator("html").getAttribute("lang")).toBe(locale.slice(0, 2));
  await page.locator("#entry-2 summary").click();
  await page.getByRole("button", { name: copy, exact: true }).waitFor();
  await expectSound(visited, `verification-${locale}`);
});

it("the verification page shows each time only once to a reader in UTC", async () => {
  const { page } = await visit(addressOf(redeemed), { timezoneId: "UTC" });
  await page.locator("#verdict.good").waitFor();
  expect(await page.getByText("local time").count()).toBe(0);
  expect(await page.locator("#verdict strong").innerText()).toMatch(/, \d\d:\d\d UTC\. The history is intact\.$/);
});

it("the verification page collapses hashes, and copies each hash and the voucher's id on a click", async () => {
  const { page, complaints } = await visit("about:blank", { permissions: ["clipboard-read", "clipboard-write"] });
  // The page says "Copied" for two seconds of a clock that the test moves.
  await page.clock.install();
  await page.goto(addressOf(redeemed));
  await page.clock.pauseAt(Date.now() + 60_000);
  expect(await page.locator("#entry-2 .record-hash").isVisible()).toBe(false);
  await page.locator("#entry-2 summary").click();
  for (const [name, text] of [
    ["Copy hash of entry 2", redeemed.hashes[1]],
    ["Copy previous hash of entry 2", redeemed.hashes[0]],
    ["Copy voucher id", redeemed.id],
  ]) {
    await page.getByRole("button", { name, exact: true }).click();
    await page.getByText("Copied").waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(text);
    await page.clock.runFor(2_000);
    await page.getByText("Copied").waitFor({ state: "detached" });
  }
  expect(complaints).toEqual([]);
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
  [
    "a pending entry that has hashes, as a sealed one has",
    (markup) => markup.replace(/(id="entry-2"[^>]*data-seal=")Sealed/, "$1Pending"),
    "Entry 2: It is not sealed, but has a hash.",
  ],
  [
    "a pending entry with a previous hash only",
    (markup) =>
      markup
        .replace(/(id="entry-2"[^>]*data-seal=")Sealed/, "$1Pending")
        .replace(`<code class="record-hash copied">${redeemed.hashes[1]}</code>`, ""),
    "Entry 2: It is not sealed, but has a hash.",
  ],
  [
    "an entry without its payload, which no entry erased",
    (markup) => markup.replace(/(id="entry-2"[^>]*data-kept=")true/, "$1false"),
    "Entry 2: Its content is missing or was changed, and no later entry says that it was erased.",
  ],
  [
    "a pending first entry, and a sealed one that links to zeros",
    (markup) =>
      markup
        .replace(/(id="entry-1"[^>]*data-seal=")Sealed/, "$1Pending")
        .replace(/<details>[\s\S]*?<\/details>/, "")
        .replace(`previous-hash copied">${redeemed.hashes[0]}`, `previous-hash copied">${"0".repeat(64)}`),
    "Entry 2: It is sealed, but the previous entry is not.",
  ],
])("the verification page says that the chain is broken, and names the entry: %s", async (_what, forge, says) => {
  const { page } = await visitForged(redeemed, forge);
  const verdict = page.locator("#verdict");
  await verdict.getByText("This history is broken. Do not rely on it.").waitFor();
  expect(await verdict.innerText()).toContain(says);
  expect(await verdict.innerText()).not.toContain("intact");
  expect(await page.locator("tr.faulty").count()).toBe(1);
  expect(await page.locator("tr.faulty .mark.bad").isVisible()).toBe(true);
  expect(await page.locator(".mark.bad").count()).toBe(1);
});

/** Changes by a dishonest server of the entry that erased entry 2, and the page's message for each. */
it.each<[what: string, forge: (markup: string) => string, says: string]>([
  [
    "no entry erases it",
    (markup) => markup.replace(/<tr role="row" id="entry-3"[\s\S]*?<\/tr>/, ""),
    "Entry 2: It was erased, but no later entry says so.",
  ],
  [
    "the other entry erases another one",
    (markup) => markup.replace('data-erases="2"', 'data-erases="1"'),
    "Entry 2: It was erased, but no later entry says so.",
  ],
  [
    "the other entry is Pending",
    (markup) =>
      markup
        .replace(/(id="entry-3"[^>]*data-seal=")Sealed/, "$1Pending")
        .replace(/(id="entry-3"[\s\S]*?)<details>[\s\S]*?<\/details>/, "$1"),
    "Entry 2: It was erased, but no later entry says so.",
  ],
  [
    "it erases itself",
    (markup) => markup.replace('data-erased-by="3"', 'data-erased-by="2"'),
    "Entry 2: It was erased, but no later entry says so.",
  ],
  [
    "the other entry erases itself",
    (markup) => markup.replace('data-erases="2"', 'data-erases="2 3"'),
    "Entry 3: It erases an entry that is not an earlier one.",
  ],
  [
    "the other entry erases a later one",
    (markup) => markup.replace('data-erases="2"', 'data-erases="2 4"'),
    "Entry 3: It erases an entry that is not an earlier one.",
  ],
])("the verification page finds a forged erasure of an entry: %s", async (_what, forge, says) => {
  const { page } = await visitForged(erased, forge);
  await page.locator("#verdict").getByText("This history is broken. Do not rely on it.").waitFor();
  expect(await page.locator("#verdict").innerText()).toContain(says);
  expect(await page.locator("tr.faulty").count()).toBe(1);
});

it("the verification page shows that an entry was erased and that the history is intact", async () => {
  const { page } = await visit(addressOf(erased));
  await page.locator("#verdict.good").waitFor();
  expect(await page.locator("#entry-2 .sentence").innerText()).toMatch(/Erased on .+, the record's hash is kept\.$/);
  expect(await page.locator("#entry-3 .mark.good").innerText()).toBe("Linked to entry 2");
});

it("the verification page is amber while an entry is pending, and reloads until the entry is sealed", async () => {
  const voucher = await issue();
  await appendPending(db, voucher.id, 1);
  const { page } = await visit(addressOf(voucher));
  const verdict = page.locator("#verdict");
  await verdict.getByText("The sealed entries are intact.").waitFor();
  expect(await verdict.getAttribute("class")).toBe("verdict waiting");
  expect(await verdict.innerText()).toMatch(
    /Claimed on .*It has not been redeemed\.[\s\S]*One entry is not sealed yet\./,
  );
  expect(await page.locator("#entry-2").innerText()).toMatch(/Claimed[\s\S]*Pending[\s\S]*Not sealed yet/);
  await photograph(page, "chain, pending");
  await sealVoucher(worker.ctx, voucher.id);
  await page.locator("#verdict.good").waitFor();
  expect(await page.locator("#entry-2").getAttribute("data-seal")).toBe("Sealed");
});

it("the verification page does not reload while a hash is expanded or a payload is pasted", async () => {
  const { page } = await visit("about:blank");
  await page.clock.install();
  // Stops the page's clock, because on a busy machine the clicks take longer than the page waits.
  await page.clock.pauseAt(Date.now() + 1_000);
  await page.goto(addressOf(pending));
  let loads = 0;
  page.on("load", () => {
    loads += 1;
  });
  const summary = page.locator("#entry-1 summary");
  await summary.click();
  await page.clock.runFor(60_000);
  await summary.click();
  await page.getByLabel("Payload of one entry").fill("a payload");
  await page.clock.runFor(60_000);
  expect(loads).toBe(0);
  await page.getByLabel("Payload of one entry").fill("");
  const reloaded = page.waitForEvent("load");
  await page.clock.runFor(1_000);
  await reloaded;
});

it("the verification page checks a long chain page by page, including the links between pages", async () => {
  const { page, complaints } = await visit(addressOf(long));
  await page.getByText("Every link on this page is valid.").waitFor();
  expect(await page.locator("#verdict strong").innerText()).toMatch(/^Entries 1 to 50 of a longer history\./);
  expect(await page.locator(".mark.good").count()).toBe(50);
  await page.getByRole("link", { name: "Later entries" }).click();
  await page.getByText("Entries 51 to 53 each contain the hash of the previous entry.").waitFor();
  expect(await page.locator(".mark.good").allInnerTexts()).toEqual([50, 51, 52].map((n) => `Linked to entry ${n}`));
  await paste(page, long.payloads[1] ?? "", "This entry is not on this page");
  await page.getByRole("link", { name: "Earlier entries" }).click();
  await page.getByText("Entry 1 starts the chain").waitFor();
  expect(complaints).toEqual([]);
});

it("the verification page without JavaScript lists the events in a table, and says what to compare", async () => {
  const { page, complaints } = await visit(addressOf(redeemed), { javaScriptEnabled: false });
  expect(await page.locator("#verdict").innerText()).toMatch(/^Redeemed on \d+ \w+ \d{4}, \d\d:\d\d UTC\.$/);
  await page.locator("#entry-2 summary").click();
  expect(await page.getByRole("table", { name: "What happened" }).count()).toBe(1);
  const heads = await page.getByRole("columnheader").allInnerTexts();
  expect(heads).toEqual(["Number", "What happened", "When", "Seal", "Hashes"]);
  const [number, when, seal, hashes] = await page.locator("#entry-2").getByRole("cell").allInnerTexts();
  expect([number, when, seal]).toEqual(["2", expect.stringMatching(/UTC$/), "Sealed"]);
  for (const hash of redeemed.hashes) expect(hashes).toContain(hash);
  expect(await page.getByRole("button", { name: /^Copy/ }).count()).toBe(0);
  expect(await page.locator("noscript p").isVisible()).toBe(true);
  expect(await page.getByLabel("Payload of one entry").isVisible()).toBe(false);
  await photograph(page, "chain, no script");
  expect(complaints).toEqual([]);
});

it("the verification page hashes a pasted payload, finds its entry and never sends the payload", async () => {
  const { page, complaints } = await visit(addressOf(redeemed));
  await page.locator("#verdict.good").waitFor();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  const [first = "", second = ""] = redeemed.payloads;
  for (const [entry, text] of [
    [1, first],
    [2, second],
    [2, `\n  ${second}\n`],
    [2, JSON.stringify(second)],
  ] as const) {
    const title = entry === 1 ? "Issued" : "Redeemed";
    const { result, words } = await paste(page, text, `This is entry ${entry}, “${title}”, exactly as it was sealed`);
    expect(words).toContain(redeemed.hashes[entry - 1]);
    expect(words).toContain("Its previous hash is the one in the chain.");
    expect(await result.locator("li.good").count()).toBe(5);
    expect(await result.locator("li.bad").count()).toBe(0);
  }
  await paste(page, " ", "There is nothing to hash");
  expect([requests, page.url(), complaints]).toEqual([[], addressOf(redeemed), []]);
});

it("the verification page rejects a pasted payload with one changed byte, and names its entry", async () => {
  const { page } = await visit(addressOf(redeemed));
  const payload = redeemed.payloads[1] ?? "";
  for (const changed of [
    payload.replace("order 1", "order 2"),
    JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(payload)).reverse())),
    JSON.stringify(JSON.parse(payload), null, 1),
    payload.normalize("NFD"),
  ]) {
    expect(changed).not.toBe(payload);
    const { result, hash, words } = await paste(page, changed, "This is not what was sealed as entry 2");
    expect(words).toContain(hash);
    expect(await result.getAttribute("class")).toBe("verdict bad");
  }
});

it("the verification page rejects a pasted payload with a right hash but a wrong sequence and link", async () => {
  const said = { ...JSON.parse(redeemed.payloads[1] ?? ""), sequence: 7, previousHash: "1".repeat(64) };
  const forged = JSON.stringify(said);
  const hash = createHash("sha256").update(forged).digest("hex");
  const { page } = await visitForged(redeemed, (markup) => markup.replaceAll(redeemed.hashes[1] ?? "", hash));
  const { result } = await paste(page, forged, "the chain on this page differs");
  expect(await result.locator("li.bad").allInnerTexts()).toEqual([
    expect.stringContaining("Its sequence number is 2."),
    expect.stringContaining("Its previous hash is the one in the chain."),
  ]);
});

it("the verification page distinguishes a pasted payload from other text and another voucher's payload", async () => {
  const { page, complaints } = await visit(addressOf(redeemed));
  await paste(page, pending.payloads[0] ?? "", "This payload is about another voucher");
  const markup = "<img src=x onerror=alert(1)>";
  for (const text of ["hello", "{}", "[]", "null", '"quoted"', '{"entityId":7}', markup]) {
    const { hash, words } = await paste(page, text, "This is not the payload of an entry");
    if (!text.startsWith('"')) expect(words).toContain(hash);
  }
  await paste(page, JSON.stringify({ entityId: markup, sequence: markup }), `It names ${markup}`);
  expect(await page.locator("img[src=x]").count()).toBe(0);
  await page.goto(addressOf(pending));
  const early = JSON.stringify({ ...JSON.parse(pending.payloads[0] ?? ""), sequence: 2 });
  await paste(page, early, "This entry is not sealed yet");
  expect(complaints).toEqual([]);
});

it("the verification page over plain HTTP says that it cannot hash a pasted payload", async () => {
  const address = new URL(addressOf(redeemed));
  address.hostname = "vouchers.test";
  const { page, complaints } = await visit(address.href);
  await page.getByText("This browser cannot compute hashes here").waitFor();
  await page.getByText("The history is intact.").waitFor();
  expect(await page.getByRole("button", { name: "Hash and compare" }).isDisabled()).toBe(true);
  // Browsers warn that they ignore this header on insecure connections.
  expect(complaints.filter((complaint) => !complaint.startsWith("The Cross-Origin-Opener-Policy header"))).toEqual([]);
});

it.each(
  LOOKS,
)("the verification page passes axe and does not overflow on a %s, for each result", async (look, options) => {
  const intact = await visit(addressOf(redeemed), options);
  await paste(intact.page, redeemed.payloads[1] ?? "", "exactly as it was sealed");
  await expectSound(intact, `chain, ${look}`);
  const broken = await visitForged(pending, (markup) => markup.replace("0".repeat(64), "f".repeat(64)), options);
  await paste(broken.page, pending.payloads[0]?.replace("{", "{ ") ?? "", "This is not what was sealed");
  await expectSound(broken, `broken chain, ${look}`);
  const unknown = await visit(addressOf({ id: "vch_none" }), options);
  expect(await unknown.page.getByRole("heading", { level: 1 }).innerText()).toBe("Voucher not found");
  await expectSound(unknown, `not found, ${look}`, "404");
  await unknown.page.getByText("For experts").click();
  await unknown.page.getByRole("link", { name: "Go to the start page" }).click();
  await unknown.page.waitForURL(`${api.url}/`);
});

/** Opens a chain's page in which a dishonest server has changed the markup. */
async function visitForged(chain: Chained, forge: (markup: string) => string, options: BrowserContextOptions = {}) {
  const visited = await visit("about:blank", options);
  await visited.page.route(addressOf(chain), async (route: Route) => {
    const response = await route.fetch();
    const markup = await response.text();
    const forged = forge(markup);
    expect(forged).not.toBe(markup);
    await route.fulfill({ response, body: forged });
  });
  await visited.page.goto(addressOf(chain));
  return visited;
}

/** Pastes a text into the page and waits until the page's message contains `says`. */
async function paste(page: Page, text: string, says: string) {
  await page.getByLabel("Payload of one entry").fill(text);
  await page.getByRole("button", { name: "Hash and compare" }).click();
  const result = page.locator("#payload-result");
  await result.getByText(says).waitFor();
  return {
    result,
    words: (await result.innerText()).replaceAll(/\s+/g, " "),
    hash: createHash("sha256").update(text.trim(), "utf8").digest("hex"),
  };
}
