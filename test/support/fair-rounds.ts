import { expect } from "vitest";

/**
 * Measures until a round is fair: a busy machine may delay some rounds, but a delay by the service should appear in
 * each. Fails with the figures of all rounds.
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
