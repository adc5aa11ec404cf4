import { expect, it, vi } from "vitest";
import { onPath } from "../../../src/local/debian-packages.ts";
import { type CampaignOptions, type Progress, runCampaign } from "./campaign.ts";
import { describeViolation } from "./history.ts";
import { TARGET_NAMES, type TargetName } from "./nemesis.ts";
import { hasFakeTime } from "./stepped-clock.ts";

// Time for faults, recovery and checks, each with a generous limit.
vi.setConfig({ testTimeout: 450_000 });

/** These faults have their own campaign, because they use up much of Postgres. */
const ALONE: TargetName[] = ["setBack", "repeatedActs", "lockedRows", "floods"];

it("partners and users get true answers, and each voucher one redemption, during faults", async () => {
  const targets = TARGET_NAMES.filter((name) => !ALONE.includes(name) && (name !== "clock" || hasFakeTime()));
  // Its plan contains nearly every kind of fault, including a worker frozen for longer than its jobs stay locked.
  const isEnough = ({ issued, voided, erased, suspended, extended }: Progress) =>
    Math.min(issued, voided, erased, suspended, extended) > 0 && issued + voided + erased > 5;
  const totals = await run({ seed: 2885, targets, isEnough });
  expect(totals.acquired).toBeGreaterThan(10);
  expect(totals.second.confirmed).toBeGreaterThan(0);
  expect(totals.checkpoints).toBeGreaterThan(3);
  expect(totals.files).toBeGreaterThan(3);
  expect(Math.min(...totals.followed)).toBeGreaterThan(100);
  expect(totals).toSatisfy(isEnough);
});

it("answers stay true while Postgres is set back to older files, acts and jobs repeat, and APIs freeze", async () => {
  const targets: TargetName[] = [...ALONE, "api 0"];
  const isEnough = ({ faults }: Pick<Progress, "faults">) =>
    new Set(Object.keys(faults).map((fault) => fault.split(" ")[0])).size === targets.length;
  expect(await run({ seed: 7623, targets, isEnough })).toSatisfy(isEnough);
});

it.skipIf(onPath("redis-server") === null)(
  "partners and users get true answers on a Redis Cluster while masters fail and standbys take over",
  async () => {
    // Its plan kills masters, including the master that carries replies, promotes a stale replica, and kills the
    // primary of Postgres.
    const { faults } = await run({ seed: 338, onCluster: true });
    expect(Object.keys(faults).some((fault) => fault.startsWith("redisCluster"))).toBe(true);
  },
);

/**
 * Runs a campaign and expects no broken rule. A campaign without progress would prove nothing. An idle machine confirms
 * several hundred calls.
 */
async function run(options: Omit<CampaignOptions, "faultsMs">) {
  const totals = await runCampaign({ faultsMs: 25_000, ...options });
  expect(totals.violations.map(describeViolation)).toEqual([]);
  expect(totals.confirmed).toBeGreaterThan(10);
  expect(totals.retries).toBeGreaterThan(20);
  return totals;
}
