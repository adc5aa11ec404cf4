import { createHash } from "node:crypto";

/** How often a part of the time is counted: at each report. */
const PARTS_KEPT = 12;
/** The parts that are recent: two reports. */
const RECENT_PARTS = 2;
/** Vouchers that are told apart. More than any limit in the table of faults. */
const VOUCHERS_MAX = 10;

/** Redeems that were answered as a worker decided, and those that ended without an answer, in a time. */
export interface Outcomes {
  answered: number;
  unanswered: number;
  /** Marks of the vouchers that redeems without an answer named. They tell vouchers apart, not which ones they are. */
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
 * Counts in memory whether redeems get an answer. What a first read decides counts as neither: it needs no worker, so
 * it does not show whether vouchers can be redeemed.
 */
export class RedeemOutcomes {
  #current = NONE;
  /** The newest last. */
  readonly #past: Outcomes[] = [];

  /** A redeem was answered as a worker decided. */
  answered(): void {
    this.#current = { ...this.#current, answered: this.#current.answered + 1 };
  }

  /** A redeem ended without an answer. @param voucher its id, or the code or ticket; null if it was not read so far. */
  unanswered(voucher: string | null): void {
    const vouchers = voucher === null ? [] : [createHash("sha256").update(voucher).digest("base64url").slice(0, 8)];
    this.#current = sumOf([this.#current, { ...NONE, unanswered: 1, vouchers }]);
  }

  /** Begins a new part of the time. Called every five seconds. */
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
