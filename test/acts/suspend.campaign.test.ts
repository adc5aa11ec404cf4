import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { recordSuspensions } from "../../src/core/chain/record-suspensions.ts";
import { verifyAllChains } from "../../src/core/chain/verify-chains.ts";
import { issueTestBatch, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useService } from "../support/use-service.ts";

const { servers, db, partner, till } = useService();

const VOUCHERS = 10_000;

it("a killed suspension of a batch applies to all its vouchers, and the sweeper adds missing events", async () => {
  const { batchId, vouchers } = await issueTestBatch(db, partner, VOUCHERS);
  await killDuring("suspend", batchId, ["--reason", "the parcel was stolen"]);
  const lacking = await idsWithout(batchId, "suspended");
  expect(lacking.length).toBeGreaterThan(0);
  const refused = vouchers.filter(({ id }) => lacking.includes(id)).slice(-3);
  for (const { id, code } of refused) {
    const { status, body } = await till.redeem({ code, externalRef: `refused ${id}` });
    expect([status, body.code]).toEqual([409, "voucher_suspended"]);
  }
  await follow(batchId, "suspended");
  while ((await killDuring("resume", batchId, [])) && (await idsWithout(batchId, "resumed")).length > VOUCHERS / 2);
  await follow(batchId, "resumed");
  expect(await verifyAllChains({ pool: db })).toMatchObject({ vouchers: VOUCHERS, broken: [] });
  const { rows } = await db.query(
    `SELECT h.types, count(*)::int AS vouchers
       FROM (SELECT array_agg(e.event_type ORDER BY e.sequence) AS types
               FROM voucher_events AS e GROUP BY e.voucher_id) AS h GROUP BY h.types`,
  );
  const types = ["issued", "suspended", "resumed"].map((type) => `voucher.instance.${type}`);
  expect(rows).toEqual([{ types, vouchers: VOUCHERS }]);
  for (const { id, code } of refused)
    expect(await till.redeem({ code, externalRef: `refused ${id}` })).toMatchObject({ status: 200 });
});

/** Runs the command on the batch, and kills it after it has added some events. Returns whether it was killed. */
async function killDuring(verb: "suspend" | "resume", batchId: string, options: string[]): Promise<boolean> {
  const type = verb === "suspend" ? "suspended" : "resumed";
  const before = (await idsWithout(batchId, type)).length;
  const command = spawn(process.execPath, ["src/cli/main.ts", "batch", verb, batchId, ...options], {
    env: { ...process.env, DATABASE_URL: servers.adminUrl, REDIS_URL: servers.redisUrl },
    stdio: "ignore",
  });
  const ended = once(command, "exit");
  const isUnderWay = until(async () => (await idsWithout(batchId, type)).length < before);
  const isKilled = await Promise.race([ended.then(() => false), isUnderWay.then(() => true)]);
  command.kill("SIGKILL");
  await ended;
  return isKilled;
}

/** Runs passes of the sweeper until the histories of all vouchers have the event. */
async function follow(batchId: string, type: string): Promise<void> {
  await until(async () => {
    await recordSuspensions(provisioning(db), performance.now() + 2_000);
    return (await idsWithout(batchId, type)).length === 0;
  });
}

async function idsWithout(batchId: string, type: string): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>(
    `SELECT v.id FROM vouchers AS v
      WHERE v.batch_id = $1 AND NOT EXISTS (SELECT FROM voucher_events AS e
                                             WHERE e.voucher_id = v.id AND e.event_type = 'voucher.instance.' || $2)`,
    [batchId, type],
  );
  return rows.map(({ id }) => id);
}
