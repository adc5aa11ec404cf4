import { expect, it, vi } from "vitest";
import { onPath } from "../../../src/local/debian-packages.ts";
import { type CampaignOptions, type Progress, runCampaign } from "./campaign.ts";
import { describeViolation } from "./history.ts";
import { TARGET_NAMES, type TargetName } from "./nemesis.ts";
import { hasFakeTime } from "./stepped-clock.ts";

// Longer than the faults, their recovery and the checks can take.
vi.setConfig({ testTimeout: 1_800_000 });

/** Targets with a campaign of their own, because they block Postgres for much of the time. */
const ALONE: TargetName[] = ["setBack", "repeatedActs", "lockedRows", "floods"];

it("partners and users get true answers, and each voucher one redemption, during faults", async () => {
  const targets = TARGET_NAMES.filter((name) => !ALONE.includes(name) && (name !== "clock" || hasFakeTime()));
  // This seed leads to nearly every kind of fault. One fault freezes a worker for longer than its jobs stay locked.
  const isEnough = ({ issued, voided, erased, suspended, extended, ...others }: Progress) =>
    Math.min(issued, voided, erased, suspended, extended, others.second.confirmed) > 0 &&
    Math.min(issued + voided + erased, others.acquired, others.checkpoints, others.files) > 5 &&
    Math.min(...others.followed) > 100;
  await run({ seed: 2885, targets, isEnough });
});

it("answers stay true while Postgres is set back, administrative acts and jobs repeat, and APIs freeze", async () => {
  const targets: TargetName[] = [...ALONE, "api 0"];
  const isEnough = ({ faults }: Progress) =>
    new Set(Object.keys(faults).map((fault) => fault.split(" ")[0])).size === targets.length;
  await run({ seed: 7623, targets, isEnough, faultsMs: 10_000 });
});

it.skipIf(onPath("redis-server") === null)(
  "partners and users get true answers on a Redis Cluster while masters fail and standbys take over",
  async () => {
    // With this seed, faults kill masters, including the one that publishes the replies, promote a stale replica, and
    // kill Postgres's primary.
    const isEnough = ({ faults }: Progress) => Object.keys(faults).some((fault) => fault.startsWith("redisCluster"));
    await run({ seed: 338, onCluster: true, isEnough });
  },
);

/**
 * Runs a campaign until it has made enough progress to prove something, and expects no broken rule. An idle machine
 * confirms several hundred calls.
 */
async function run({
  isEnough,
  ...options
}: Partial<CampaignOptions> & Required<Pick<CampaignOptions, "isEnough" | "seed">>) {
  const isDone = (soFar: Progress) => soFar.confirmed > 10 && soFar.retries > 20 && isEnough(soFar);
  const totals = await runCampaign({ faultsMs: 25_000, ...options, isEnough: isDone });
  expect(totals.violations.map(describeViolation)).toEqual([]);
  expect(totals).toSatisfy(isDone);
}
