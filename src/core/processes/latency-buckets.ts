/** Ratio of each bucket's bound to the previous one. With this ratio, a percentile is off by at most 10 %. */
const BUCKET_GROWTH = 1.2;
/** Number of buckets. The last one ends at eleven hours. */
const BUCKETS_MAX = 96;

/** A bucket of latencies, and the number of latencies in it. */
export type BucketCount = readonly [bucket: number, count: number];

/** The bucket of a latency in milliseconds. */
export function bucketOf(latencyMs: number): number {
  return Math.min(Math.round(Math.log(Math.max(latencyMs, 1)) / Math.log(BUCKET_GROWTH)), BUCKETS_MAX);
}

/** The median and the 99th percentile of latencies. Milliseconds. */
export interface Percentiles {
  p50: number | null;
  p99: number | null;
}

/** The latencies that 50 % and 99 % of the counted calls do not exceed. Null if no call was counted. */
export function percentilesOf(counts: readonly BucketCount[]): Percentiles {
  return { p50: findPercentile(counts, 0.5), p99: findPercentile(counts, 0.99) };
}

function findPercentile(counts: readonly BucketCount[], share: number): number | null {
  const sorted = counts.toSorted(([a], [b]) => a - b);
  let left = Math.ceil(share * sorted.reduce((sum, [, count]) => sum + count, 0));
  for (const [bucket, count] of sorted) {
    left -= count;
    if (left <= 0) return Math.round(BUCKET_GROWTH ** bucket * 10) / 10;
  }
  return null;
}

/** The value that this share of the sorted values does not exceed, with one decimal. Null if there are no values. */
export function percentileOf(sorted: readonly number[], share: number): number | null {
  const value = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
  return value === undefined ? null : Math.round(value * 10) / 10;
}
