import { describe, expect, it } from "vitest";
import { compareMedians, mannWhitney, median, quantile } from "./statistics.ts";

/** Pseudo-random numbers from 0 to 1, the same in every run (mulberry32). */
function numbersFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function sample(seed: number, shift: number): number[] {
  const next = numbersFrom(seed);
  return Array.from({ length: 500 }, () => next() + shift);
}

describe("statistics of the benchmark", () => {
  it("takes the middle value, or the mean of the two in the middle", () => {
    expect(median([5, 1, 3])).toBe(3);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([])).toBeNaN();
  });

  it("reads quantiles between neighbours in proportion", () => {
    expect(quantile([0, 10, 20, 30], 0)).toBe(0);
    expect(quantile([0, 10, 20, 30], 0.5)).toBe(15);
    expect(quantile([0, 10, 20, 30], 0.99)).toBeCloseTo(29.7);
    expect(quantile([0, 10, 20, 30], 1)).toBe(30);
  });

  it("finds no difference between samples of the same kind", () => {
    const { low, high } = compareMedians(sample(1, 0), sample(2, 0));
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(0);
    expect(mannWhitney(sample(1, 0), sample(2, 0))).toBeGreaterThan(0.05);
  });

  it("finds a difference of a third of the deviation, and says how large it is", () => {
    const { low, high } = compareMedians(sample(1, 0.1), sample(2, 0));
    expect(low).toBeGreaterThan(0);
    expect(high).toBeGreaterThan(0.1);
    expect(mannWhitney(sample(1, 0.1), sample(2, 0))).toBeLessThan(0.001);
  });

  it("computes the test of Mann and Whitney as its definition says", () => {
    const p = mannWhitney([3, 4, 2, 6, 2, 5, 9, 1], [9, 7, 5, 10, 6, 8, 3, 2]);
    expect(p).toBeCloseTo(twoSided([3, 4, 2, 6, 2, 5, 9, 1], [9, 7, 5, 10, 6, 8, 3, 2]), 4);
  });
});

/** The same by its definition: U counts the pairs in which one value is the larger, equal ones as a half. */
function twoSided(one: number[], other: number[]): number {
  const u = one
    .flatMap((a) => other.map((b) => (a > b ? 1 : a === b ? 0.5 : 0)))
    .reduce<number>((sum, won) => sum + won, 0);
  const deviation = Math.sqrt((one.length * other.length * (one.length + other.length + 1)) / 12);
  const z = Math.abs(u - (one.length * other.length) / 2) / deviation;
  // The tail of the normal distribution, by summing its density.
  let tail = 0;
  const step = 0.0001;
  for (let x = z; x < 8; x += step) tail += (Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI)) * step;
  return 2 * tail;
}
