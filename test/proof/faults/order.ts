import type { Exchange, History, Violation } from "./history.ts";
import { checkLists } from "./lists.ts";
import { type Observation, observe } from "./observations.ts";
import type { Records } from "./records.ts";
import { checkSecretEnds } from "./secret-ends.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import { checkVoucherRegisters } from "./voucher-register.ts";

/** Maximum number of reported violations of each rule. One fault may cause thousands. */
const REPORTED_MAX = 6;

/**
 * Checks that the answers and webhooks of a run have an order that agrees with real time.
 * Vouchers with their reservations, lists, and the ends of secrets have rules of their own: `checkVoucherRegisters`,
 * `checkLists`, `checkSecretEnds`. The states of the following subjects have an order:
 * - a reference, a claim, a purchase and a reservation: unconfirmed, then confirmed;
 * - a voucher's events: their number, and the number of sealed events;
 * - the lists of redemptions of the deployment: `completeUntil`;
 * - an offer: something left, then sold out.
 * The database at the end counts as the last answer. No answer may show an older state than an answer that came before
 * its request. No two answers may show different contents of a final state. A state that no answer has called final may
 * be lost with its primary, so it restricts only answers of the same primary.
 * @param history of one deployment.
 * @param records the database's content at the end, if it is known.
 */
export function checkOrder(history: History, clock: SteppedClock, records: Records | null = null): Violation[] {
  const bySubject = Map.groupBy(observe(history, records), ({ subject }) => subject);
  const ends = history.losses.flatMap(({ fromMs, untilMs }) => [fromMs, untilMs]);
  const epochOf = (atMs: number) => ends.filter((endMs) => endMs <= atMs).length;
  const older = [...bySubject.values()].flatMap((ofSubject) => findOlder(ofSubject, epochOf));
  const different = [...bySubject.values()].flatMap(findDifferent);
  return [
    ...describe("no answer shows an older state than one shown before it was asked", older),
    ...describe("no two answers show different contents of a final state", different),
    ...checkVoucherRegisters(history, clock, records),
    ...checkLists(history, records),
    ...checkSecretEnds(history),
  ];
}

/** A state, and a later answer that contradicts it. */
type Contradiction = [shown: Observation, contradicting: Observation];

/** Finds states that are older than a state in an answer from before their request. */
function findOlder(observations: readonly Observation[], epochOf: (atMs: number) => number): Contradiction[] {
  const returned = observations.toSorted((one, other) => one.returnedMs - other.returnedMs);
  const found: Contradiction[] = [];
  let latest: Observation | undefined;
  /** For each primary, the latest state that may be lost with it. */
  const latestOf = new Map<number, Observation>();
  let next = 0;
  for (const later of observations.toSorted((one, other) => one.invokedMs - other.invokedMs)) {
    for (
      let shown = returned[next];
      shown !== undefined && shown.returnedMs < later.invokedMs;
      shown = returned[next]
    ) {
      next += 1;
      const epoch = epochOf(shown.invokedMs);
      if (shown.isConfirmed && shown.rank > (latest?.rank ?? -1)) latest = shown;
      if (!shown.isConfirmed && shown.rank > (latestOf.get(epoch)?.rank ?? -1)) latestOf.set(epoch, shown);
    }
    const shown = [latest, latestOf.get(epochOf(later.returnedMs))].find((one) => one && one.rank > later.rank);
    if (shown !== undefined) found.push([shown, later]);
  }
  return found;
}

function findDifferent(observations: readonly Observation[]): Contradiction[] {
  const first = new Map<number, Observation>();
  return observations.flatMap((one): Contradiction[] => {
    if (one.content === undefined) return [];
    const shown = first.get(one.rank) ?? one;
    first.set(one.rank, shown);
    return shown.content === one.content ? [] : [[shown, one]];
  });
}

function describe(rule: string, contradictions: readonly Contradiction[]): Violation[] {
  return contradictions.slice(0, REPORTED_MAX).map(([shown, contradicting], at) => {
    const left = contradictions.length - REPORTED_MAX;
    const more = at === REPORTED_MAX - 1 && left > 0 ? `, and ${left} more` : "";
    const exchanges = [shown.exchange, contradicting.exchange].filter((one): one is Exchange => one !== null);
    return { rule, detail: `${shown.subject}: ${tell(shown)}, then ${tell(contradicting)}${more}`, exchanges };
  });
}

function tell({ rank, content, by }: Observation): string {
  const shown = content === undefined ? rank : `${rank} (${content})`;
  return `${by} showed ${shown}`;
}
