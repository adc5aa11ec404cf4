import { beforeAll, describe, expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply } from "../support/client.ts";
import { countOutcomes } from "../support/marketplace.ts";
import { untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import type { TestServers } from "../support/servers.ts";
import type { TestApi } from "../support/service.ts";
import { startService } from "../support/start-service.ts";
import { issueVoucher, makeKey, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let apis: TestApi[];
let partner: TestPartner;

beforeAll(async () => {
  // Long enough that a busy machine answers every redeem.
  const service = await startService({ apis: 2, workers: 2, env: { REDEEM_WAIT_MS: "60000" } });
  ({ servers, apis, partner } = service);
  return service.close;
});

/** Creates a key and returns a client for it at each API. */
async function makeTills(): Promise<PartnerClient[]> {
  const { key } = await makeKey(servers.db, partner.organizationId);
  return apis.map((api) => partnerClient(api.url, key));
}

/** Sends `count` calls at once, spread evenly over the clients. */
function sendAtOnce(
  tills: PartnerClient[],
  count: number,
  call: (till: PartnerClient, n: number) => Promise<Reply>,
): Promise<Reply>[] {
  return Array.from({ length: count }, (_, n) => call(tills[n % tills.length] as PartnerClient, n));
}

async function expectOneRedemption(voucherId: string, redeemCode: string, externalRef: string): Promise<void> {
  const recorded = await readRecorded(servers.db, voucherId);
  expect(recorded).toMatchObject({ status: "Redeemed", redemption: { redeemCode, externalRef } });
  expect(recorded.events.map(({ eventType, sealStatus }) => `${sealStatus} ${eventType}`)).toEqual([
    "Sealed voucher.instance.issued",
    "Sealed voucher.instance.redeemed",
  ]);
  expect(recorded.events[1]?.data).toMatchObject({ redeemCode, externalRef });
}

describe("redeeming one voucher under many references", () => {
  it("redeems once and answers 409 voucher_used to the other 199 of 200", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(
      sendAtOnce(await makeTills(), 200, (till, n) => till.redeem({ code: voucher.code, externalRef: `many-${n}` })),
    );
    expect(countOutcomes(replies)).toEqual({ "200": 1, "409 voucher_used": 199 });
    const winner = replies.findIndex((reply) => reply.status === 200);
    expect(replies[winner]?.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: voucher.id });
    await expectOneRedemption(voucher.id, replies[winner]?.body.redeemCode, `many-${winner}`);
  });

  it("redeems once when 12 redeems have read the voucher as Active before the first is decided", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = sendAtOnce(tills, 12, (till, n) => till.redeem({ code: voucher.code, externalRef: `read-${n}` }));
      await until(async () => (await countJobs(servers, "redeem")) === 12);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(countOutcomes(replies)).toEqual({ "200": 1, "409 voucher_used": 11 });
    const winner = replies.findIndex((reply) => reply.status === 200);
    await expectOneRedemption(voucher.id, replies[winner]?.body.redeemCode, `read-${winner}`);
  });
});

describe("redeeming one voucher under one reference", () => {
  it("answers the same redemption to 100 simultaneous redeems, and only one has alreadyConfirmed false", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(
      sendAtOnce(await makeTills(), 100, (till) => till.redeem({ code: voucher.code, externalRef: "same" })),
    );
    expect(countOutcomes(replies)).toEqual({ "200": 100 });
    expect(replies.filter((reply) => reply.body.alreadyConfirmed === false)).toHaveLength(1);
    const bodies = new Set(replies.map(({ body }) => JSON.stringify({ ...body, alreadyConfirmed: null })));
    expect(bodies.size).toBe(1);
    await expectOneRedemption(voucher.id, replies[0]?.body.redeemCode, "same");
  });

  it("answers alreadyConfirmed false only once when 12 redeems start before the first is decided", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = sendAtOnce(tills, 12, (till) => till.redeem({ code: voucher.code, externalRef: "same-read" }));
      await until(async () => (await countJobs(servers, "redeem")) === 12);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(countOutcomes(replies)).toEqual({ "200": 12 });
    expect(replies.filter((reply) => reply.body.alreadyConfirmed === false)).toHaveLength(1);
    expect(new Set(replies.map(({ body }) => body.redeemCode)).size).toBe(1);
    await expectOneRedemption(voucher.id, replies[0]?.body.redeemCode, "same-read");
  });
});

describe("reserving one voucher", () => {
  it("gives one of five keys the same ticket for all its calls, and the other keys 409 voucher_reserved", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tillsOfKeys = await Promise.all(Array.from({ length: 5 }, makeTills));
    const replies = await Promise.all(sendAtOnce(tillsOfKeys.flat(), 100, (till) => till.reserve(voucher.code)));
    expect(countOutcomes(replies)).toEqual({ "200": 20, "409 voucher_reserved": 80 });
    const reserved = replies.flatMap(({ status, body }, n) =>
      status === 200 ? [{ ticket: body.ticket, key: Math.floor((n % 10) / 2) }] : [],
    );
    expect(new Set(reserved.map(({ key }) => key)).size).toBe(1);
    expect(new Set(reserved.map(({ ticket }) => ticket)).size).toBe(1);
    expect((await readRecorded(servers.db, voucher.id)).liveTicket).toBe(reserved[0]?.ticket);
  });

  it("gives one key the same ticket, token and end at two APIs that reserve at the same time", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = tills.map((till) => till.reserve(voucher.code));
      await untilWaiting(servers.db, tills.length);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(countOutcomes(replies)).toEqual({ "200": 2 });
    expect(replies[0]?.body).toEqual(replies[1]?.body);
    expect((await readRecorded(servers.db, voucher.id)).liveTicket).toBe(replies[0]?.body.ticket);
  });
});
