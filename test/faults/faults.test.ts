import { describe, expect, it } from "vitest";
import { onPath } from "../../src/local/debian-packages.ts";
import { runCampaign } from "./campaign.ts";
import { faultsOf } from "./nemesis.ts";
import { SeededRandom } from "./seeded-random.ts";
import { describeViolation } from "./violation.ts";

const FAULTS_MS = 25_000;
/** Its plan contains nearly every kind of fault, including a worker frozen for longer than its jobs stay locked. */
const SEED = 2885;
/** Its plan kills masters, including that of the replies, promotes a stale replica, and kills the primary of Postgres. */
const CLUSTER_SEED = 338;

it("partners and users during kills, freezes and failovers, with a second deployment on the same servers get at most one redemption per voucher and reference, only true answers, and recovery within 10 s", async () => {
  const totals = await runCampaign({ seed: SEED, faultsMs: FAULTS_MS });
  expect(totals.violations.map(describeViolation)).toEqual([]);
  // A run without progress would prove nothing. An idle machine reaches several hundred.
  expect(totals.confirmed).toBeGreaterThan(10);
  expect(totals.retries).toBeGreaterThan(20);
  expect(totals.acquired).toBeGreaterThan(10);
  expect(totals.second.confirmed).toBeGreaterThan(0);
  expect(totals.checkpoints).toBeGreaterThan(3);
});

describe.skipIf(onPath("redis-server") === null)("partners and users on a Redis Cluster", () => {
  it("partners and users on a Redis Cluster get the same while masters die, slots move, stale replicas are promoted and, with Patroni, standbys take over", async () => {
    const totals = await runCampaign({ seed: CLUSTER_SEED, faultsMs: FAULTS_MS, onCluster: true });
    expect(totals.violations.map(describeViolation)).toEqual([]);
    expect(totals.confirmed).toBeGreaterThan(10);
    expect(totals.retries).toBeGreaterThan(20);
    expect(Object.keys(totals.faults).some((fault) => fault.startsWith("redisCluster"))).toBe(true);
  });
});

it("the faults of a target depend on the seed alone", () => {
  const first = (seed: number) => {
    const faults = faultsOf("worker 0", new SeededRandom(seed));
    return Array.from({ length: 100 }, () => faults.next().value);
  };
  expect(first(7)).toEqual(first(7));
  expect(first(8)).not.toEqual(first(7));
});
