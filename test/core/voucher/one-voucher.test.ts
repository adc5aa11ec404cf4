import { beforeAll, expect, it } from "vitest";
import { type PartnerClient, partnerClient, type Reply, untilDecided } from "../../support/client.ts";
import { countOutcomes } from "../../support/marketplace.ts";
import { untilWaiting, whileLocked } from "../../support/outside-transaction.ts";
import { readRecorded } from "../../support/recorded.ts";
import { countJobs } from "../../support/redeem-jobs.ts";
import { makeKey } from "../../support/supply.ts";
import { until, untilStarted } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

// REDEEM_WAIT_MS is so long that even a busy machine answers every redeem.
const { servers, apis, partner, issue, tills } = useService({
  apis: [{}, {}],
  workers: [{}, {}],
  env: { REDEEM_WAIT_MS: "60000" },
});

beforeAll(async () => {
  // Opens the processes' connections. On a busy machine, the first calls may fail because this takes too long.
  await untilStarted(async () => {
    const { code, id } = await issue();
    const replies = await redeemAtOnce(code, id, 200, false, (n) => `warm-${id}-${n}`);
    return replies.every(({ status }) => status < 500);
  });
});

it.each([
  [200, false],
  [12, true],
])("%i simultaneous redeems redeem their voucher once (all read Active first: %s)", async (count, stuck) => {
  const { code, id } = await issue();
  const replies = await redeemAtOnce(code, id, count, stuck, (n) => `many-${count}-${n}`);
  expect(countOutcomes(replies)).toEqual({ "200": 1, "409 voucher_used": count - 1 });
  const winner = replies.findIndex((reply) => reply.status === 200);
  expect(replies[winner]?.body).toMatchObject({ alreadyConfirmed: false, voucherInstanceId: id });
  await expectOneRedemption(id, replies[winner]?.body.redeemCode, `many-${count}-${winner}`);
});

it.each([
  [100, false],
  [12, true],
])("%i simultaneous redeems under one reference redeem once (all read Active first: %s)", async (count, stuck) => {
  const { code, id } = await issue();
  const replies = await redeemAtOnce(code, id, count, stuck, () => `same-${count}`);
  expect(countOutcomes(replies)).toEqual({ "200": count });
  expect(replies.filter((reply) => reply.body.alreadyConfirmed === false)).toHaveLength(1);
  const bodies = new Set(replies.map(({ body }) => JSON.stringify({ ...body, alreadyConfirmed: null })));
  expect(bodies.size).toBe(1);
  await expectOneRedemption(id, replies[0]?.body.redeemCode, `same-${count}`);
});

it("if five keys reserve one voucher, one key always gets the same ticket, and others voucher_reserved", async () => {
  const voucher = await issue();
  const keys = await Promise.all(Array.from({ length: 5 }, () => makeKey(servers.db, partner.organizationId)));
  const tillsOfKeys = keys.map(({ key }) => apis.map(({ url }) => partnerClient(url, key)));
  const replies = await Promise.all(sendAtOnce(tillsOfKeys.flat(), 100, (till) => till.reserve(voucher.code)));
  expect(countOutcomes(replies)).toEqual({ "200": 20, "409 voucher_reserved": 80 });
  const reserved = replies.flatMap(({ status, body }, n) =>
    status === 200 ? [{ ticket: body.ticket, key: Math.floor((n % 10) / 2) }] : [],
  );
  expect(new Set(reserved.map(({ key }) => key)).size).toBe(1);
  expect(new Set(reserved.map(({ ticket }) => ticket)).size).toBe(1);
  expect((await readRecorded(servers.db, voucher.id)).liveTicket).toBe(reserved[0]?.ticket);
});

it("two APIs that reserve one voucher for one key at the same time return the same ticket, token and end", async () => {
  const voucher = await issue();
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

/** Sends `count` concurrent calls, spread evenly over the clients. */
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

/** Sends concurrent redeems of one voucher. With `stuck`, all calls read the voucher as Active before any decision. */
async function redeemAtOnce(code: string, id: string, count: number, stuck: boolean, refOf: (n: number) => string) {
  const send = () =>
    sendAtOnce(tills, count, (till, n) => untilDecided(() => till.redeem({ code, externalRef: refOf(n) })));
  if (!stuck) return Promise.all(send());
  const { pending } = await whileLocked(servers.db, [id], async () => {
    const pending = send();
    await until(async () => (await countJobs(servers, "redeem")) === count);
    return { pending };
  });
  return Promise.all(pending);
}
