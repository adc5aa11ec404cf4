/** What each process counts to find faults, each over so many minutes, the time range of its Prometheus alert. */
export const COUNTED = {
  responses: 1,
  /** Judged as a share of the responses of one minute. The alert averages over five, because scrapes are rarer. */
  errors: 1,
  overloaded: 5,
  internalErrors: 10,
  codesGuessed: 10,
  referencesReused: 10,
  foreignMessages: 10,
  logLinesDropped: 10,
  signInsFailed: 10,
  /** Counted for each of the sweeper's tasks, under names such as `sweepFailures countActivity`. */
  sweepFailures: 15,
  /** The same failures in the last minute only. */
  sweepFailuresNow: 1,
};

type Counted = keyof typeof COUNTED;

/** Counts of one or several processes. Each covers its number of minutes in {@link COUNTED}. */
export type FaultCounts = Readonly<Record<string, number>>;

/** Counts are kept in steps of this length. Milliseconds. */
const STEP_MS = 5_000;
const STEPS_MAX = (Math.max(...Object.values(COUNTED)) * 60_000) / STEP_MS;

/** Keeps counts in memory. */
export class FaultCounter {
  readonly #monotonicMs: () => number;
  readonly #steps = new Map<number, Map<string, number>>();

  constructor(monotonicMs = () => performance.now()) {
    this.#monotonicMs = monotonicMs;
  }

  /** @param detail tells counts of one kind apart. */
  count(kind: Counted, detail?: string, by = 1): void {
    if (by === 0) return;
    const now = this.#step();
    const step = this.#steps.get(now) ?? new Map<string, number>();
    const name = detail === undefined ? kind : `${kind} ${detail}`;
    this.#steps.set(now, step.set(name, (step.get(name) ?? 0) + by));
  }

  read(): FaultCounts {
    const now = this.#step();
    const sums: Record<string, number> = {};
    for (const [at, step] of this.#steps) {
      if (now - at > STEPS_MAX) this.#steps.delete(at);
      for (const [name, count] of step) {
        const keptMs = COUNTED[name.split(" ")[0] as Counted] * 60_000;
        if ((now - at) * STEP_MS <= keptMs) sums[name] = (sums[name] ?? 0) + count;
      }
    }
    return sums;
  }

  #step(): number {
    return Math.floor(this.#monotonicMs() / STEP_MS);
  }
}

/** The counts of several processes together. Processes of an earlier release report none. */
export function addCounts(all: readonly (FaultCounts | undefined)[]): FaultCounts {
  const sums: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts ?? {})) sums[name] = (sums[name] ?? 0) + count;
  return sums;
}
