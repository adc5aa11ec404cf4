/** How often a part of the time is counted: at each report. */
const PARTS_KEPT = 12;
/** The parts that are recent: two reports. */
const RECENT_PARTS = 2;

/** Redeems that were answered as a worker decided, and those that ended without an answer, in a time. */
export interface Outcomes {
  answered: number;
  unanswered: number;
}

/** The outcomes of about the last ten seconds and of about the last minute. */
export interface RecentOutcomes {
  recent: Outcomes;
  minute: Outcomes;
}

export const NO_OUTCOMES: RecentOutcomes = {
  recent: { answered: 0, unanswered: 0 },
  minute: { answered: 0, unanswered: 0 },
};

/**
 * Counts in memory whether redeems get an answer. What a first read decides counts as neither: it needs no worker, so it does not tell whether
 * vouchers can be redeemed.
 */
export class RedeemOutcomes {
  #current: Outcomes = { answered: 0, unanswered: 0 };
  /** The newest last. */
  readonly #past: Outcomes[] = [];

  /** A redeem was answered as a worker decided. */
  answered(): void {
    this.#current.answered += 1;
  }

  /** A redeem ended without an answer. */
  unanswered(): void {
    this.#current.unanswered += 1;
  }

  /** Begins a new part of the time. Called every five seconds. */
  advance(): void {
    this.#past.push(this.#current);
    if (this.#past.length > PARTS_KEPT) this.#past.shift();
    this.#current = { answered: 0, unanswered: 0 };
  }

  read(): RecentOutcomes {
    const parts = [...this.#past, this.#current];
    return { recent: sumOf(parts.slice(-1 - RECENT_PARTS)), minute: sumOf(parts) };
  }
}

function sumOf(parts: readonly Outcomes[]): Outcomes {
  return parts.reduce(
    (sum, { answered, unanswered }) => ({
      answered: sum.answered + answered,
      unanswered: sum.unanswered + unanswered,
    }),
    { answered: 0, unanswered: 0 },
  );
}

/** The outcomes of several processes together. */
export function addOutcomes(all: readonly RecentOutcomes[]): RecentOutcomes {
  return { recent: sumOf(all.map(({ recent }) => recent)), minute: sumOf(all.map(({ minute }) => minute)) };
}
