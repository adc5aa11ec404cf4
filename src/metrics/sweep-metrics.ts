import { Counter, Histogram, type Registry } from "prom-client";
import type { SweepReport } from "../queues/catalog.ts";

/** Seconds; each of the sweeper's tasks goes on for two at most. */
const DURATION_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

/** The tasks, and which of a pass's counts is theirs. Chains are counted apart. */
const TASKS = {
  expireHolds: "holdsExpired",
  restoreLeases: "leasesRestored",
  removeOrphanLeases: "leasesRemoved",
  recordExpiries: "expiriesRecorded",
  endContracts: "contractsEnded",
  requestSeals: "sealsRequested",
  checkChains: null,
} as const satisfies Record<string, keyof SweepReport | null>;

/** What the sweeper of this process does. */
export class SweepMetrics {
  readonly #durations: Histogram;
  readonly #items: Counter<"task">;
  readonly #failures: Counter<"task">;
  readonly #chainsChecked: Counter;
  readonly #chainsBroken: Counter;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#durations = new Histogram({
      name: "voucher_sweep_duration_seconds",
      help: "Time that a pass of the sweeper takes.",
      buckets: DURATION_BUCKETS,
      registers,
    });
    this.#items = new Counter({
      name: "voucher_sweep_items_total",
      help: "What the sweeper got done, by task.",
      labelNames: ["task"],
      registers,
    });
    this.#failures = new Counter({
      name: "voucher_sweep_failures_total",
      help: "Times that a task of the sweeper failed; the next pass tries it again.",
      labelNames: ["task"],
      registers,
    });
    this.#chainsChecked = new Counter({
      name: "voucher_chains_checked_total",
      help: "Chains that the sweeper verified.",
      registers,
    });
    this.#chainsBroken = new Counter({
      name: "voucher_chains_broken_total",
      help: "Chains that the sweeper verified and found broken, counted again in each round.",
      registers,
    });
    // A counter that begins at 1 hides its first increase from `rate` and `increase`.
    for (const [task, count] of Object.entries(TASKS)) {
      this.#failures.inc({ task }, 0);
      if (count !== null) this.#items.inc({ task }, 0);
    }
  }

  /** Counts a pass. */
  countPass(report: SweepReport): void {
    this.#durations.observe(report.durationMs / 1_000);
    for (const [task, count] of Object.entries(TASKS)) if (count !== null) this.#items.inc({ task }, report[count]);
    for (const task of Object.keys(report.failures)) this.#failures.inc({ task });
    this.#chainsChecked.inc(report.chainsChecked);
    this.#chainsBroken.inc(report.chainsBroken);
  }
}
