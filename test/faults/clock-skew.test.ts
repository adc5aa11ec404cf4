import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { databaseTime, untilPast } from "../support/outside-transaction.ts";
import { readReservation } from "../support/recorded.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, type TestWorker } from "../support/service.ts";
import { issueVoucher, makeKey, makePartner, type TestPartner } from "../support/supply.ts";

const HOUR_MS = 3_600_000;

let servers: TestServers;
let api: TestApi;
let workers: TestWorker;
let partner: TestPartner;
let till: PartnerClient;
let rival: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  [api, workers] = await Promise.all([startApi(servers, { RESERVATION_SECONDS: "2" }), startWorkers(servers)]);
  partner = await makePartner(servers.db);
  const [one, other] = await Promise.all([
    makeKey(servers.db, partner.organizationId),
    makeKey(servers.db, partner.organizationId),
  ]);
  [till, rival] = [partnerClient(api.url, one.key), partnerClient(api.url, other.key)];
});

afterEach(() => {
  vi.useRealTimers();
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([api.close(), workers.close()]);
  await servers.close();
});

/** Shifts the clock of API and workers, which run in this process; the database's stays. */
function skewClock(byMs: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + byMs });
}

it.each([
  ["an hour ahead", HOUR_MS],
  ["an hour behind", -HOUR_MS],
])("with the hosts' clocks %s, holds, deadlines, burns and ends go by the database's", async (_how, skewMs) => {
  const validUntil = new Date(Date.now() + HOUR_MS / 2);
  const [held, burnt] = [
    await issueVoucher(servers.db, partner, { validUntil }),
    await issueVoucher(servers.db, partner, { validUntil }),
  ];
  skewClock(skewMs);

  const before = await databaseTime(servers.db);
  const { status, body } = await till.reserve(held.code);
  expect(status).toBe(200);
  const { startedAt, expiresAt } = await readReservation(servers.db, body.ticket);
  expect(startedAt.getTime()).toBeGreaterThanOrEqual(before.getTime());
  expect(startedAt.getTime()).toBeLessThanOrEqual((await databaseTime(servers.db)).getTime());
  expect(expiresAt.getTime() - startedAt.getTime()).toBe(2_000);
  expect(body.expiresAt).toBe(expiresAt.toISOString());
  expect((await rival.reserve(held.code)).body.code).toBe("voucher_reserved");
  expect((await till.lookUp(held.code)).body.voucher.status).toBe("Active");

  const burn = await till.redeem({ code: burnt.code, externalRef: `skewed by ${skewMs}` });
  expect(burn.status).toBe(200);
  const redeemedAt = Date.parse(burn.body.redeemedAt);
  expect(redeemedAt).toBeGreaterThanOrEqual(before.getTime());
  expect(redeemedAt).toBeLessThanOrEqual((await databaseTime(servers.db)).getTime());

  await untilPast(servers.db, expiresAt);
  expect((await rival.reserve(held.code)).status).toBe(200);
});
