import { beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient, send } from "../support/client.ts";
import { databaseTime } from "../support/outside-transaction.ts";
import type { TestServers } from "../support/servers.ts";
import { BASE_URL, startApi, type TestApi } from "../support/service.ts";
import { startService } from "../support/start-service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

type Vouchers = Awaited<ReturnType<typeof issueVouchers>>;

let servers: TestServers;
let api: TestApi;
let partner: TestPartner;
let till: PartnerClient;
let key: string;
let foreign: PartnerClient;

beforeAll(async () => {
  const service = await startService({ workers: 1 });
  servers = service.servers;
  api = service.apis[0] as TestApi;
  partner = service.partner;
  key = (await makeKey(servers.db, partner.organizationId)).key;
  till = partnerClient(api.url, key);
  const stranger = await makePartner(servers.db);
  foreign = partnerClient(api.url, (await makeKey(servers.db, stranger.organizationId)).key);
  const [own, other] = [await issueVouchers(servers.db, partner, 5), await issueVouchers(servers.db, stranger, 1)];
  await redeemAll(till, own, "setup");
  await redeemAll(foreign, other, "setup");
  return service.close;
});

async function redeemAll(client: PartnerClient, vouchers: Vouchers, name: string) {
  const bodies = [];
  for (const { code, serial } of vouchers) {
    const { status, body } = await client.redeem({ code, externalRef: `${name}/${serial} &ü?` });
    expect(status).toBe(200);
    bodies.push(body);
  }
  return bodies;
}

/** Waits until the list is complete up to this moment. */
async function untilComplete(client = till): Promise<Date> {
  const now = await databaseTime(servers.db);
  await until(async () => Date.parse((await client.redemptions()).body.completeUntil) > now.getTime());
  return now;
}

/** Follows the cursor until a page is empty or is the last one. */
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

describe("GET /partner/redemptions", () => {
  it("lists every documented field of the organization's redemptions, oldest first, and no voucher code", async () => {
    const voucher = await issueVoucher(servers.db, partner);
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

  it("lists each redemption once with any page size, in order of time, then voucher", async () => {
    const all = (await readAll(till, { limit: "1000" })).listed;
    const order = all.map(({ redeemedAt, voucherInstanceId }) => `${redeemedAt} ${voucherInstanceId}`);
    expect(order).toEqual(order.toSorted());
    for (const limit of ["1", "2", "4"]) {
      const { listed, sizes } = await readAll(till, { limit });
      expect(listed).toEqual(all);
      expect(Math.max(...sizes)).toBe(Number(limit));
    }
  });

  it("lists from one time, inclusive, to another, exclusive, and has no next page once the list is complete up to the second time", async () => {
    const all = (await readAll(till, {})).listed;
    const [from, to] = [all[1]?.redeemedAt ?? "", all[3]?.redeemedAt ?? ""];
    const inRange = all.filter(({ redeemedAt }) => redeemedAt >= from && redeemedAt < to);
    expect(inRange.length).toBeGreaterThan(0);
    expect(await readAll(till, { from, to })).toMatchObject({ listed: inRange, cursor: null });
    // The same moments in another time zone.
    const inZone = (time: string) => new Date(Date.parse(time) + 5_400_000).toISOString().replace("Z", "+01:30");
    expect(await readAll(till, { from: inZone(from), to: inZone(to), limit: "1" })).toMatchObject({ listed: inRange });
    const early = { from: "2000-01-01T00:00:00Z", to: "2000-01-02T00:00:00Z" };
    expect((await till.redemptions(early)).body).toMatchObject({ redemptions: [], nextCursor: null });
  });

  it("returns a cursor at the end, with which a later call lists what was redeemed since, and nothing twice", async () => {
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

  it("reads completeUntil from the database at most once a second, however many pages are read", async () => {
    const times = new Set<string>();
    const startedAt = performance.now();
    for (let page = 0; page < 30; page++) times.add((await till.redemptions({ limit: "1" })).body.completeUntil);
    expect(times.size).toBeLessThanOrEqual(2 + (performance.now() - startedAt) / 1_000);
  });

  it("accepts cursors that another configured secret has signed, and none that a removed secret has signed", async () => {
    const { cursor } = await readAll(till, {});
    const rotated = await startApi(servers, {
      RESERVATION_TOKEN_SECRET: "a-new-secret-of-some-length,test-reservation-token-secret",
    });
    expect((await partnerClient(rotated.url, key).redemptions({ cursor: cursor ?? "" })).status).toBe(200);
    const renewed = await startApi(servers, { RESERVATION_TOKEN_SECRET: "a-new-secret-of-some-length" });
    expect((await partnerClient(renewed.url, key).redemptions({ cursor: cursor ?? "" })).status).toBe(400);
  });
});

describe("GET /partner/redemptions refuses with 400 and a sentence", () => {
  const refused = async (query: string, client = key) => {
    const { status, body } = await send("GET", `${api.url}/partner/redemptions${query}`, { key: client });
    expect({ status, code: body.code }).toEqual({ status: 400, code: "invalid_request" });
    expect(body.error).toMatch(/^[a-z]+ .*\.$/);
    return body.error as string;
  };

  it.each([
    ["?from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z", "from must be before to."],
    ["?from=2026-11-02T00:00:00Z&to=2026-11-02T01:00:00%2B01:00", "from must be before to."],
    ["?from=yesterday", /^from must be a time with a time zone, such as 2026-11-21T00:00:00Z/],
    ["?from=2026-11-02", /^from must be a time with a time zone/],
    ["?from=2026-11-02T00:00:00", /^from must be a time with a time zone/],
    ["?from=2026-11-02T00:00:00+01:00", /^from must be a time with a time zone/],
    ["?to=2026-02-30T00:00:00Z", /^to must be a time/],
    ["?to=2026-11-02T00:00:00.1234Z", /^to must be a time/],
    ["?to=1764547200", /^to must be a time/],
    ["?to=", /^to must be a time/],
    ["?to=0001-01-01T00:00:00Z", "to must be in the years 2000 to 2999."],
    ["?from=9999-12-31T23:59:59Z", "from must be in the years 2000 to 2999."],
    ["?from=2026-11-02T00:00:00Z&from=2026-11-03T00:00:00Z", "from must be one value."],
    ["?limit=0", "limit must be a whole number from 1 to 1000."],
    ["?limit=1001", "limit must be a whole number from 1 to 1000."],
    ["?cursor=", "cursor is not a cursor of this list."],
    ["?cursor=%00", "cursor is not a cursor of this list."],
    [`?cursor=${"x".repeat(600)}`, "cursor is not a cursor of this list."],
    ["?cursor=a&cursor=b", "cursor must be one value."],
  ])("%s", async (query, sentence) => {
    expect(await refused(query)).toMatch(sentence);
  });

  it("a cursor that is changed in any character, or is another organization's", async () => {
    const { cursor } = await readAll(till, {});
    const text = cursor ?? "";
    for (let at = 0; at < text.length; at += 7) {
      const changed = `${text.slice(0, at)}${text[at] === "A" ? "B" : "A"}${text.slice(at + 1)}`;
      expect(await refused(`?cursor=${changed}`)).toBe("cursor is not a cursor of this list.");
    }
    const { cursor: theirs } = await readAll(foreign, {});
    expect(await refused(`?cursor=${theirs}`)).toBe("cursor is not a cursor of this list.");
  });

  it("a cursor of another range", async () => {
    const { cursor } = await readAll(till, { from: "2020-01-01T00:00:00Z", to: "2900-01-01T00:00:00Z" });
    expect(await refused(`?cursor=${cursor}&from=2020-01-02T00:00:00Z`)).toBe("from differs from the cursor's.");
    expect(await refused(`?cursor=${cursor}&to=2900-01-02T00:00:00Z`)).toBe("to differs from the cursor's.");
    const { cursor: unbounded } = await readAll(till, {});
    expect(await refused(`?cursor=${unbounded}&to=2900-01-02T00:00:00Z`)).toBe("to differs from the cursor's.");
  });
});

describe("GET /partner/redemptions/{externalRef}", () => {
  it("answers what a repeated redeem answers, for references with any characters", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 3);
    const refs = ["plain", "with/slash?and#more %2F", "ünïcode 😀"];
    for (const [index, externalRef] of refs.entries()) {
      await till.redeem({ code: vouchers[index]?.code, externalRef });
      const again = await till.redeem({ code: vouchers[index]?.code, externalRef });
      const { status, body } = await till.redemption(externalRef);
      expect({ status, body }).toEqual({ status: 200, body: again.body });
      expect(body).toMatchObject({ alreadyConfirmed: true, voucherInstanceId: vouchers[index]?.id });
      expect((await till.redemption(` ${externalRef} `)).status).toBe(200);
    }
  });

  it.each([
    "never",
    "a\0b",
    "x".repeat(2_000),
    "\u0007",
  ])("answers 404 redemption_not_found to %j", async (externalRef) => {
    const { status, body } = await till.redemption(externalRef);
    expect({ status, code: body.code }).toEqual({ status: 404, code: "redemption_not_found" });
  });

  it("answers another organization's reference like an unknown one", async () => {
    const [known, unknown] = [await foreign.redemption("plain"), await foreign.redemption("never")];
    for (const { body } of [known, unknown]) delete body.requestId;
    expect([known.status, known.body]).toEqual([404, unknown.body]);
  });
});
