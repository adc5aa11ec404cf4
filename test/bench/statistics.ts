/** The middle value; of an even number the mean of the two middle ones. NaN of none. */
export function median(values: readonly number[]): number {
  return quantile(
    values.toSorted((a, b) => a - b),
    0.5,
  );
}

/** The value below which a share of sorted values lies, between neighbours in proportion. NaN of none. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

/** A difference of medians with the interval that holds the true one with 95 % confidence. */
export interface MedianDifference {
  difference: number;
  low: number;
  high: number;
}

const RESAMPLES = 500;

/** The median of `one` less that of `other`, with an interval by the bootstrap: both samples drawn anew from themselves, many times. */
export function compareMedians(one: readonly number[], other: readonly number[]): MedianDifference {
  const differences = Float64Array.from({ length: RESAMPLES }, () => resampledMedian(one) - resampledMedian(other));
  differences.sort();
  return {
    difference: median(one) - median(other),
    low: quantile(differences, 0.025),
    high: quantile(differences, 0.975),
  };
}

function resampledMedian(values: readonly number[]): number {
  const drawn = Float64Array.from(values, () => values[Math.floor(Math.random() * values.length)] as number);
  return quantile(drawn.sort(), 0.5);
}

/**
 * Mann and Whitney's test: how likely samples this different, or more, are if nothing distinguishes where they come from. By the
 * normal approximation, for samples of more than a few dozen.
 */
export function mannWhitney(one: readonly number[], other: readonly number[]): number {
  const all = [...one.map((value) => ({ value, isOne: true })), ...other.map((value) => ({ value, isOne: false }))];
  all.sort((a, b) => a.value - b.value);
  let rankSum = 0;
  for (let start = 0; start < all.length; ) {
    let end = start;
    while (end + 1 < all.length && all[end + 1]?.value === all[start]?.value) end += 1;
    // Equal values share the mean of their ranks.
    const rank = (start + end) / 2 + 1;
    for (let i = start; i <= end; i++) if (all[i]?.isOne) rankSum += rank;
    start = end + 1;
  }
  const u = rankSum - (one.length * (one.length + 1)) / 2;
  const mean = (one.length * other.length) / 2;
  const deviation = Math.sqrt((mean * (one.length + other.length + 1)) / 6);
  return 2 * (1 - normalDistribution(Math.abs(u - mean) / deviation));
}

/** Abramowitz and Stegun, 26.2.17; wrong by less than 1e-7. */
function normalDistribution(z: number): number {
  const t = 1 / (1 + 0.231_641_9 * z);
  const tail = [0.319_381_53, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
  const sum = tail.reduce((total, factor, index) => total + factor * t ** (index + 1), 0);
  return 1 - (Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)) * sum;
}
