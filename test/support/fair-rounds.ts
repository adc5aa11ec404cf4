import { expect } from "vitest";

/**
 * Measures until `isFair` accepts a round: a busy machine may delay some rounds, but a delay by the service appears in
 * each. If no round is fair, fails with the figures of all.
 */
export async function expectFairRound<T>(
  roundsMax: number,
  measure: () => Promise<T>,
  isFair: (round: T) => boolean,
): Promise<void> {
  const rounds: T[] = [];
  while (rounds.length < roundsMax && !rounds.some(isFair)) rounds.push(await measure());
  expect(rounds.filter(isFair), JSON.stringify(rounds)).not.toEqual([]);
}
