import { beforeAll, describe, expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { changeOrganization } from "../../src/acts/org/change.ts";
import { newId } from "../../src/core/voucher/ids.ts";
import { normaliseReference } from "../../src/core/voucher/references.ts";
import { basic, browse, nextOf } from "../support/browse.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { databaseTime } from "../support/outside-transaction.ts";
import { startApi, startWorkers, type TestApi } from "../support/service.ts";
import {
  issueVoucher,
  issueVouchers,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../support/supply.ts";
import { avoidMidnight, until } from "../support/until.ts";
import { useDatabase } from "../support/use-service.ts";

const HOSTILE = '<b>"Ünïcode"</b>\u202e';
const DAY = 86_400_000;

// The partner has redemptions on forty days, the stranger on one.
const { servers, db, partner, stranger } = useDatabase();
let api: TestApi;
let till: PartnerClient;
let tillKey: string;
let sandbox: TestPartner;
/** Keys for people: they can read but not redeem. */
let reader: string;
let strangerReader: string;
let sandboxReader: string;
let order: { code: string; redeemCode: string };
let foreign: { code: string; redeemCode: string };
/** The first moment of today by the database's clock. */
let today: Date;

beforeAll(async () => {
  await avoidMidnight();
  const env = { WEBHOOK_SECRET: "the root secret of the tests of the portal" };
  [api] = await Promise.all([startApi(servers, env), startWorkers(servers)]);
  sandbox = await makePartner(db, { sandbox: true });
  const ofTill = await makeKey(db, partner.organizationId);
  tillKey = ofTill.key;
  till = partnerClient(api.url, tillKey);
  await db.query("UPDATE organizations SET name = $2 WHERE id = $1", [partner.organizationId, HOSTILE]);
  [reader, strangerReader, sandboxReader] = [
    await readerOf(partner),
    await readerOf(stranger),
    await readerOf(sandbox),
  ];
  today = new Date((await databaseTime(db)).toISOString().slice(0, 10));
  const { id } = await makeKey(db, partner.organizationId);
  await db.query("UPDATE api_keys SET label = $2 WHERE id = $1", [id, `${HOSTILE} till`]);
  // The sums of these prices are inexact as binary fractions. The times at a day's edges reveal a wrong time zone.
  await insertRedemptions("19.99", id, 300, new Date(today.getTime() - DAY), (DAY - 1) / 299);
  await insertRedemptions("0.10", ofTill.id, 40, new Date(today.getTime() - 39 * DAY), DAY);
  order = await redeem(partner, till, "order-of-the-portal");
  const { key } = await makeKey(db, stranger.organizationId);
  foreign = await redeem(stranger, partnerClient(api.url, key), "order-of-the-stranger");
});

describe("the numbers of the portal", () => {
  it("the portal's overview has the number and sum of today's, yesterday's and this month's redemptions", async () => {
    const text = await openOverview();
    const month = `${dayOf(today).slice(0, 7)}-01`;
    for (const [id, day, days] of [
      ["today", dayOf(today), 1],
      ["yesterday", daysAgo(1), 1],
      ["month", month, 31],
    ] as const) {
      const listed = await listedFrom(day, days);
      const cents = listed.reduce((total, each) => total + Math.round(each.discountPriceUsd * 100), 0);
      const sum = (cents / 100).toLocaleString("en-US", { minimumFractionDigits: 2 });
      const count = `${listed.length} ${listed.length === 1 ? "redemption" : "redemptions"}`;
      expect(sectionOf(text, id), id).toContain(`<strong>${count}, $${sum}</strong>`);
    }
    expect(sectionOf(text, "yesterday")).toContain("<strong>301 redemptions, $5,997.10</strong>");
    const byKey = sectionOf(text, "yesterday").split("by till or shop").at(-1);
    expect(byKey).toContain(
      `<td><bdi>${escaped(`${HOSTILE} till`)}</bdi></td><td class="figure">300</td><td class="figure">$5,997.00</td>`,
    );
    expect(byKey).toContain('<td class="figure">1</td><td class="figure">$0.10</td>');
  });

  it("the portal's overview has exactly the last thirty days in its table and its plot", async () => {
    const text = sectionOf(await openOverview(), "days");
    const rows = [
      ...text.matchAll(/day=(\S{10})">[^<]+<\/a><\/td><td class="figure">(\d+)<\/td><td class="figure">(\S+)<\/td>/g),
    ];
    expect(rows.map(([, day]) => day)).toEqual(Array.from({ length: 30 }, (_, days) => daysAgo(days)));
    expect(rows[2]?.slice(2)).toEqual(["1", "$0.10"]);
    expect(rows[1]?.slice(2)).toEqual(["301", "$5,997.10"]);
    const bars = [...text.matchAll(/<title>([^<:]+): (\d+)<\/title>/g)].map(([, day, count]) => `${day} ${count}`);
    expect(bars.toReversed()).toEqual(rows.map(([, day = "", count]) => `${shownDay(day)} ${count}`));
    const total = rows.reduce((sum, [, , count]) => sum + Number(count), 0);
    expect(text).toContain(`<tfoot><tr><td>Total</td><td class="figure">${total}</td>`);
    expect(text.match(/<text class="value"/g)).toHaveLength(rows.filter(([, , count]) => count !== "0").length);
    expect(text.match(/data-largest [^>]*>(\d+)/)?.[1]).toBe("301");
  });

  it("the portal's pages of a day list each redemption once, and each page has the whole day's total", async () => {
    const refs: string[] = [];
    for (let next = `/redemptions?day=${daysAgo(1)}`, pages = 0; next !== ""; pages += 1) {
      const { status, text } = await open(next);
      expect(status).toBe(200);
      expect(pages).toBeLessThan(5);
      // With its style sheet, the page has less than 100 kB.
      expect(text.length).toBeLessThan(75_000);
      expect(text).toContain("<strong>301 redemptions, $5,997.10</strong> on this day.");
      for (const [, query] of text.matchAll(/portal\/orders\?([^"]+)"/g))
        refs.push(new URLSearchParams(query).get("externalRef") ?? "");
      next = nextOf(text, "/portal");
    }
    expect(refs).toEqual((await listedFrom(daysAgo(1), 1)).map(({ externalRef }) => externalRef));
    expect(refs).toHaveLength(301);
  });

  it("the portal's CSV file of a day has each redemption of the partner API's list, for spreadsheets", async () => {
    const path = `/redemptions.csv?from=${daysAgo(1)}T00:00:00.000Z&to=${daysAgo(0)}T00:00:00.000Z`;
    const csv = await open(path);
    const sent = await fetch(`${api.url}/portal${path}`, { headers: basic(reader) });
    const listed = await listedFrom(daysAgo(1), 1);
    const [head, ...lines] = csv.text.trimEnd().split("\r\n");
    expect(head).toMatch(/^"externalRef",/);
    const bytes = Buffer.from(await sent.arrayBuffer());
    expect(bytes.subarray(0, 3).toString("hex")).toBe("efbbbf");
    expect(sent.headers.get("content-length")).toBe(String(bytes.length));
    expect(lines.map((line) => line.split(",")[0])).toEqual(listed.map(({ externalRef }) => `"${externalRef}"`));
    expect(lines[0]).toMatch(/,"19\.99","USD","0","\d{4}-\d\d-\d\d 00:00:00",/);
    const german = { headers: { ...basic(reader), "accept-language": "de-DE,de;q=0.9,en;q=0.8" } };
    const inGerman = await browse(`${api.url}/portal/redemptions.csv?from=${daysAgo(1)}&to=${daysAgo(1)}`, german);
    expect(inGerman.text.trimEnd().split("\r\n")).toHaveLength(302);
    expect(inGerman.text).toContain(';"19,99";"USD";');
    expect(csv.headers.get("complete-until")).toBe(`${daysAgo(0)}T00:00:00.000Z`);
    expect(csv.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(csv.headers.get("content-disposition")).toBe(`attachment; filename=redemptions-${daysAgo(1)}.csv`);
  });

  it("the portal's page of a month has the sums of its days, and links to other months and its CSV file", async () => {
    const month = daysAgo(0).slice(0, 7);
    const before = dayOf(new Date(Date.parse(`${month}-01`) - DAY)).slice(0, 7);
    expect(sectionOf(await openOverview(), "month")).toContain(`/portal/redemptions?month=${month}"`);
    for (const shown of [month, before]) {
      const { text } = await open(`/redemptions?month=${shown}`);
      const days = shown === month ? Number(daysAgo(0).slice(8)) : 31;
      const listed = (await listedFrom(`${shown}-01`, days)).filter(({ redeemedAt }) => redeemedAt.startsWith(shown));
      const cents = (each: typeof listed) => each.reduce((sum, one) => sum + Math.round(one.discountPriceUsd * 100), 0);
      const usd = (sum: number) => `$${(sum / 100).toLocaleString("en-US", { minimumFractionDigits: 2 })}`;
      const rows = [
        ...text.matchAll(/day=(\S{10})">[^<]+<\/a><\/td><td class="figure">(\d+)<\/td><td class="figure">(\S+)<\/td>/g),
      ];
      expect(rows.map(([, ...row]) => row)).toEqual(
        rows.map(([, day = ""]) => {
          const ofDay = listed.filter(({ redeemedAt }) => redeemedAt.startsWith(day));
          return [day, String(ofDay.length), usd(cents(ofDay))];
        }),
      );
      expect(rows[0]?.[1]).toBe(`${shown}-01`);
      expect(text).toContain(`redemptions, ${usd(cents(listed))}</strong>`);
      const [, path = ""] = /href="\/portal(\/redemptions\.csv[^"]*)"/.exec(text) ?? [];
      const csv = await open(path.replaceAll("&#38;", "&"));
      expect(csv.text.trimEnd().split("\r\n")).toHaveLength(listed.length + 1);
      expect(csv.headers.get("content-disposition")).toBe(`attachment; filename=redemptions-${shown}.csv`);
    }
    const { text } = await open(`/redemptions?month=${month}`);
    expect(text).toContain(`href="/portal/redemptions?month=${before}">The month before`);
    expect(text).not.toContain("The month after");
    expect((await open(`/redemptions?month=${before}`)).text).toContain(
      `href="/portal/redemptions?month=${month}">The month after`,
    );
    expect((await open(`/redemptions?day=${daysAgo(0)}`)).text).not.toContain("The day after");
    expect((await open(`/redemptions?day=${daysAgo(1)}`)).text).toContain(`?day=${daysAgo(0)}">The day after`);
    expect((await open("/redemptions?month=2999-12")).status).toBe(200);
  });

  it("the portal's page of a month links to the month's statement, with the partner API's sums and file", async () => {
    await openOverview();
    const month = daysAgo(0).slice(0, 7);
    const before = dayOf(new Date(Date.parse(`${month}-01`) - DAY)).slice(0, 7);
    for (const [shown, sentence] of [
      [month, "The statement is not final."],
      [before, "This statement is final and never changes."],
    ] as const) {
      const neighbour = shown === month ? `${before}">The month before` : `${month}">The month after`;
      const page = (await open(`/statement?month=${shown}`)).text;
      expect(page).toContain(`href="/portal/statement?month=${neighbour}`);
      expect(page.includes("The month after")).toBe(shown === before);
      expect((await open(`/redemptions?month=${shown}`)).text).toContain(`href="/portal/statement?month=${shown}">`);
      const { text } = await open(`/statement?month=${shown}`);
      const { body } = await till.statement(shown);
      const sum = `$${body.amountUsd.toLocaleString("en-US", { minimumFractionDigits: 2 })}`;
      expect(text).toMatch(new RegExp(`<strong>${body.redemptions} redemptions?, ${sum.replace("$", "\\$")}</strong>`));
      expect(text).toContain(sentence);
      if (body.final) expect(text).toContain(`<code>${body.rowsHash}</code>`);
      const { brand, keyLabel, keyId } = body.lines[0];
      for (const name of ["Brand", "Product", "Till or shop"]) expect(text).toContain(`<th scope="col">${name}</th>`);
      expect(text).toContain(`<td><bdi>${escaped(brand)}</bdi></td><td class="figure">${body.redemptions}</td>`);
      expect(text).toContain(`<bdi>${escaped(keyLabel ?? keyId)}</bdi>`);
      const headers = { "x-api-key": tillKey, accept: "text/csv" };
      const served = await fetch(`${api.url}/partner/statements/${shown}`, { headers });
      const file = await open(`/statement.csv?month=${shown}`);
      expect(file.text).toBe(await served.text());
      expect(file.headers.get("content-disposition")).toBe(
        `attachment; filename=statement-${partner.organizationId}-${shown}.csv`,
      );
    }
  });

  it("the portal's menu leads to this month's statement, and a future month's says that it has not begun", async () => {
    const [current, future] = [await open("/statement"), await open("/statement?month=2999-12")];
    expect(current.text).toContain('<a href="/portal/statement" aria-current="page">Statements</a>');
    expect(current.text).toContain("The statement is not final.");
    expect(current.text).toContain(`href="/portal/statement.csv?month=${daysAgo(0).slice(0, 7)}"`);
    expect(current.text).toContain("Pages in another time zone may count redemptions near midnight in another month.");
    expect(future.text).toContain("0 redemptions, $0.00</strong>. This month has not begun.");
  });

  it("the portal's days follow the organization's time zone, and pages and CSV files show UTC too", async () => {
    const [ctx, id] = [provisioning(db), partner.organizationId];
    await changeOrganization.run(ctx, id, { timeZone: "America/New_York" });
    const headers = { ...basic(reader), "accept-language": "en-US" };
    const visit = (path: string) => browse(`${api.url}/portal${path}`, { headers });
    const { text } = await visit(`/redemptions?day=${daysAgo(1)}`);
    const [, path = ""] = /href="\/portal(\/redemptions\.csv[^"]*)"/.exec(text) ?? [];
    const { from, to } = Object.fromEntries(new URLSearchParams(path.replaceAll("&#38;", "&").split("?")[1]));
    const hours = [from, to].map((at) => (Date.parse(at ?? "") - today.getTime() + DAY) / 3_600_000);
    expect(hours.map((hour, days) => hour - 24 * days - (hours[0] ?? 0))).toEqual([0, 0]);
    expect([4, 5]).toContain(hours[0]);
    const listed = (await till.redemptions({ from: from ?? "", to: to ?? "", limit: "1000" })).body.redemptions;
    expect(listed.length).toBeGreaterThan(200);
    expect(text).toMatch(new RegExp(`<strong>${listed.length} redemptions, `));
    expect(text).toMatch(
      /<td data-name="Redeemed"><time [^>]+>\d+:\d\d:\d\d\s[AP]M E[SD]T<\/time> <span class="local">\([^)]* UTC\)/u,
    );
    expect(text).toContain("time zone America/New_York");
    expect((await visit(path.replaceAll("&#38;", "&"))).headers.get("content-disposition")).toContain(daysAgo(1));
    // In New York, yesterday may be the day before yesterday in UTC.
    const yesterday = new Intl.DateTimeFormat("en-CA", { timeZone: "America/New_York" }).format(Date.now() - DAY);
    const [count] = /<strong>[\d,]+ redemptions, /.exec((await visit(`/redemptions?day=${yesterday}`)).text) ?? [
      "none",
    ];
    expect(sectionOf((await visit("")).text, "yesterday")).toContain(count);
    await changeOrganization.run(ctx, id, { timeZone: "UTC" });
  });

  it("the portal answers 400 to a wrong day, month or range", async () => {
    const [day, next] = ["2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z"];
    for (const query of [
      ...["2026-02-30", "2026-13-01", "24.11.2026", "", "1999-12-31"].map((bad) => `?day=${bad}`),
      ...["2026-13", "2026-00", "11/2026", "2026", "1999-12", ""].map((bad) => `?month=${bad}`),
      ...["day=2026-11-24", "cursor=x"].map((more) => `?day=2026-11-23&${more}`),
      ...["", `?from=${day}`, `?from=${next}&to=${day}`, `?from=yesterday&to=${day}`].map((bad) => `.csv${bad}`),
    ]) {
      expect((await open(`/redemptions${query}`)).status, query).toBe(400);
    }
    for (const path of ["/statement?month=", "/statement?month=2026-13", "/statement.csv?month=2026"])
      expect((await open(path)).status, path).toBe(400);
  });
});

it("the portal's activity pages show the feed's events, newest first, and link to each other both ways", async () => {
  await issueVouchers(db, partner, 250);
  await redeem(partner, till, "order-of-the-activity");
  const feed = await until(async () => {
    const events: { entityId: string; eventType: string }[] = [];
    for (let after = ""; ; ) {
      const { body } = await till.feed(after === "" ? {} : { after });
      if (body.events.length === 0) break;
      events.push(...body.events);
      after = body.nextCursor;
    }
    return events.at(-1)?.eventType === "voucher.instance.redeemed" ? events.map(({ entityId }) => entityId) : null;
  });
  const vouchersOn = (text: string) => Array.from(text.matchAll(/VoucherInstance\/(\w+)"/g), ([, id = ""]) => id);
  const newest = await open("/activity");
  expect(newest.text).not.toContain('rel="prev"');
  expect(newest.text).toMatch(/>Redeemed<[\s\S]*?href="\/portal\/orders\/order-of-the-activity"/);
  const pages = [newest];
  for (let next = nextOf(newest.text, "/portal"); next !== ""; next = nextOf(pages.at(-1)?.text ?? "", "/portal"))
    pages.push(await open(next));
  expect(pages.map(({ text }) => vouchersOn(text))).toEqual(inPages(feed.toReversed(), 25));
  // Goes back from the oldest page to the newest. Each page's link continues from its first event.
  const laterOf = (text: string) => /rel="prev" href="\/portal([^"]+)"/.exec(text)?.[1] ?? "";
  let back = pages.at(-1) ?? newest;
  for (const { text } of pages.toReversed().slice(1)) {
    back = await open(laterOf(back.text));
    expect(vouchersOn(back.text)).toEqual(vouchersOn(text));
  }
  expect(await open(laterOf(back.text))).toMatchObject({ status: 303, location: "/portal/activity" });
  expect((await open(laterOf(back.text), strangerReader)).status).toBe(400);
  expect(vouchersOn((await open("/activity", strangerReader)).text)).toHaveLength(2);
});

it("the portal's activity page can show only one type of event, each with product, number and order", async () => {
  const redeemed = await open("/activity?types=voucher.instance.redeemed");
  expect(redeemed.text).not.toContain("<td>Issued</td>");
  expect(redeemed.text).toMatch(/<td>Redeemed<\/td><td><a href="[^"]+"><bdi>Pass<\/bdi>, no\. \d+<\/a><br><a href/);
  expect(redeemed.text).toContain('<option value="voucher.instance.redeemed" selected>');
  const issued = await open("/activity?types=voucher.instance.issued");
  expect(nextOf(issued.text, "/portal")).toMatch(/^\/activity\?types=voucher\.instance\.issued&/);
  expect((await open("/activity?types=voucher.instance.bought")).text).toContain("No such events here.");
  expect((await open("/activity?types=")).text).toContain("<td>Issued</td>");
  expect((await open("/activity?types=x")).status).toBe(400);
  expect((await open("/activity", await readerOf(await makePartner(db)))).text).toContain("No events yet.");
});

describe("an order in the portal", () => {
  it("the portal's page of an order shows redemption, history and, once there is one, the receipt", async () => {
    const { status, text } = await open("/orders/order-of-the-portal");
    expect(status).toBe(200);
    expect(text).toMatch(/\$40\.25[\s\S]*<strong>Issued<\/strong>[\s\S]*<strong>Redeemed<\/strong>/);
    for (const shown of [order.code, order.redeemCode, "There is no receipt yet"]) expect(text).toContain(shown);
    expect(await open("/orders/order-of-the-portal/receipt")).toMatchObject({ status: 409 });
  });

  it("a search for either reference of an erased order finds the order, without an erased text", async () => {
    const { code } = await redeem(partner, till, "Mrs. Gray 1");
    await erasePerson(provisioning(db), { by: "reference", ...partner, externalRef: "Mrs. Gray 1" }, null);
    const { location } = await search("Mrs. Gray 1");
    expect(decodeURIComponent(location)).toMatch(/^\/portal\/orders(\/|\?externalRef=)erased:[\w-]{22}$/);
    expect((await search(code)).location).toBe(location);
    const { status, text } = await open(location.replace("/portal", ""));
    expect(status).toBe(200);
    expect(text).toMatch(/Redeemed<\/strong>[\s\S]*Erased by entry 3, the record's hash is kept\./);
    expect(text).toContain("<strong>Erased</strong>");
    expect(text).not.toContain("Gray");
    expect((await open("/orders/Mrs.%20Gray%201")).status).toBe(200);
    const unknown = await open("/orders/none");
    expect(unknown).toMatchObject({
      status: 404,
      text: expect.stringContaining("<h1>No redemption with this reference</h1>"),
    });
    expect(unknown.text).toContain('type="search" value="none"');
  });

  it("a portal search finds an order by its reference, its voucher code and its redeem code", async () => {
    for (const words of [" order-of-the-portal ", order.code.toLowerCase(), order.redeemCode]) {
      const found = await search(words);
      expect(found, words).toMatchObject({ status: 303, location: "/portal/orders/order-of-the-portal" });
    }
  });

  it("a portal search for an unused voucher's code shows the voucher's status but not its code", async () => {
    const { code: unused } = await issueVoucher(db, partner);
    const { status, text } = await search(unused);
    expect(status).toBe(200);
    expect(text).toContain('<span class="badge good">Active</span>');
    expect(text.replace(`value="${unused}"`, "")).not.toContain(unused);
  });

  it("a portal search puts no code into a URL, and a query or another site's form finds nothing", async () => {
    const codes = [order.code, order.redeemCode, (await issueVoucher(db, partner)).code];
    const pages = await Promise.all([...codes, `${order.code} x`].map((words) => search(words)));
    pages.push(await open("/orders/order-of-the-portal"), await open("/redemptions"));
    for (const { location, text } of pages) {
      const urls = [location, ...Array.from(text.matchAll(/\s(?:href|action|src)="([^"]*)"/g), ([, url = ""]) => url)];
      for (const code of codes) expect(urls.join(" ")).not.toContain(code);
      if (location === "") expect(text).toMatch(/<form[^>]* role="search" [^>]*method="post"/);
    }
    const byQuery = await open(`?words=${order.code}`);
    expect([byQuery.status, byQuery.location]).toEqual([200, ""]);
    expect(byQuery.text).not.toContain(order.code);
    const elsewhere: Record<string, string>[] = [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.test" }];
    for (const headers of elsewhere) expect((await search(order.code, reader, api, headers)).status).toBe(403);
  });

  it("a portal search without Sec-Fetch-Site is accepted only from the service's own origin", async () => {
    const statusFrom = async (origin: string) => (await search(order.code, reader, api, { origin })).status;
    expect(await statusFrom("https://vouchers.test")).toBe(303);
    expect(await statusFrom(api.url)).toBe(303);
    for (const other of [
      "http://vouchers.test",
      "https://vouchers.test.evil.test",
      "https://vouchers.test:8443",
      "null",
    ])
      expect([other, await statusFrom(other)]).toEqual([other, 403]);
  });

  it("the portal escapes a hostile reference, and the reference's link leads to the order's page", async () => {
    const reference = `${HOSTILE}/../?&#x`;
    const { key } = await makeKey(db, sandbox.organizationId);
    await redeem(sandbox, partnerClient(api.url, key), reference);
    let path = "";
    await until(async () => {
      const { text } = await open("/redemptions", sandboxReader);
      path = /href="\/portal(\/orders\?[^"]+)"/.exec(text)?.[1] ?? "";
      return path !== "";
    });
    expect((await open(path, sandboxReader)).text).toContain(
      `<h1>Order <bdi>${escaped(normaliseReference(reference))}</bdi></h1>`,
    );
    expect((await search("<script>")).text).not.toContain("<script>");
    expect((await open("")).text).toContain(`<p class="eyebrow"><bdi>${escaped(HOSTILE)}</bdi></p>`);
  });
});

it.each([
  "10001/1",
  ...[
    "a//b",
    "../b",
    "a/../b",
    "/",
    "a/.",
    "50%",
    "%2F",
    "a+b",
    "a b",
    "a#b",
    "a?b=c&d=e",
    "a;b",
    "a\\b",
    "Größe",
    "№1",
  ],
])("links to an order have its reference in the query if a proxy might change a path: %s", async (reference) => {
  await redeem(partner, till, reference);
  expect((await till.redemptions({ externalRef: reference })).status).toBe(200);
  const { location } = await search(reference);
  expect(location).toMatch(/^\/portal\/orders\?externalRef=/);
  const { status, text } = await open(location.replace("/portal", ""));
  expect([status, text]).toEqual([200, expect.stringContaining(`<h1>Order <bdi>${escaped(reference)}</bdi></h1>`)]);
  // The service has no log, so the redemption has no receipt.
  const receipt = await open(location.replace("/portal/orders", "/receipt"));
  expect(receipt).toMatchObject({ status: 409, text: expect.stringContaining("Not in the log yet") });
});

describe("another organization in the portal", () => {
  it("the portal answers another organization's order with the same bytes as an unknown order", async () => {
    const paths = [
      ...[(ref: string) => `/orders/${ref}`, (ref: string) => `/orders/${ref}/receipt`],
      ...[(ref: string) => `/orders?externalRef=${ref}`, (ref: string) => `/receipt?externalRef=${ref}`],
    ];
    for (const path of paths) {
      const answers = await Promise.all(
        ["order-of-the-stranger", "order-of-nobody-at-al"].map(async (ref) => {
          const { status, headers, text } = await open(path(ref));
          const requestId = headers.get("x-request-id") ?? "";
          return { status, text: text.replaceAll(requestId, "ID").replaceAll(ref, "REF") };
        }),
      );
      expect(answers[0]?.status).toBe(404);
      expect(answers[0]).toEqual(answers[1]);
    }
  });

  it("a portal search for another organization's order or code finds nothing", async () => {
    const answerTo = async (words: string) => {
      const { status, text } = await search(words);
      return { status, text: text.replaceAll(words, "WORDS") };
    };
    const nothing = await answerTo("nothing-of-anyone");
    expect(nothing).toMatchObject({ status: 200, text: expect.stringContaining("Nothing found") });
    for (const words of ["order-of-the-stranger", foreign.code, foreign.redeemCode]) {
      expect(await answerTo(words), words).toEqual(nothing);
    }
  });

  it("another organization's redemptions are in no sum, list or file of the portal", async () => {
    await until(async () => (await open("", strangerReader)).text.includes("<strong>1 redemption, $40.25"));
    for (const path of ["", "/redemptions", `/redemptions?day=${daysAgo(1)}`]) {
      const { text } = await open(path, strangerReader);
      expect(text).not.toMatch(/order-of-the-portal|5,997|Ünïcode/);
    }
    const query = `?from=${daysAgo(50)}T00:00:00Z&to=${daysAgo(-1)}T00:00:00Z`;
    const { text } = await open(`/redemptions.csv${query}`, strangerReader);
    expect(text.trimEnd().split("\r\n")).toHaveLength(2);
    expect((await open(`/redemptions.csv${query}`)).text).not.toContain("order-of-the-stranger");
  });

  it("the portal refuses a cursor of another organization", async () => {
    const next = nextOf((await open(`/redemptions?day=${daysAgo(1)}`)).text, "/portal");
    expect(next).toContain("cursor=");
    expect((await open(next)).status).toBe(200);
    expect((await open(next, strangerReader)).status).toBe(400);
  });
});

const PATHS = [
  "",
  "/redemptions",
  "/redemptions.csv?from=2026-11-23T00:00:00Z&to=2026-11-24T00:00:00Z",
  "/orders/order-of-the-portal",
  "/orders/order-of-the-portal/receipt",
  "/orders?externalRef=order-of-the-portal",
  "/receipt?externalRef=order-of-the-portal",
  "/webhooks",
  "/statement?month=2026-10",
  "/statement.csv?month=2026-10",
  "/activity",
];

it.each([
  ["de-CH", "Einlösungen", /\$\u00a0?\d+\.\d\d/, "Bestellung", /\d+\. \p{L}+ \d{4}, \d\d:\d\d:\d\d UTC/u],
  ["fr", "Utilisations", /\d,\d\d\u00a0\$US/, "Commande", /\d+ \p{L}+ \d{4}, \d\d:\d\d:\d\d UTC/u],
  ["es", "Canjes", /\d,\d\d\u00a0US\$/, "Pedido", /\d+ de \p{L}+ de \d{4}, \d+:\d\d:\d\d UTC/u],
  ["nl", "Inwisselingen", /US\$\u00a0\d+,\d\d/, "Bestelling", /\d+ \p{L}+ \d{4}, \d\d:\d\d:\d\d UTC/u],
])("the portal uses the language of a browser in %s", async (accepted, redemptions, amount, orderWord, time) => {
  await openOverview();
  const headers = { ...basic(reader), "accept-language": accepted };
  const visit = async (path: string) => browse(`${api.url}/portal${path}`, { headers });
  const [overview, day, order] = [await visit(""), await visit("/redemptions"), await visit(PATHS[3] ?? "")];
  for (const { status, headers: sent, text } of [overview, day, order]) {
    expect(status).toBe(200);
    expect([sent.get("content-language"), sent.get("vary")]).toEqual([accepted.slice(0, 2), "Accept, Accept-Language"]);
    expect(text).toContain(`<html lang="${accepted.slice(0, 2)}">`);
    expect(text).toContain(`>${redemptions}</a>`);
    expect(text).toMatch(amount);
    expect(text).toMatch(time);
    expect(text).not.toMatch(/\b(Redeemed|Redemptions|Receipt|Price|Today|Order reference|Find an order)\b/);
  }
  expect(order.text).toContain(`<h1>${orderWord} `);
  const unknown = await visit("/orders/unknown");
  expect([unknown.status, unknown.headers.get("content-language")]).toEqual([404, accepted.slice(0, 2)]);
  expect(unknown.text).toContain(`>${redemptions}</a>`);
  const file = await visit(PATHS[2] ?? "");
  expect([file.status, file.headers.get("content-language")]).toEqual([200, null]);
});

it("the portal accepts a key with voucher.read as the password, with any user name and outer blanks", async () => {
  for (const path of PATHS) {
    const without = await open(path, null);
    const challenge = 'Basic realm="Portal", charset="UTF-8"';
    expect([without.status, without.headers.get("www-authenticate")], path).toEqual([401, challenge]);
    expect((await open(path, "pvk_WRONG")).status).toBe(401);
    const byHeader = await browse(`${api.url}/portal${path}`, { headers: { "x-api-key": reader } });
    expect(byHeader.status).toBe(401);
    for (const [user, password] of [
      ["", reader],
      ["someone else", reader],
      ["", `${reader} `],
      ["", `\t${reader}\u00a0`],
    ] as const) {
      const { status, headers } = await open(path, password, api, user);
      expect([200, 401, 409]).toContain(status);
      expect(status === 401).toBe(path === "/webhooks");
      expect(headers.has("www-authenticate")).toBe(false);
    }
  }
});

it("the portal refuses a key that can redeem and a key that cannot read", async () => {
  const others = [await readerOf(partner, { scopes: ["voucher.webhook"] })];
  others.push(await readerOf(partner, { scopes: ["voucher.redeem"] }));
  const error = expect.stringContaining("Ask the operator for one");
  for (const path of PATHS) {
    for (const key of [tillKey, ...others]) {
      const headers = { ...basic(key), accept: "*/*" };
      const { status, text } = await browse(`${api.url}/portal${path}`, { headers });
      expect(status, path).toBe(403);
      expect(JSON.parse(text)).toMatchObject({ code: "portal_needs_read_key", error });
      expect((await open(path, key)).text).toContain("The key must be able to look vouchers up");
    }
  }
});

it("the portal refuses a key from an address outside its allowlist", async () => {
  expect((await open("", await readerOf(partner, { allowIps: ["198.51.100.7"] }))).status).toBe(403);
  expect((await open("", await readerOf(partner, { allowIps: ["127.0.0.1"] }))).status).toBe(200);
});

it("the portal's requests count for the key's rate limit, and wrong keys for the address's rate limit", async () => {
  const limited = await startApi(servers, { RATE_LIMIT_RPS: "2" });
  const statuses = async (key: string) =>
    (await Promise.all(Array.from({ length: 12 }, () => open("/redemptions?day=x", key, limited)))).map(
      ({ status }) => status,
    );
  expect(new Set(await statuses(reader))).toEqual(new Set([400, 429]));
  expect(await statuses("pvk_WRONG")).toContain(429);
});

it("portal searches that find nothing count as unknown codes", async () => {
  const guarded = await startApi(servers, { MISS_LIMIT_PER_MINUTE: "3" });
  const key = await readerOf(partner);
  for (let guess = 1; guess <= 3; guess += 1) {
    expect((await search(`guess-${guess}`, key, guarded)).status).toBe(200);
  }
  for (const words of ["guess-4", foreign.code, order.code]) {
    const { status, headers } = await search(words, key, guarded);
    expect([status, Number(headers.get("retry-after")) > 0]).toEqual([429, true]);
  }
});

it("each portal response forbids caching, and its CSP forbids inline code", async () => {
  for (const path of [...PATHS, "/orders/none", "/redemptions?day=x"]) {
    for (const key of [reader, tillKey, null]) {
      const { headers, text } = await open(path, key);
      expect(headers.get("cache-control"), path).toBe("no-store");
      expect(headers.get("content-security-policy")).toMatch(/default-src 'none'.*form-action 'self'/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(text).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=/i);
    }
  }
});

it("the portal marks every response to a sandbox as sandbox, and no other response", async () => {
  for (const path of ["", "/redemptions", "/activity", "/orders/none", "/redemptions?day=x", "/webhooks"]) {
    expect((await open(path, sandboxReader)).text, path).toContain('id="sandbox"');
    expect((await open(path)).text, path).not.toContain('id="sandbox"');
  }
});

it("the portal's list of redemptions answers 405 to POST", async () => {
  const answer = await browse(`${api.url}/portal/redemptions`, { method: "POST", headers: basic(reader) });
  expect([answer.status, answer.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});

it("the portal shows an organization's webhook endpoints only to its keys with voucher.webhook", async () => {
  for (const [id, { organizationId }] of [
    ["whk_of_the_partner", partner],
    ["whk_of_the_stranger", stranger],
  ] as const) {
    await db.query(
      "INSERT INTO webhook_endpoints (id, organization_id, place, url, description) VALUES ($1, $2, 1, $3, $4)",
      [id, organizationId, `https://shop.example.com/${id}`, HOSTILE],
    );
    await db.query(
      `INSERT INTO webhook_deliveries (position, created_at, finished_at, sequence, attempts, last_status,
                                       last_failure, endpoint_id, event_id, voucher_id, event_type, state)
       VALUES (1, now(), now(), 1, 10, 503, 'status', $1, $1, 'vch_x', 'voucher.instance.redeemed', 'Failed')`,
      [id],
    );
  }
  const key = await readerOf(partner, { scopes: ["voucher.read", "voucher.webhook"] });
  const { status, text } = await open("/webhooks", key);
  expect(status).toBe(200);
  expect(text).toContain(`<bdi>${escaped(HOSTILE)}</bdi>`);
  expect(text).toMatch(
    /whk_of_the_partner[\s\S]*Failed<\/span><\/td><td class="figure"[^>]*>10<\/td><td class="figure"[^>]*>503/,
  );
  expect(text).not.toContain("whk_of_the_stranger");
  await db.query("UPDATE webhook_deliveries SET last_status = NULL, last_failure = 'tls' WHERE sequence = 1");
  const german = { headers: { ...basic(key), "accept-language": "de" } };
  const shown = (await browse(`${api.url}/portal/webhooks`, german)).text.replaceAll(/<[^>]+>/g, " ");
  expect(shown).toMatch(/Eingelöst .* Fehlgeschlagen +10 +TLS-Fehler/);
  expect(shown).not.toMatch(/voucher\.instance|Failed/);
  expect((await open("")).text).not.toContain("/portal/webhooks");
  await db.query(
    `UPDATE webhook_deliveries SET voucher_id = r.voucher_id FROM redemptions AS r
      WHERE r.external_ref = 'order-of-the-portal' AND endpoint_id = 'whk_of_the_partner'`,
  );
  expect((await open("/webhooks", key)).text).toMatch(
    /<bdi>Pass<\/bdi>, no\. \d+<\/a><br><a href="[^"]+"><bdi>order-of/,
  );
  await db.query("DELETE FROM webhook_deliveries");
  expect((await open("/webhooks", key)).text).toContain("No deliveries yet. The next chosen event");
  await db.query("DELETE FROM webhook_endpoints");
  expect((await open("/webhooks", key)).text).toContain("Your organization has no webhook endpoints yet.");
});

it("the portal says if a webhook endpoint fails, when the next attempt is due, and if more wait", async () => {
  await db.query(
    `INSERT INTO webhook_endpoints (id, organization_id, place, url, failures, failing_since)
     VALUES ('whk_failing', $1, 1, 'https://shop.example.com/hooks', 3, now())`,
    [partner.organizationId],
  );
  await db.query(
    `INSERT INTO webhook_deliveries (position, created_at, next_attempt_at, sequence, attempts, last_status,
                                     last_failure, endpoint_id, event_id, voucher_id, event_type, state)
     SELECT n, now(), CASE WHEN n < 11 THEN now() END, n, 3, 503, 'status', 'whk_failing', 'vch_x-' || n, 'vch_x',
            'voucher.instance.redeemed', 'Pending' FROM generate_series(1, 11) AS n`,
  );
  const key = await readerOf(partner, { scopes: ["voucher.read", "voucher.webhook"] });
  const { text } = await open("/webhooks", key);
  expect(text).toContain('<span class="badge waiting">Enabled, failing</span>');
  expect(text).toMatch(/Pending<\/span><br>next <time /);
  expect(text).toContain("Pending</span><br>after the voucher's earlier event");
  expect(text).toContain("Only the newest 10 deliveries are shown here.");
  await db.query("DELETE FROM webhook_deliveries");
  await db.query("UPDATE webhook_endpoints SET failures = 0, failing_since = NULL");
  const calm = (await open("/webhooks", key)).text;
  expect(calm).toContain('<span class="badge good">Enabled</span>');
  expect(calm).not.toContain("Only the newest");
  await db.query("DELETE FROM webhook_endpoints");
});

const inPages = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, page) => items.slice(page * size, (page + 1) * size));

async function readerOf({ organizationId }: TestPartner, more: Parameters<typeof makeKey>[2] = {}): Promise<string> {
  return (await makeKey(db, organizationId, { scopes: ["voucher.read"], ...more })).key;
}

async function redeem(owner: TestPartner, client: PartnerClient, externalRef: string) {
  const { code } = await issueVoucher(db, owner);
  return { code, redeemCode: (await client.redeem({ code, externalRef })).body.redeemCode };
}

/** Inserts redemptions of a new batch: the first at the given time, the others at an interval in milliseconds. */
async function insertRedemptions(priceUsd: string, keyId: string, count: number, from: Date, everyMs: number) {
  const batchId = newId("bat");
  await db.query(
    `INSERT INTO batches (id, product_id, voucher_count, valid_until, retail_price_usd, price_usd, benefit_months)
     VALUES ($1, $2, $3, 'infinity', 20, $4, 0)`,
    [batchId, partner.productId, count, priceUsd],
  );
  await db.query(
    `INSERT INTO vouchers (serial, last_sequence, sealed_sequence, id, organization_id, batch_id, code, code_key,
                           sealed_hash, pickable)
     SELECT n, 1, 1, 'vch_' || substr($1, 5, 20) || lpad(n::text, 6, '0'), $2, $1, $1 || n, $1 || n,
            sha256(n::text::bytea), false
       FROM generate_series(1, $3::int) AS n`,
    [batchId, partner.organizationId, count],
  );
  await db.query(
    `INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     SELECT date_trunc('milliseconds', $2::timestamptz + (serial - 1) * $3::float8 * interval '1 millisecond'), id,
            organization_id, $4, id, id, 'order <' || serial || '> of ' || $1
       FROM vouchers WHERE batch_id = $1`,
    [batchId, from, everyMs, keyId],
  );
}

/** Opens a page of the portal like a browser that is signed in with a key. */
const open = (path: string, key: string | null = reader, at = api, user = "zoë") =>
  browse(`${at.url}/portal${path}`, { headers: key === null ? {} : basic(key, user) });

/** Sends the form that searches the portal. */
const search = (words: string, key: string | null = reader, at = api, headers: Record<string, string> = {}) =>
  browse(`${at.url}/portal`, { form: { words }, headers: { ...(key !== null && basic(key)), ...headers } });

async function listedFrom(
  day: string,
  days: number,
): Promise<{ externalRef: string; discountPriceUsd: number; redeemedAt: string }[]> {
  const to = new Date(Date.parse(day) + days * DAY).toISOString();
  return (await till.redemptions({ from: `${day}T00:00:00Z`, to, limit: "1000" })).body.redemptions;
}

/** Opens the overview once the list of redemptions contains the order. */
async function openOverview(): Promise<string> {
  await until(async () => {
    const listed = await listedFrom(dayOf(today), 2);
    return listed.some(({ externalRef }) => externalRef === "order-of-the-portal");
  });
  return (await open("")).text;
}

/** The part of a page from one heading to the next. */
const sectionOf = (text: string, id: string) => text.split(`<h2 id="${id}">`)[1]?.split("<h2")[0] ?? "";

const dayOf = (at: Date) => at.toISOString().slice(0, 10);
const shownDay = (day: string) => new Intl.DateTimeFormat("en-GB", { dateStyle: "long" }).format(new Date(day));
const daysAgo = (days: number) => dayOf(new Date(today.getTime() - days * DAY));
const escaped = (text: string) => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
