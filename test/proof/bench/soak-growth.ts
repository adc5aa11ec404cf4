import { formatTable, median } from "./table.ts";

/** A size at one moment. */
export interface Measured {
  kind: "table" | "key" | "memory" | "heap";
  /** What `MAY_GROW` lists: an index's table, a key's pattern, or the process. */
  owner: string;
  name: string;
  value: number;
}

/** All sizes at one moment, with the number of calls so far. */
export interface Sample {
  hours: number;
  calls: number;
  measured: readonly Measured[];
}

export interface Growth {
  name: string;
  /** The median of the first and of the last part of the samples. For heaps, the minimum. */
  first: number;
  last: number;
  /** Growth per hour and per thousand calls, fitted by least squares. */
  perHour: number;
  perThousandCalls: number;
  /** The reason why the size may grow, or null. */
  reason: string | null;
  isUnbounded: boolean;
}

/** Records are kept forever, and each call adds some. */
const KEPT = "is kept";
const REPORTED = "minutes are kept for two hours, hours for 50";
/** Sizes that may grow, each with the reason. No other size may grow. */
const MAY_GROW: readonly (readonly [RegExp, string])[] = [
  [/^(vouchers|voucher_events|redemptions|claims|log_batches|audit_entries)$/, KEPT],
  [/^reservations$/, "is kept; unused ones for RESERVATION_RETENTION_DAYS"],
  [/^database_marks$/, "one a second, up to 86 400"],
  [/^(activity_counts|acquired_counts)$/, "a row for each organization and minute or hour, for 72 hours"],
  [/^reference_ends$/, "deleted after one to two hours"],
  [/:sweep:(\*|completed)$/, "a pass every 5 s, kept for an hour"],
  [/:events$/, "1 000 entries of each queue, about"],
  [/:overview\}:(minute|hour|jobs):\*$/, REPORTED],
];
/** The share of the samples in the first part, and in the last. Both contain as much full load as quarter load. */
const PART = 0.25;
/**
 * Growth within a run is noise unless it exceeds this share of the size and the amount in `NOISE`. A process allocates
 * memory in large pieces in its first quarter of an hour, so a leak shows in the heap: within half an hour if it is a
 * kilobyte a call.
 */
const NOISE_SHARE = 0.1;
const NOISE: Record<Measured["kind"], number> = {
  table: 128 * 1_024,
  // The queue keeps ended jobs for half a minute. Under this load they take about a megabyte, which varies.
  key: 512 * 1_024,
  memory: 128 * 2 ** 20,
  heap: 32 * 2 ** 20,
};
/** The same for counts. */
const NOISE_COUNT = 200;

/** Separates, for each size, growth with time from growth with calls, and says whether the size may grow. */
export function judgeGrowth(samples: readonly Sample[]): Growth[] {
  const series = new Map<string, { of: Measured; points: [hours: number, calls: number, value: number][] }>();
  for (const { measured } of samples)
    for (const of of measured) if (!series.has(of.name)) series.set(of.name, { of, points: [] });
  for (const [name, { points }] of series) {
    for (const { hours, calls, measured } of samples)
      points.push([hours, calls, measured.find((one) => one.name === name)?.value ?? 0]);
  }
  return [...series.values()].map(({ of, points }) => judgeOne(of, points));
}

function judgeOne({ kind, owner, name }: Measured, points: readonly (readonly [number, number, number])[]): Growth {
  const slopes = fitPlane(points);
  const values = points.map(([, , value]) => value);
  const length = Math.ceil(values.length * PART);
  // A heap contains garbage until it is collected, so its minimum shows the data in use.
  const typical = kind === "heap" ? (some: number[]) => Math.min(...some) : median;
  const [first, last] = [typical(values.slice(0, length)), typical(values.slice(-length))];
  const noise = name.endsWith("bytes") ? NOISE[kind] : NOISE_COUNT;
  const reason = MAY_GROW.find(([pattern]) => pattern.test(owner))?.[1] ?? null;
  return {
    name,
    first,
    last,
    perHour: slopes[0] as number,
    perThousandCalls: (slopes[1] as number) * 1_000,
    reason,
    isUnbounded: reason === null && last - first > Math.max(noise, NOISE_SHARE * first),
  };
}

/** Fits value = a × hours + b × calls + c by least squares, and returns a and b. */
function fitPlane(points: readonly (readonly [number, number, number])[]) {
  const count = points.length;
  const mean = [0, 1, 2].map((column) => points.reduce((sum, point) => sum + (point[column] as number), 0) / count);
  const moment = (one: number, other: number) =>
    points.reduce(
      (sum, point) =>
        sum + ((point[one] as number) - (mean[one] as number)) * ((point[other] as number) - (mean[other] as number)),
      0,
    );
  const [hh, hc, cc, hv, cv] = [moment(0, 0), moment(0, 1), moment(1, 1), moment(0, 2), moment(1, 2)];
  const determinant = hh * cc - hc * hc;
  return determinant === 0 ? [0, 0] : [(hv * cc - cv * hc) / determinant, (cv * hh - hv * hc) / determinant];
}

/** Renders a table of the sizes that grew. */
export function showGrowth(growths: readonly Growth[]): string {
  const changed = growths.filter(({ first, last, isUnbounded }) => first !== last || isUnbounded);
  const show = (value: number) => Math.round(value).toLocaleString("en-US");
  const rows = changed.map(({ name, first, last, perHour, perThousandCalls, reason, isUnbounded }) => [
    name,
    ...[first, last, perHour, perThousandCalls].map(show),
    isUnbounded ? "GROWS" : (reason ?? "bounded"),
  ]);
  const others = growths.length - changed.length;
  const head = ["Size", "first", "last", "+ an hour", "+ 1000 calls", "growth"];
  return `${formatTable(head, rows)}\n\n${others} other sizes did not change.`;
}
