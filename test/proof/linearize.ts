/** An operation on one object, with the time in which it takes effect. */
export interface Operation<State> {
  /** It takes effect at one moment from here… */
  fromMs: number;
  /** …to here. Infinity when its outcome is unknown: it may take effect at any later time, or never. */
  untilMs: number;
  /**
   * The states that may follow: none when it cannot take effect in this state, or cannot have its answer.
   *
   * An operation that certainly takes effect, and that leaves some state as it is, must do nothing else in this state
   * and in all that may come later: it leaves them as they are, or cannot take effect. `linearize` places it at once,
   * and finds no order that needs a change by it later. A read complies. A change complies if it takes effect only in
   * states that it changes. A write that may find its value there already does not.
   */
  apply(state: State): State[];
}

/** Whether it takes effect at all. */
export const isCertain = ({ untilMs }: { untilMs: number }) => untilMs < Number.POSITIVE_INFINITY;

export type Verdict<Of> =
  | { kind: "linearizable" }
  /** No order explains the answers. `placed` is the longest one that explains some; `next` may follow it in time. */
  | { kind: "refused"; placed: Of[]; next: Of[] }
  /** The search was given up. */
  | { kind: "undecided" };

/** Configurations after which a search is given up. */
const CONFIGURATIONS_MAX = 200_000;

/**
 * Searches for an order of the operations that explains all answers, in which each operation takes effect between its
 * request and its answer: Wing and Gong's algorithm, with Lowe's memory of configurations. A configuration is the state
 * with the set of operations that have taken effect.
 */
export function linearize<State, Of extends Operation<State>>(
  initial: State,
  operations: readonly Of[],
  configurationsMax = CONFIGURATIONS_MAX,
): Verdict<Of> {
  const inOrder = operations.toSorted((one, other) => one.fromMs - other.fromMs);
  const seen = new Set<string>();
  let longest: Of[] = [];
  let next: Of[] = [];

  /** The operations that may be the next one: those that began before any that is left has ended. */
  const candidatesOf = (pending: readonly Of[]) => {
    const firstEndMs = Math.min(...pending.map(({ untilMs }) => untilMs));
    return pending.filter(({ fromMs }) => fromMs <= firstEndMs);
  };
  const search = (pending: readonly Of[], placed: readonly Of[], state: State): boolean => {
    if (!pending.some(isCertain)) return true;
    const now = JSON.stringify(state);
    const configuration = `${pending.map((one) => inOrder.indexOf(one)).join(" ")} ${now}`;
    if (seen.has(configuration)) return false;
    seen.add(configuration);
    if (seen.size > configurationsMax) throw new GivenUp();
    const candidates = candidatesOf(pending);
    if (placed.length >= longest.length) [longest, next] = [[...placed], candidates];
    const steps = candidates.flatMap((one) => one.apply(state).map((after) => ({ one, after })));
    const changes = steps.filter(({ after }) => JSON.stringify(after) !== now);
    const still = steps.find(({ one, after }) => isCertain(one) && JSON.stringify(after) === now);
    // A certain operation that changes nothing now changes nothing later, so it may come first in every order.
    const tried = still === undefined ? changes : [still];
    return tried.some(({ one, after }) => {
      const left = pending.filter((other) => other !== one);
      return search(left, [...placed, one], after);
    });
  };
  try {
    return search(inOrder, [], initial) ? { kind: "linearizable" } : { kind: "refused", placed: longest, next };
  } catch (error) {
    if (error instanceof GivenUp) return { kind: "undecided" };
    throw error;
  }
}

class GivenUp extends Error {}
