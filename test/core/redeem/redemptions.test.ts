import { createHash } from "node:crypto";
import { beforeAll, expect, it, vi } from "vitest";
import { verifyStatement } from "#client/statement.ts";
import { erasePerson } from "../../../src/acts/erase-person.ts";
import { verifyServedStatement } from "../../../src/acts/verify-statement.ts";
import { runAtOnce } from "../../../src/core/callers/bulkhead.ts";
import { CALLER_KINDS } from "../../../src/core/callers/caller-kinds.ts";
import { readAllRedemptions, readPages } from "../../../src/core/redeem/list-redemptions.ts";
import { type PartnerClient, partnerClient, send } from "../../support/client.ts";
import { fillLine } from "../../support/fill-line.ts";
import { bypassTriggers, closeRedemptions } from "../../support/outside-transaction.ts";
import { BASE_URL } from "../../support/service.ts";
import { issueVouchers, makeKey, makePartner, provisioning } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

type Vouchers = Awaited<ReturnType<typeof issueVouchers>>;

const service = useService();
const { api, servers, partner, stranger, till, foreign, issue, keys } = service;

beforeAll(async () => {
  await redeemAll(till, await issueVouchers(servers.db, partner, 5), "setup");
  await redeemAll(foreign, await issueVouchers(servers.db, stranger, 1), "setup");
});

it("the list of redemptions has an organization's redemptions, oldest first, with all fields and no code", async () => {
  const voucher = await service.issue();
  const { ticket } = (await till.reserve(voucher.code)).body;
  const { body } = await till.redeem({ ticket, externalRef: "every field" });
  await untilComplete();
  const { listed } = await readAll(till, {});
  expect(listed.at(-1)).toStrictEqual({
    externalRef: "every field",
    voucherInstanceId: voucher.id,
    redeemCode: body.redeemCode,
    serial: voucher.serial,
    productName: "Pass",
    productKey: "pass",
    discountPriceUsd: 40.25,
    benefitMonths: 6,
    redeemedAt: body.redeemedAt,
    ticket,
    keyId: service.keys.till.id,
    keyLabel: null,
    verifyUrl: `${BASE_URL}/integrity/events/VoucherInstance/${voucher.id}`,
  });
  expect(listed.map(({ externalRef }) => externalRef.split("/")[0])).toEqual([
    ...Array(5).fill("setup"),
    "every field",
  ]);
  expect(listed[0]).toMatchObject({ ticket: null });
  expect(JSON.stringify(listed)).not.toContain(voucher.code);
  expect((await readAll(foreign, {})).listed).toHaveLength(1);
});

it("the list of redemptions has each redemption once with any page size, by time, then by voucher id", async () => {
  const all = (await readAll(till, { limit: "1000" })).listed;
  const order = all.map(({ redeemedAt, voucherInstanceId }) => `${redeemedAt} ${voucherInstanceId}`);
  expect(order).toEqual(order.toSorted());
  for (const limit of ["1", "2", "4"]) {
    const { listed, sizes } = await readAll(till, { limit });
    expect(listed).toEqual(all);
    expect(Math.max(...sizes)).toBe(Number(limit));
  }
});

it("the list of redemptions covers a time range, and has no next page when the range is complete", async () => {
  const all = (await readAll(till, {})).listed;
  const [from, to] = [all[1]?.redeemedAt ?? "", all[3]?.redeemedAt ?? ""];
  const inRange = all.filter(({ redeemedAt }) => redeemedAt >= from && redeemedAt < to);
  expect(inRange.length).toBeGreaterThan(0);
  expect(await readAll(till, { from, to })).toMatchObject({ listed: inRange, cursor: null });
  // Writes the same moment in another time zone.
  const inZone = (time: string) => new Date(Date.parse(time) + 5_400_000).toISOString().replace("Z", "+01:30");
  expect(await readAll(till, { from: inZone(from), to: inZone(to), limit: "1" })).toMatchObject({ listed: inRange });
  const early = { from: "2000-01-01T00:00:00Z", to: "2000-01-02T00:00:00Z" };
  expect((await till.redemptions(early)).body).toMatchObject({ redemptions: [], nextCursor: null });
});

it("the list of redemptions ends with a cursor that later returns only new redemptions", async () => {
  const tomorrow = { to: new Date(Date.now() + 86_400_000).toISOString() };
  for (const query of [{}, tomorrow] as Record<string, string>[]) {
    const first = await readAll(till, query);
    expect(first.cursor).toEqual(expect.any(String));
    expect((await till.redemptions({ cursor: first.cursor ?? "" })).body.redemptions).toEqual([]);
    await redeemAll(till, await issueVouchers(servers.db, partner, 2), JSON.stringify(query));
    await untilComplete();
    const second = await readAll(till, query, first.cursor ?? "");
    expect(second.listed).toHaveLength(2);
    expect([...first.listed, ...second.listed]).toEqual((await readAll(till, {})).listed);
  }
});

it("the list of redemptions computes completeUntil at most once a second, even for many pages", async () => {
  const times = new Set<string>();
  const startedAt = performance.now();
  for (let page = 0; page < 30; page++) times.add((await till.redemptions({ limit: "1" })).body.completeUntil);
  expect(times.size).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 1_000);
});

it("the list of redemptions accepts only cursors that a configured secret signed", async () => {
  const { cursor } = await readAll(till, {});
  for (const [secrets, status] of [
    ["a-new-secret-of-some-length,test-reservation-token-secret", 200],
    ["a-new-secret-of-some-length", 400],
  ] as const) {
    const { url } = await service.startApi({ RESERVATION_TOKEN_SECRET: secrets });
    const client = partnerClient(url, service.keys.till.key);
    expect((await client.redemptions({ cursor: cursor ?? "" })).status).toBe(status);
  }
});

it("the list of redemptions with Accept: text/csv is a CSV file with the same values", async () => {
  const [odd] = (await issueVouchers(servers.db, partner, 1)) as Vouchers;
  const externalRef = '=1+"2", 3';
  expect((await till.redeem({ code: odd?.code ?? "", externalRef })).status).toBe(200);
  const to = (await untilComplete()).toISOString();
  const { listed } = await readAll(till, { to });
  const get = (query: string, method = "GET") =>
    fetch(`${api.url}/partner/redemptions${query}`, {
      method,
      headers: { "x-api-key": service.keys.till.key, accept: "text/csv;charset=utf-8" },
    });
  const answer = await get(`?to=${to}&limit=1`);
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(answer.headers.get("complete-until")).toBe(to);
  const text = await answer.text();
  expect(answer.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
  const [heading, ...lines] = text.split("\r\n");
  const columns = heading?.split(",") as (keyof (typeof listed)[number])[];
  expect(columns).toEqual([
    ...["externalRef", "voucherInstanceId", "redeemCode", "serial", "productName", "productKey"],
    ...["discountPriceUsd", "benefitMonths", "redeemedAt", "ticket", "keyId", "keyLabel", "verifyUrl"],
  ]);
  expect(lines.pop()).toBe("");
  const quoted = (value: string) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  expect(lines).toEqual(listed.map((one) => columns.map((column) => quoted(String(one[column] ?? ""))).join(",")));
  expect(lines.some((line) => line.startsWith('"=1+""2"", 3",vch_'))).toBe(true);
  const head = await get(`?to=${to}`, "HEAD");
  expect([head.status, await head.text()]).toEqual([200, ""]);
  const future = await get("?to=2999-01-01T00:00:00Z");
  expect(Date.parse(future.headers.get("complete-until") ?? "")).toBeLessThan(Date.now() + 1_000);
  expect((await get("?from=yesterday")).status).toBe(400);
});

it("a file of redemptions that has begun is completed even if too many calls wait", async () => {
  const to = await untilComplete();
  const { listed } = await readAll(till, { to: to.toISOString() });
  const { pages } = readAllRedemptions(api.ctx, partner, {}, to);
  const empty = await fillLine(api.ctx.partnerCalls, CALLER_KINDS.partnerCalls, partner);
  const reading = pages[Symbol.asyncIterator]().next();
  await expect(api.ctx.partnerCalls(partner, async () => undefined)).rejects.toMatchObject({ code: "overloaded" });
  await empty();
  expect((await reading).value).toEqual(listed);
});

it("a failed read of the next page fails the file, and not the process", async () => {
  const page = Array(1_000).fill({ redeemedAt: new Date(), voucherId: "vch_x" });
  const reads = [Promise.resolve(page)];
  const select = () => reads.pop() ?? Promise.reject(new Error("the server has gone"));
  const pages = readPages({ ...api.ctx, partnerCalls: runAtOnce }, partner, select, new Date(0), new Date());
  const unhandled = vi.fn();
  process.once("unhandledRejection", unhandled);
  expect((await pages.next()).value).toBe(page);
  // Node reports an unhandled rejection before it runs this callback.
  await new Promise(setImmediate);
  process.off("unhandledRejection", unhandled);
  expect(unhandled).not.toHaveBeenCalled();
  await expect(pages.next()).rejects.toThrow(/has gone/);
});

it("a monthly statement has sums by brand, product and key, and is final when the month is complete", async () => {
  const { client, redeemed } = await redeemTwo();
  const month = redeemed[0]?.redeemedAt.slice(0, 7) ?? "";
  await untilComplete(client);
  const { body } = await client.statement(month);
  expect(body).toMatchObject({ month, final: false, rowsHash: null, redemptions: 2, amountUsd: 80.5 });
  expect(body.lines).toMatchObject([{ productKey: "pass", productName: "Pass", redemptions: 2, amountUsd: 80.5 }]);
  expect([body.firstRedeemedAt, body.lastRedeemedAt]).toEqual(redeemed.map(({ redeemedAt }) => redeemedAt));
  expect((await client.statement("2999-01")).body).toMatchObject({ final: false, redemptions: 0, lines: [] });
});

it("a final monthly statement keeps its bytes and hash after a brand is renamed and a reference erased", async () => {
  const { owner, client, key, redeemed } = await redeemTwo();
  await untilComplete(client);
  await inPastMonth(redeemed, async () => {
    const address = `${api.url}/partner/statements/2025-03`;
    const read = async (accept = "application/json") =>
      (await fetch(address, { headers: { "x-api-key": key, accept } })).text();
    const [first, same] = await Promise.all([read(), read()]);
    const statement = JSON.parse(first);
    expect(statement).toMatchObject({ final: true, redemptions: 2, amountUsd: 80.5, month: "2025-03" });
    const csv = await read("text/csv");
    const rows = csv.slice(csv.indexOf("\n") + 1);
    expect(createHash("sha256").update(rows).digest("hex")).toBe(statement.rowsHash);
    const { recordHash } = (await client.events(redeemed[0]?.code ?? "")).body.events[1];
    expect(rows.split("\r\n")[0]).toBe(
      `${redeemed[0]?.voucherInstanceId},2025-03-01T00:00:00.000Z,40.25,${recordHash}`,
    );
    await verifyStatement(statement, csv);
    for (const [other, file, problem] of [
      [{}, csv.replace("40.25", "40.26"), "The file is not the one"],
      [{ amountUsd: 80.51 }, csv, "The sum differs"],
      [{ redemptions: 3 }, csv, "The number of redemptions differs"],
      [{ final: false }, csv, "The statement is not final"],
      [{ lastRedeemedAt: statement.firstRedeemedAt }, csv, "The first or last time differs"],
    ] as const)
      await expect(verifyStatement({ ...statement, ...other }, file)).rejects.toThrow(problem);
    await servers.db.query("UPDATE brands SET name = 'Renamed' WHERE id = $1", [owner.brandId]);
    const externalRef = redeemed[0]?.externalRef ?? "";
    await erasePerson(provisioning(servers.db), { by: "reference", ...owner, externalRef }, null);
    expect([same, await read(), await read("text/csv")]).toEqual([first, first, csv]);
    const ctx = { pool: servers.db };
    for (const served of [first, JSON.stringify({ ...statement, sandbox: true }, null, 2), csv])
      expect(await verifyServedStatement(ctx, served)).toEqual(statement);
    for (const [file, problem] of [
      [first.replace('"pass"', '"fail"'), "differs in: lines."],
      [first.replace(statement.rowsHash, "0".repeat(64)), "differs in: rowsHash."],
      [JSON.stringify({ ...statement, final: false, more: 1 }), "differs in: final, more."],
      [first.slice(0, 100), "is no statement"],
      [csv.slice(0, csv.indexOf("\n") + 1), "has no redemptions"],
      [csv.replace("vch_", "vch_x"), "There is no voucher vch_x"],
      [csv.replace("40.25", "40.26"), "The file is not the one"],
    ] as const)
      await expect(verifyServedStatement(ctx, file), problem).rejects.toThrow(problem);
    await bypassTriggers(servers.db, "UPDATE redemptions SET redeemed_at = $2 WHERE voucher_id = $1", [
      ...[redeemed[1]?.voucherInstanceId, "2025-03-03T00:00:00Z"],
    ]);
    await expect(verifyServedStatement(ctx, first)).rejects.toThrow("The file is not the one");
    await expect(
      servers.db.query("INSERT INTO statements (organization_id, month, content) VALUES ($1, $2, $3)", [
        ...[owner.organizationId, "2998-12", '{"final":true,"month":"2998-12"}'],
      ]),
    ).rejects.toThrow("redemptions may be added to 2998-12");
  });
});

it.each([
  "2026-13",
  "2026",
  "1999-01",
  "2026-1",
])("a monthly statement for %s is refused with a sentence", async (month) => {
  expect((await till.statement(month)).body).toMatchObject({
    code: "invalid_request",
    error: "month must be a month such as 2026-11.",
  });
});

const refused = async (query: string) => {
  const { status, body } = await send("GET", `${api.url}/partner/redemptions${query}`, { key: service.keys.till.key });
  expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
  expect(body.error).toMatch(/^[a-z]+(Ref)? .*\.$/);
  return body.error as string;
};

it.each([
  ["?from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "from must be before to."],
  ["?from=yesterday", /^from must be a time with a time zone, such as 2026-11-21T00:00:00Z/],
  ["?from=2026-11-02T00:00:00+01:00", "from has a blank before its time zone: write a plus sign as %2B."],
  ["?from=yesterday&limit=0", /^from must be a time .*\. limit must be a whole number from 1 to 1000\.$/],
  ["?to=2026-11-02T00:00:00.1234Z", /^to must be a time/],
  ["?to=0001-01-01T00:00:00Z", "to must be in the years 2000 to 2999."],
  ["?from=2026-11-02T00:00:00Z&from=2026-11-03T00:00:00Z", "from must be one value."],
  ["?limit=0", "limit must be a whole number from 1 to 1000."],
  [`?cursor=${"x".repeat(600)}`, "cursor is not a cursor of this list."],
])("the list of redemptions refuses %s with 400 and a message", async (query, sentence) => {
  expect(await refused(query)).toMatch(sentence);
});

it("the list of redemptions refuses a changed cursor and another organization's cursor", async () => {
  const { cursor } = await readAll(till, {});
  expect(await refused(`?cursor=${cursor?.slice(1)}`)).toBe("cursor is not a cursor of this list.");
  const { cursor: theirs } = await readAll(foreign, {});
  expect(await refused(`?cursor=${theirs}`)).toBe("cursor is not a cursor of this list.");
});

it("the list of redemptions refuses a cursor of another time range", async () => {
  const { cursor } = await readAll(till, { from: "2020-01-01T00:00:00Z", to: "2900-01-01T00:00:00Z" });
  expect(await refused(`?cursor=${cursor}&from=2020-01-02T00:00:00Z`)).toBe("from differs from the cursor's.");
  expect(await refused(`?cursor=${cursor}&to=2900-01-02T00:00:00Z`)).toBe("to differs from the cursor's.");
});

it("reading a redemption by its reference returns what a repeated redeem returns", async () => {
  const vouchers = await issueVouchers(servers.db, partner, 6);
  const refs = ["plain", "with/slash?and#more %2F", "ünïcode 😀", "receipt", "...", "a+b &c"];
  for (const [index, externalRef] of refs.entries()) {
    await till.redeem({ code: vouchers[index]?.code, externalRef });
    const again = await till.redeem({ code: vouchers[index]?.code, externalRef });
    const { status, body } = await till.redemptions({ externalRef });
    const { redeemed, alreadyConfirmed, ...result } = again.body;
    const listed = { ...result, externalRef, ticket: null, keyId: keys.till.id };
    expect({ status, body }).toMatchObject({ status: 200, body: { redemptions: [listed], nextCursor: null } });
    // `/partner/redemptions/receipt` is a path of its own, so it finds no redemption under this reference.
    if (externalRef === "receipt") continue;
    expect((await till.redemption(externalRef)).body).toEqual(again.body);
    expect(again.body).toMatchObject({ alreadyConfirmed: true, voucherInstanceId: vouchers[index]?.id });
    expect((await till.redemption(` ${externalRef} `)).status).toBe(200);
  }
});

it("every spelling of a reference finds its redemption, and all answers show one spelling", async () => {
  const { code } = await issue();
  expect((await till.redeem({ code, externalRef: "\u2028Cafe\u0301\u200b 7\n" })).body).toMatchObject({
    redeemed: true,
  });
  for (const externalRef of ["Café 7", "Cafe\u0301 7", " Caf\u00e9\u00ad 7\ufeff"]) {
    expect((await till.redeem({ code, externalRef })).body).toMatchObject({ alreadyConfirmed: true });
    expect((await till.redemption(externalRef)).status).toBe(200);
    expect((await till.redemptions({ externalRef })).body.redemptions).toMatchObject([{ externalRef: "Café 7" }]);
    const other = (await till.redeem({ code: (await issue()).code, externalRef })).body;
    expect(other).toMatchObject({ alreadyConfirmed: true, otherVoucher: true });
  }
  const { rows } = await servers.db.query("SELECT external_ref FROM redemptions WHERE external_ref LIKE 'Caf%'");
  expect(rows).toEqual([{ external_ref: "Café 7" }]);
});

it("the list of redemptions refuses two references, and a reference with Accept: text/csv", async () => {
  expect(await refused("?externalRef=a&externalRef=b")).toBe("externalRef must be one value.");
  const csv = await send("GET", `${api.url}/partner/redemptions?externalRef=a`, {
    key: keys.till.key,
    headers: { accept: "text/csv" },
  });
  expect(csv.status).toBe(400);
});

it("a reference without a redemption gets 404 redemption_not_found", async () => {
  for (const externalRef of ["never", "a\0b", "x".repeat(2_000), "\u0007"]) {
    const { status, body } = await till.redemption(externalRef);
    expect({ status, code: body.code }).toEqual({ status: 404, code: "redemption_not_found" });
    expect((await till.redemptions({ externalRef })).body).toMatchObject({ redemptions: [], nextCursor: null });
    expect((await till.receiptByQuery(externalRef)).body.code).toBe("redemption_not_found");
  }
});

async function redeemTwo() {
  const owner = await makePartner(servers.db);
  const { key } = await makeKey(servers.db, owner.organizationId);
  const client = partnerClient(api.url, key);
  const redeemed: { externalRef: string; redeemedAt: string; voucherInstanceId: string; code: string }[] = [];
  for (const { code, serial } of await issueVouchers(servers.db, owner, 2)) {
    const { body } = await client.redeem({ code, externalRef: `of a statement ${serial}` });
    redeemed.push({ ...body, externalRef: `of a statement ${serial}`, code });
  }
  return { owner, key, client, redeemed };
}

/** Runs `work` while these redemptions are dated March 2025. */
async function inPastMonth(
  redeemed: readonly { redeemedAt: string; voucherInstanceId: string }[],
  work: () => Promise<void>,
): Promise<void> {
  const move = async (timeOf: (at: number, redeemedAt: string) => string) => {
    for (const [at, { redeemedAt, voucherInstanceId: id }] of redeemed.entries())
      await bypassTriggers(servers.db, "UPDATE redemptions SET redeemed_at = $2 WHERE voucher_id = $1", [
        ...[id, timeOf(at, redeemedAt)],
      ]);
  };
  await move((at) => `2025-03-0${at + 1}T00:00:00Z`);
  await work().finally(() => move((_at, redeemedAt) => redeemedAt));
}

async function redeemAll(client: PartnerClient, vouchers: Vouchers, name: string) {
  for (const { code, serial } of vouchers) {
    expect((await client.redeem({ code, externalRef: `${name}/${serial} &ü?` })).status).toBe(200);
  }
}

/** Waits until the list is complete up to now. A process reads completeUntil at most once a second. */
async function untilComplete(client = till): Promise<Date> {
  const now = await closeRedemptions(servers.db);
  await until(async () => Date.parse((await client.redemptions()).body.completeUntil) > now.getTime());
  return now;
}

/** Follows the cursor to the last page or to an empty one. */
async function readAll(client: PartnerClient, query: Record<string, string>, cursor?: string) {
  const listed: { externalRef: string; redeemedAt: string; voucherInstanceId: string }[] = [];
  const sizes: number[] = [];
  for (let next = cursor; ; ) {
    const { status, body } = await client.redemptions(next === undefined ? query : { ...query, cursor: next });
    expect(status).toBe(200);
    listed.push(...body.redemptions);
    sizes.push(body.redemptions.length);
    if (body.nextCursor === null || body.redemptions.length === 0) {
      return { listed, sizes, cursor: body.nextCursor as string | null };
    }
    next = body.nextCursor;
  }
}
