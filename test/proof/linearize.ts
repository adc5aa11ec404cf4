/** An operation on one object, with its time range. */
export interface Operation<State> {
  /** The earliest time at which the operation can take effect. */
  fromMs: number;
  /** The latest time at which the operation can take effect. Infinity if the outcome is unknown. */
  untilMs: number;
  /**
   * Equal for operations with the same effect. If their outcome is unknown, the search tries only the earliest of them.
   */
  like?: string | null;
  /**
   * The states that may follow. None if the operation cannot take effect with its answer in this state.
   * An operation that certainly takes effect must keep this rule: if `apply` leaves a state unchanged, the operation
   * changes no later state. `linearize` places such an operation at once, so it would miss an order in which the
   * operation changes something later. A read satisfies this rule. A change satisfies it if it takes effect only in
   * states that it changes. A write that may find its value already there does not satisfy it.
   */
  apply(state: State): State[];
}

/** Whether the operation certainly takes effect. */
export const isCertain = ({ untilMs }: { untilMs: number }) => untilMs < Number.POSITIVE_INFINITY;

export type Verdict<Of> =
  | { kind: "linearizable" }
  /**
   * No order explains all answers. `placed` is the longest order that explains some of them. The times of the
   * operations in `next` allow them to follow it.
   */
  | { kind: "refused"; placed: Of[]; next: Of[] }
  | { kind: "undecided" };

/** Maximum number of configurations before a search is given up. */
const CONFIGURATIONS_MAX = 200_000;

/**
 * Searches for an order of the operations that explains all answers, in which each operation takes effect between its
 * request and its answer: Wing and Gong's algorithm, with Lowe's set of visited configurations. A configuration is a
 * state with the set of operations that have taken effect.
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

  /** Finds the operations that may come next: those that began before any remaining operation has ended. */
  const candidatesOf = (pending: readonly Of[]) => {
    const firstEndMs = Math.min(...pending.map(({ untilMs }) => untilMs));
    const seenLike = new Set<string>();
    return pending.filter((one) => {
      if (one.fromMs > firstEndMs) return false;
      if (one.like == null || isCertain(one)) return true;
      const isFirst = !seenLike.has(one.like);
      seenLike.add(one.like);
      return isFirst;
    });
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
    // If an operation certainly takes effect and changes nothing now, it changes no later state, so it comes first.
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
