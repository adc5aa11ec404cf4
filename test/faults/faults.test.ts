import { describe, expect, it } from "vitest";
import { runCampaign } from "./campaign.ts";
import { planFaults } from "./nemesis.ts";
import { SeededRandom } from "./seeded-random.ts";
import { describeViolation } from "./violation.ts";

const FAULTS_MS = 22_000;
/** One whose plan has nearly everything that can be done, a worker frozen for longer than its jobs stay locked included. */
const SEED = 2572;

describe("partners at work while processes and servers are killed and frozen", () => {
  it("meet at most one burn per voucher and per reference, answers that stay true, and a service that comes back within 10 s", async () => {
    const totals = await runCampaign({ seed: SEED, faultsMs: FAULTS_MS });
    expect(totals.violations.map(describeViolation)).toEqual([]);
    // A run in which nobody got anything done would show nothing. On a machine of its own it is several hundred.
    expect(totals.confirmed).toBeGreaterThan(10);
    expect(totals.retries).toBeGreaterThan(20);
  }, 150_000);
});

describe("the plan of faults", () => {
  it("is the same for the same seed and another for another", () => {
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
