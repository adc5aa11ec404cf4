import { afterEach, expect, it, vi } from "vitest";
import { databaseTime, untilPast } from "../../support/outside-transaction.ts";
import { readReservation } from "../../support/recorded.ts";
import { startWorkers } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const HOUR_MS = 3_600_000;

const { servers, db, till, rival, issue } = useService({ env: { RESERVATION_SECONDS: "5" } });

afterEach(() => {
  vi.useRealTimers();
});

it.each([
  ["an hour ahead", HOUR_MS],
  ["an hour behind", -HOUR_MS],
])("reservations, deadlines and redemptions use the database's clock if the host's is %s", async (_how, skewMs) => {
  const validUntil = new Date(Date.now() + HOUR_MS / 2);
  const [reserved, redeemed] = [await issue({ validUntil }), await issue({ validUntil })];
  // Shifts the clock of this process, which runs the API and the workers. The database's clock stays right.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + skewMs });
  const before = await databaseTime(db);
  const expectNow = async (time: Date) => {
    expect(time.getTime()).toBeGreaterThanOrEqual(before.getTime());
    expect(time.getTime()).toBeLessThanOrEqual((await databaseTime(db)).getTime());
  };
  const { status, body } = await till.reserve(reserved.code);
  expect(status).toBe(200);
  const { startedAt, expiresAt } = await readReservation(db, body.ticket);
  await expectNow(startedAt);
  expect(expiresAt.getTime() - startedAt.getTime()).toBe(5_000);
  expect(body.expiresAt).toBe(expiresAt.toISOString());
  expect((await rival.reserve(reserved.code)).body.code).toBe("voucher_reserved");
  expect((await till.lookUp(reserved.code)).body.voucher.status).toBe("Active");
  const redeem = await till.redeem({ code: redeemed.code, externalRef: `skewed by ${skewMs}` });
  expect(redeem.status).toBe(200);
  await expectNow(new Date(redeem.body.redeemedAt));
  await untilPast(db, expiresAt);
  expect((await rival.reserve(reserved.code)).status).toBe(200);
});

it("a sweeper whose host's clock is an hour ahead does not delay a later sweeper", async () => {
  const env = { WORKER_QUEUES: "sweep", SWEEP_INTERVAL_MS: "300" };
  const swept = () => servers.redis.zcard(`${servers.queuePrefix}:sweep:completed`);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HOUR_MS, shouldAdvanceTime: true });
  const ahead = await startWorkers(servers, env);
  await until(async () => (await swept()) >= 2);
  await ahead.close();
  vi.useRealTimers();
  const before = await swept();
  await startWorkers(servers, env);
  await until(async () => (await swept()) >= before + 3);
});
