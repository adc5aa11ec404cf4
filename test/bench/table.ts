import { CONTENDERS, type ContenderId } from "./contenders.ts";

/** One turn of one contender. */
export interface Round {
  /** Completed units per second. */
  rate: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time per unit and process, in microseconds. The client is the load generator, on the same cores. */
  cpu: Record<"api" | "worker" | "redis" | "postgres" | "client", number>;
}

/** All turns of one contender in one case. */
export interface Series {
  contender: ContenderId;
  rounds: Round[];
}

/** The median; NaN without values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  return quantile(sorted, 0.5);
}

/** The quantile of sorted values, with linear interpolation; NaN without values. */
export function quantile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) return Number.NaN;
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}

/**
 * Renders a case as a Markdown table with the medians of each contender. The ratio compares the rates of the same round with the service
 * in --against, or without it with (a).
 */
export function showCase(title: string, all: readonly Series[]): string {
  const reference = ["against", "a"].map((id) => all.find(({ contender }) => contender === id)).find((found) => found);
  const ratioHead = reference === undefined ? "" : `× ${reference.contender === "a" ? "(a)" : reference.contender}`;
  const head = ["/s", "± %", ratioHead, "p50 ms", "p99 ms", "CPU µs", "API", "worker", "Redis", "Postgres", "client"];
  const rows = all.map(({ contender, rounds }) => {
    const of = (what: (round: Round) => number) => median(rounds.map(what));
    const rates = rounds.map(({ rate }) => rate);
    const ratios = rounds.map(({ rate }, index) => rate / (reference?.rounds[index]?.rate ?? Number.NaN));
    return [
      CONTENDERS[contender].title,
      whole(median(rates)),
      whole(((Math.max(...rates) - Math.min(...rates)) / 2 / median(rates)) * 100),
      reference === undefined ? "" : median(ratios).toFixed(2),
      of(({ p50Ms }) => p50Ms).toFixed(1),
      of(({ p99Ms }) => p99Ms).toFixed(1),
      whole(of(({ cpu }) => cpu.api + cpu.worker + cpu.redis + cpu.postgres)),
      ...(["api", "worker", "redis", "postgres", "client"] as const).map((who) => whole(of(({ cpu }) => cpu[who]))),
    ];
  });
  return formatTable([title, ...head], rows);
}

/** Aligns the columns for reading on a terminal. The first column is text, the others are numbers. */
function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(3, name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const show = (cells: readonly string[]) =>
    `| ${cells.map((text, column) => (column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [head, rule, ...rows].map(show).join("\n");
}

/** Rounds a value; empty when it could not be measured. */
function whole(value: number): string {
  return Number.isNaN(value) ? "" : String(Math.round(value));
}
