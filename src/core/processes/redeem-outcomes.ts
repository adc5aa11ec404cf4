/** Number of parts that are kept: a minute. A part is the time between two reports, five seconds. */
const PARTS_KEPT = 12;
/** Number of complete parts that count as recent. */
const RECENT_PARTS = 2;
/** Maximum number of different vouchers that are counted: more than any limit in the table of faults. */
const VOUCHERS_MAX = 10;

/** The redeems of a period: those answered with a worker's decision, and those that ended without an answer. */
export interface Outcomes {
  answered: number;
  unanswered: number;
  /** Ids or digests of the vouchers of redeems without an answer. They show how many differ. */
  vouchers: readonly string[];
}

/** The outcomes of about the last ten seconds and of about the last minute. */
export interface RecentOutcomes {
  recent: Outcomes;
  minute: Outcomes;
}

const NONE: Outcomes = { answered: 0, unanswered: 0, vouchers: [] };

export const NO_OUTCOMES: RecentOutcomes = { recent: NONE, minute: NONE };

/**
 * Counts in memory whether redeems get an answer. A redeem that the first read decides is not counted: it needs no
 * worker, so it does not show whether vouchers can be redeemed.
 */
export class RedeemOutcomes {
  #current = NONE;
  /** The complete parts, the newest last. */
  readonly #past: Outcomes[] = [];

  /** Counts a redeem that was answered with a worker's decision. */
  answered(): void {
    this.#current = { ...this.#current, answered: this.#current.answered + 1 };
  }

  /** Counts a redeem without an answer. @param voucher its id, or a keyed digest of its code; null if none was read. */
  unanswered(voucher: string | null): void {
    const vouchers = voucher === null ? [] : [voucher];
    this.#current = sumOf([this.#current, { ...NONE, unanswered: 1, vouchers }]);
  }

  /** Ends the present part and begins the next one. Called every five seconds. */
  advance(): void {
    this.#past.push(this.#current);
    if (this.#past.length > PARTS_KEPT) this.#past.shift();
    this.#current = NONE;
  }

  read(): RecentOutcomes {
    const parts = [...this.#past, this.#current];
    return { recent: sumOf(parts.slice(-1 - RECENT_PARTS)), minute: sumOf(parts) };
  }
}

/** Processes of an earlier release report no vouchers. */
function sumOf(parts: readonly (Omit<Outcomes, "vouchers"> & Partial<Outcomes>)[]): Outcomes {
  const add = (count: "answered" | "unanswered") => parts.reduce((sum, part) => sum + part[count], 0);
  const vouchers = new Set(parts.flatMap(({ vouchers = [] }) => vouchers));
  return { answered: add("answered"), unanswered: add("unanswered"), vouchers: [...vouchers].slice(0, VOUCHERS_MAX) };
}

/** The outcomes of several processes together. */
export function addOutcomes(all: readonly RecentOutcomes[]): RecentOutcomes {
  return { recent: sumOf(all.map(({ recent }) => recent)), minute: sumOf(all.map(({ minute }) => minute)) };
}
