import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { partnerClient, type Reply } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { untilWaiting, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
let apis: TestApi[];
let workers: TestWorker[];
let partner: TestPartner;

beforeAll(async () => {
  servers = await openTestServers();
  const env = { RATE_LIMIT_RPS: "0", MISS_LIMIT_PER_MINUTE: "0" };
  apis = await Promise.all([startApi(servers, env), startApi(servers, env)]);
  workers = await Promise.all([startWorkers(servers), startWorkers(servers)]);
  partner = await makePartner(servers.db);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all(apis.map((api) => api.close()));
  await Promise.all(workers.map((worker) => worker.close()));
  await servers.close();
});

/** One client per API with the same, new key. */
async function makeTills() {
  const { key } = await makeKey(servers.db, partner.organizationId);
  return apis.map((api) => partnerClient(api.url, key));
}

type Till = ReturnType<typeof partnerClient>;

/** Sends `count` calls at once, by turns to each till. */
function sendAtOnce(tills: Till[], count: number, call: (till: Till, n: number) => Promise<Reply>): Promise<Reply>[] {
  return Array.from({ length: count }, (_, n) => call(tills[n % tills.length] as Till, n));
}

function outcomes(replies: readonly Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, body } of replies) {
    const outcome = status === 200 ? "200" : `${status} ${body.code}`;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

async function expectOneBurn(voucherId: string, redeemCode: string, externalRef: string): Promise<void> {
  const recorded = await readRecorded(servers.db, voucherId);
  expect(recorded).toMatchObject({ status: "Redeemed", redemption: { redeemCode, externalRef } });
  expect(recorded.events.map(({ eventType, sealStatus }) => `${sealStatus} ${eventType}`)).toEqual([
    "Sealed voucher.instance.issued",
    "Sealed voucher.instance.redeemed",
  ]);
  expect(recorded.events[1]?.data).toMatchObject({ redeemCode, externalRef });
}

describe("redeeming one voucher under many references", () => {
  it("burns once and answers 409 voucher_used to the other 199 of 200 simultaneous redeems", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(
      sendAtOnce(await makeTills(), 200, (till, n) => till.redeem({ code: voucher.code, externalRef: `many-${n}` })),
    );
    expect(outcomes(replies)).toEqual({ "200": 1, "409 voucher_used": 199 });
    const winner = replies.findIndex((reply) => reply.status === 200);
    expect(replies[winner]?.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: voucher.id });
    await expectOneBurn(voucher.id, replies[winner]?.body.redeemCode, `many-${winner}`);
  });

  it("burns once when all of 12 redeems have read the voucher as Active before the first of them decides", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = sendAtOnce(tills, 12, (till, n) => till.redeem({ code: voucher.code, externalRef: `read-${n}` }));
      await until(async () => (await countJobs(servers.redis, "redeem")) === 12);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(outcomes(replies)).toEqual({ "200": 1, "409 voucher_used": 11 });
    const winner = replies.findIndex((reply) => reply.status === 200);
    await expectOneBurn(voucher.id, replies[winner]?.body.redeemCode, `read-${winner}`);
  });
});

describe("redeeming one voucher under one reference", () => {
  it("answers the one burn to all of 100 simultaneous redeems and calls it new exactly once", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(
      sendAtOnce(await makeTills(), 100, (till) => till.redeem({ code: voucher.code, externalRef: "same" })),
    );
    expect(outcomes(replies)).toEqual({ "200": 100 });
    expect(replies.filter((reply) => reply.body.alreadyConfirmed === false)).toHaveLength(1);
    const bodies = new Set(replies.map(({ body }) => JSON.stringify({ ...body, alreadyConfirmed: null })));
    expect(bodies.size).toBe(1);
    await expectOneBurn(voucher.id, replies[0]?.body.redeemCode, "same");
  });

  it("calls the burn new exactly once when none of 12 redeems could know of the others", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = sendAtOnce(tills, 12, (till) => till.redeem({ code: voucher.code, externalRef: "same-read" }));
      await until(async () => (await countJobs(servers.redis, "redeem")) === 12);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(outcomes(replies)).toEqual({ "200": 12 });
    expect(replies.filter((reply) => reply.body.alreadyConfirmed === false)).toHaveLength(1);
    expect(new Set(replies.map(({ body }) => body.redeemCode)).size).toBe(1);
    await expectOneBurn(voucher.id, replies[0]?.body.redeemCode, "same-read");
  });
});

describe("reserving one voucher", () => {
  it("gives one ticket to one of five keys, all its repeats included, and 409 voucher_reserved to the other keys", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tillsOfKeys = await Promise.all(Array.from({ length: 5 }, makeTills));
    const replies = await Promise.all(sendAtOnce(tillsOfKeys.flat(), 100, (till) => till.reserve(voucher.code)));
    expect(outcomes(replies)).toEqual({ "200": 20, "409 voucher_reserved": 80 });
    const opened = replies.flatMap(({ status, body }, n) =>
      status === 200 ? [{ ticket: body.ticket, key: Math.floor((n % 10) / 2) }] : [],
    );
    expect(new Set(opened.map(({ key }) => key)).size).toBe(1);
    expect(new Set(opened.map(({ ticket }) => ticket)).size).toBe(1);
    expect((await readRecorded(servers.db, voucher.id)).liveTicket).toBe(opened[0]?.ticket);
  });

  it("gives the same ticket, token and end to all simultaneous reserves of one key through two APIs", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const replies = await Promise.all(sendAtOnce(await makeTills(), 40, (till) => till.reserve(voucher.code)));
    expect(outcomes(replies)).toEqual({ "200": 40 });
    expect(new Set(replies.map(({ body }) => JSON.stringify(body))).size).toBe(1);
  });

  it("gives both APIs the same ticket when neither could see the other's hold", async () => {
    const voucher = await issueVoucher(servers.db, partner);
    const tills = await makeTills();
    const { pending } = await whileLocked(servers.db, [voucher.id], async () => {
      const pending = tills.map((till) => till.reserve(voucher.code));
      await untilWaiting(servers.db, tills.length);
      return { pending };
    });
    const replies = await Promise.all(pending);
    expect(outcomes(replies)).toEqual({ "200": 2 });
    expect(replies[0]?.body).toEqual(replies[1]?.body);
    expect((await readRecorded(servers.db, voucher.id)).liveTicket).toBe(replies[0]?.body.ticket);
  });
});
