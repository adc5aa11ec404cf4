import { expect } from "vitest";

/**
 * Measures until a round is fair: a busy machine may delay some rounds, and what the service itself delays should show
 * in each. Fails with the figures of all rounds.
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
