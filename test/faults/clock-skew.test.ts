import { afterEach, beforeAll, expect, it, vi } from "vitest";
import type { PartnerClient } from "../support/client.ts";
import { databaseTime, untilPast } from "../support/outside-transaction.ts";
import { readReservation } from "../support/recorded.ts";
import type { TestServers } from "../support/servers.ts";
import { startWorkers } from "../support/service.ts";
import { startService } from "../support/start-service.ts";
import { issueVoucher, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const HOUR_MS = 3_600_000;

let servers: TestServers;
let partner: TestPartner;
let till: PartnerClient;
let rival: PartnerClient;

beforeAll(async () => {
  const service = await startService({ workers: 1, env: { RESERVATION_SECONDS: "2" } });
  ({ servers, partner } = service);
  [till, rival] = [...service.tills, ...service.rivals] as [PartnerClient, PartnerClient];
  return service.close;
});

afterEach(() => {
  vi.useRealTimers();
});

/** Shifts the clock of this process, which runs the API and the workers. Does not shift the database's clock. */
function skewClock(byMs: number): void {
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + byMs });
}

it.each([
  ["an hour ahead", HOUR_MS],
  ["an hour behind", -HOUR_MS],
])("reservations, deadlines and redemptions follow the database's clock while the host's clock is %s", async (_how, skewMs) => {
  const validUntil = new Date(Date.now() + HOUR_MS / 2);
  const [reserved, redeemed] = [
    await issueVoucher(servers.db, partner, { validUntil }),
    await issueVoucher(servers.db, partner, { validUntil }),
  ];
  skewClock(skewMs);

  const before = await databaseTime(servers.db);
  const { status, body } = await till.reserve(reserved.code);
  expect(status).toBe(200);
  const { startedAt, expiresAt } = await readReservation(servers.db, body.ticket);
  expect(startedAt.getTime()).toBeGreaterThanOrEqual(before.getTime());
  expect(startedAt.getTime()).toBeLessThanOrEqual((await databaseTime(servers.db)).getTime());
  expect(expiresAt.getTime() - startedAt.getTime()).toBe(2_000);
  expect(body.expiresAt).toBe(expiresAt.toISOString());
  expect((await rival.reserve(reserved.code)).body.code).toBe("voucher_reserved");
  expect((await till.lookUp(reserved.code)).body.voucher.status).toBe("Active");

  const redeem = await till.redeem({ code: redeemed.code, externalRef: `skewed by ${skewMs}` });
  expect(redeem.status).toBe(200);
  const redeemedAt = Date.parse(redeem.body.redeemedAt);
  expect(redeemedAt).toBeGreaterThanOrEqual(before.getTime());
  expect(redeemedAt).toBeLessThanOrEqual((await databaseTime(servers.db)).getTime());

  await untilPast(servers.db, expiresAt);
  expect((await rival.reserve(reserved.code)).status).toBe(200);
});

it("a sweeper whose clock is an hour ahead does not delay the sweeps of a later sweeper", async () => {
  const env = { WORKER_QUEUES: "sweep", SWEEP_INTERVAL_MS: "300" };
  const swept = () => servers.redis.zcard(`${servers.queuePrefix}:sweep:completed`);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HOUR_MS, shouldAdvanceTime: true });
  const ahead = await startWorkers(servers, env);
  await until(async () => (await swept()) >= 2);
  await ahead.close();
  vi.useRealTimers();
  const before = await swept();
  const healthy = await startWorkers(servers, env);
  await until(async () => (await swept()) >= before + 3, 5_000).finally(() => healthy.close());
});
