import { describe, expect, it } from "vitest";
import { onPath } from "../../src/local/debian-packages.ts";
import { runCampaign } from "./campaign.ts";
import { planFaults } from "./nemesis.ts";
import { SeededRandom } from "./seeded-random.ts";
import { describeViolation } from "./violation.ts";

const FAULTS_MS = 25_000;
/** Its plan contains nearly every kind of fault, including a worker frozen for longer than its jobs stay locked. */
const SEED = 2469;
/** Its plan kills masters, including that of the replies, promotes a stale replica, and freezes and breaks the primary of Postgres. */
const CLUSTER_SEED = 1879;

describe("partners and users during kills, freezes and failovers, with a second deployment on the same servers", () => {
  it("get at most one redemption per voucher and reference, only true answers, and recovery within 10 s", async () => {
    const totals = await runCampaign({ seed: SEED, faultsMs: FAULTS_MS });
    expect(totals.violations.map(describeViolation)).toEqual([]);
    // A run without progress would prove nothing. An idle machine reaches several hundred.
    expect(totals.confirmed).toBeGreaterThan(10);
    expect(totals.retries).toBeGreaterThan(20);
    expect(totals.acquired).toBeGreaterThan(10);
    expect(totals.second.confirmed).toBeGreaterThan(0);
    expect(totals.checkpoints).toBeGreaterThan(3);
  });
});

describe.skipIf(onPath("redis-server") === null)("partners and users on a Redis Cluster", () => {
  it("get the same while masters die, slots move, stale replicas are promoted and, with Patroni, standbys take over", async () => {
    const totals = await runCampaign({ seed: CLUSTER_SEED, faultsMs: FAULTS_MS, onCluster: true });
    expect(totals.violations.map(describeViolation)).toEqual([]);
    expect(totals.confirmed).toBeGreaterThan(10);
    expect(totals.retries).toBeGreaterThan(20);
    expect(Object.keys(totals.faults).some((fault) => fault.startsWith("redisCluster"))).toBe(true);
  });
});

describe("the plan of faults", () => {
  it("depends on the seed alone", () => {
    const plan = (seed: number) => planFaults(new SeededRandom(seed), 600_000);
    expect(plan(7)).toEqual(plan(7));
    expect(plan(8)).not.toEqual(plan(7));
  });

  it("undoes every fault before the run ends", () => {
    for (let seed = 1; seed <= 50; seed++) {
      for (const fault of planFaults(new SeededRandom(seed), 60_000))
        expect(fault.atMs + fault.forMs).toBeLessThanOrEqual(60_000);
    }
  });
});
