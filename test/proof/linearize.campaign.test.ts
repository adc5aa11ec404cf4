import fc from "fast-check";
import { expect, it } from "vitest";
import { isCertain, linearize, type Operation } from "./linearize.ts";

// Compares `linearize` with a second implementation, which tries every order, on random small histories.

const RUNS = 4_000;
const SEED = 20_261_128;
const OPERATIONS_MAX = 6;

/** The tested object: a value that operations change, and a second one that is unknown until a read shows it. */
interface State {
  value: number;
  mark: number | null;
}
const INITIAL: State = { value: 0, mark: null };

type Kind = { read: number } | { from: number; to: readonly number[] } | { sees: number } | { write: number };
type Case = Operation<State> & { kind: Kind };

const someValue = fc.integer({ min: 0, max: 2 });
const someKind: fc.Arbitrary<Kind> = fc.oneof(
  fc.record({ read: someValue }),
  fc.record({ sees: someValue }),
  // A change from one or both of the other values. `Operation` forbids a change from the same value.
  fc.record({ from: someValue, steps: fc.subarray([1, 2], { minLength: 1 }) }).map(({ from, steps }) => {
    return { from, to: steps.map((step) => (from + step) % 3) };
  }),
);
const someOperation: fc.Arbitrary<Case> = fc
  .record({
    fromMs: fc.nat(8),
    how: fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: someKind, lengthMs: fc.nat(5) }) },
      // A write with an unknown outcome. Only such a write may find its value already there.
      {
        weight: 1,
        arbitrary: fc.record({
          kind: fc.oneof(someKind, fc.record({ write: someValue })),
          lengthMs: fc.constant(Number.POSITIVE_INFINITY),
        }),
      },
    ),
  })
  .map(({ fromMs, how: { kind, lengthMs } }) => {
    const apply = (state: State) => applyKind(kind, state);
    return { kind, fromMs, untilMs: fromMs + lengthMs, like: JSON.stringify(kind), apply };
  });

function applyKind(kind: Kind, state: State): State[] {
  if ("write" in kind) return [{ ...state, value: kind.write }];
  if ("read" in kind) return state.value === kind.read ? [state] : [];
  if ("sees" in kind) return (state.mark ?? kind.sees) === kind.sees ? [{ ...state, mark: kind.sees }] : [];
  return state.value === kind.from ? kind.to.map((value) => ({ ...state, value })) : [];
}

it("linearize refuses exactly the random histories that no order of calls explains", () => {
  const counts = { linearizable: 0, refused: 0, undecided: 0 };
  const property = fc.property(fc.array(someOperation, { minLength: 2, maxLength: OPERATIONS_MAX }), (operations) => {
    const { kind } = linearize(INITIAL, operations);
    counts[kind] += 1;
    expect(kind).toBe(isExplained(operations) ? "linearizable" : "refused");
  });
  fc.assert(property, { seed: SEED, numRuns: RUNS });
  // At least a tenth of the histories must be linearizable, and a tenth not. Otherwise the run would prove little.
  expect(Math.min(counts.linearizable, counts.refused)).toBeGreaterThan(RUNS / 10);
});

/** Yields the orders that respect real time: an operation that ended before another one began comes first. */
function* ordersOf(left: readonly Case[]): Generator<Case[]> {
  if (left.length === 0) yield [];
  for (const first of left) {
    const others = left.filter((one) => one !== first);
    if (others.some(({ untilMs }) => untilMs < first.fromMs)) continue;
    for (const rest of ordersOf(others)) yield [first, ...rest];
  }
}

/** Whether each operation can take effect in this order. An operation with an unknown outcome may have no effect. */
function isPossible(order: readonly Case[]): boolean {
  const end = order.reduce<State[]>(
    (states, one) => {
      const after = states.flatMap((state) => one.apply(state));
      return isCertain(one) ? after : states.concat(after);
    },
    [INITIAL],
  );
  return end.length > 0;
}

function isExplained(operations: readonly Case[]): boolean {
  for (const order of ordersOf(operations)) if (isPossible(order)) return true;
  return false;
}

/** Makes overlapping operations, each of which adds its own bit, and a read that no order explains. */
function addBits(count: number): Operation<number>[] {
  const overlapping = { fromMs: 0, untilMs: 1 };
  const adds = Array.from({ length: count }, (_, bit) => ({
    ...overlapping,
    apply: (bits: number) => [bits | (1 << bit)],
  }));
  return [...adds, { ...overlapping, apply: () => [] }];
}

it("linearize tries equal operations with an unknown outcome in only one order", () => {
  const add = { fromMs: 0, untilMs: Number.POSITIVE_INFINITY, like: "add", apply: (sum: number) => [sum + 1] };
  const adds = Array.from({ length: 30 }, () => ({ ...add }));
  const never = { fromMs: 0, untilMs: 1, apply: () => [] };
  expect(linearize<number, Operation<number>>(0, [...adds, never], 31).kind).toBe("refused");
});

it.each([
  [2 ** 8, "refused"],
  [2 ** 8 - 1, "undecided"],
])("linearize with a limit of %i configurations judges a history with 256 as %s", (configurationsMax, verdict) => {
  expect(linearize(0, addBits(8), configurationsMax).kind).toBe(verdict);
});
