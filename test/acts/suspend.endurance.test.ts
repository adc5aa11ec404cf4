import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { issueTestBatch, issueVouchers } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { servers, db, partner, till } = useService();

const VOUCHERS = 100_000;
/** Maximum time until the history of every voucher in the batch has the suspension. Milliseconds. */
const FOLLOWED_MS = 300_000;
/** Number of tills that redeem continuously, one voucher after another. */
const TILLS = 4;
/** The test computes p99 from at least this many redeems during the suspension, and as many without it. */
const REDEEMS_MIN = 500;

it("a suspension of 100 000 vouchers takes effect at once while redeems of other vouchers continue", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, VOUCHERS);
  const others = (await issueVouchers(db, partner, 40_000)).map(({ code }) => code);
  const alone = await redeemUntil(others.splice(0, 2 * REDEEMS_MIN), new Promise(() => undefined));
  const startedAt = performance.now();
  const suspending = suspend(batchId).then((result) => ({ result, tookMs: performance.now() - startedAt }));
  const beside = redeemUntil(others, suspending);
  const { code = "" } = vouchers.at(-1) ?? {};
  let heldMs = 0;
  while (heldMs === 0) {
    const { status } = (await till.lookUp(code)).body.voucher;
    const { rows } = await db.query("SELECT clock_timestamp() - suspended_at AS since FROM batches WHERE id = $1", [
      batchId,
    ]);
    if (status === "Suspended") heldMs = rows[0].since.milliseconds ?? 0;
  }
  const { result, tookMs } = await suspending;
  const besides = await beside;
  const figures = { heldMs, tookMs, p99AloneMs: p99(alone), p99BesideMs: p99(besides) };
  process.stderr.write(`${JSON.stringify({ alone: alone.length, beside: besides.length, ...figures })}\n`);
  expect(besides.length).toBeGreaterThanOrEqual(REDEEMS_MIN);
  expect(result).toEqual({ suspended: VOUCHERS, alreadyFinal: 0 });
  expect(heldMs).toBeLessThan(1_000);
  expect(tookMs).toBeLessThan(FOLLOWED_MS);
  expect(figures.p99BesideMs).toBeLessThan(2 * figures.p99AloneMs);
}, 900_000);

/** Runs the command in a process of its own, as an operator does. */
async function suspend(batchId: string): Promise<unknown> {
  const line = ["src/cli/main.ts", "batch", "suspend", batchId, "--reason", "the parcel was stolen", "--json"];
  const env = { ...process.env, DATABASE_URL: servers.adminUrl, REDIS_URL: servers.redisUrl };
  const { stdout } = await promisify(execFile)(process.execPath, line, { env });
  return JSON.parse(stdout);
}

const p99 = (times: readonly number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;

/** Redeems all vouchers, or as many as it can before `end`. Returns the duration of each redeem, in milliseconds. */
async function redeemUntil(codes: readonly string[], end: Promise<unknown>): Promise<number[]> {
  let isOver = false;
  void end.then(() => {
    isOver = true;
  });
  const times: number[] = [];
  const rest = codes.values();
  const redeem = async () => {
    for (const code of rest) {
      if (isOver) return;
      const startedAt = performance.now();
      while ((await till.redeem({ code, externalRef: `order ${code}` })).status !== 200);
      times.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: TILLS }, redeem));
  return times;
}
