/** Splits a list into portions of at most `max` entries, in its order. */
export function portionsOf<T>(all: readonly T[], max: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / max) }, (_, n) => all.slice(n * max, (n + 1) * max));
}
