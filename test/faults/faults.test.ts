import { expect, it } from "vitest";
import { onPath } from "../../src/local/debian-packages.ts";
import { type CampaignOptions, runCampaign } from "./campaign.ts";
import { describeViolation } from "./history.ts";

/** Runs a campaign without a broken rule. One without progress would prove nothing; an idle machine confirms several hundred. */
async function run(options: Omit<CampaignOptions, "faultsMs">) {
  const totals = await runCampaign({ faultsMs: 25_000, ...options });
  expect(totals.violations.map(describeViolation)).toEqual([]);
  expect(totals.confirmed).toBeGreaterThan(10);
  expect(totals.retries).toBeGreaterThan(20);
  return totals;
}

it("partners and users during kills, freezes and failovers, with a second deployment on the same servers get at most one redemption per voucher and reference, only true answers, and recovery within 10 s", async () => {
  // Its plan contains nearly every kind of fault, including a worker frozen for longer than its jobs stay locked.
  const totals = await run({ seed: 2885 });
  expect(totals.acquired).toBeGreaterThan(10);
  expect(totals.second.confirmed).toBeGreaterThan(0);
  expect(totals.checkpoints).toBeGreaterThan(3);
});

it.skipIf(onPath("redis-server") === null)(
  "partners and users on a Redis Cluster get the same while masters die, slots move, stale replicas are promoted and, with Patroni, standbys take over",
  async () => {
    // Its plan kills masters, including that of the replies, promotes a stale replica, and kills the primary of Postgres.
    const { faults } = await run({ seed: 338, onCluster: true });
    expect(Object.keys(faults).some((fault) => fault.startsWith("redisCluster"))).toBe(true);
  },
);
