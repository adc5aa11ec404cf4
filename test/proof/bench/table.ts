import { CONTENDERS, type ContenderId } from "./contenders.ts";

const PROCESSES = ["api", "worker", "redis", "postgres", "client"] as const;

/** One turn of one contender. */
export interface Round {
  /** Completed units per second. */
  rate: number;
  p50Ms: number;
  p99Ms: number;
  /** Microseconds of CPU per unit (pass through a case's steps). The client makes the load, on the same cores. */
  cpu: Record<(typeof PROCESSES)[number], number>;
  /** Write-ahead log that Postgres wrote per unit, in bytes. */
  walBytes: number;
}

const cpuOf = ({ cpu }: Round) => cpu.api + cpu.worker + cpu.redis + cpu.postgres;

/** All turns of one contender in one case. */
export interface Series {
  contender: ContenderId;
  rounds: Round[];
}

/** The median, or NaN without values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The quantile of values with linear interpolation, or NaN without values. */
export function quantile(values: readonly number[], share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = values.toSorted((one, other) => one - other);
  const place = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(place)] as number, sorted[Math.ceil(place)] as number];
  return below + (above - below) * (place - Math.floor(place));
}

/**
 * Renders a case as a Markdown table with the medians of each contender. The ratios compare rate and CPU time within
 * the same round: with the service of --against, with the small database, or else with baseline (a).
 */
export function showCase(title: string, all: readonly Series[]): string {
  const reference = ["against", "small", "a"]
    .map((id) => all.find(({ contender }) => contender === id))
    .find((found) => found);
  const ratioHead = reference === undefined ? "" : `× ${reference.contender === "a" ? "(a)" : reference.contender}`;
  const head = ["/s", "± %", ratioHead, "p50 ms", "p99 ms", "CPU µs", ratioHead];
  const rows = all.map(({ contender, rounds }) => {
    const of = (what: (round: Round) => number) => median(rounds.map(what));
    const rates = rounds.map(({ rate }) => rate);
    const ratio = (what: (round: Round) => number) => {
      const ratios = rounds.map((round, index) => {
        const other = reference?.rounds[index];
        return other === undefined ? Number.NaN : what(round) / what(other);
      });
      return show(median(ratios), 2);
    };
    return [
      CONTENDERS[contender].title,
      show(median(rates)),
      show(((Math.max(...rates) - Math.min(...rates)) / 2 / median(rates)) * 100),
      ratio(({ rate }) => rate),
      ...(["p50Ms", "p99Ms"] as const).map((name) => show(median(rounds.map((round) => round[name])), 1)),
      show(of(cpuOf)),
      ratio(cpuOf),
      ...PROCESSES.map((who) => show(of(({ cpu }) => cpu[who]))),
      show(of(({ walBytes }) => walBytes)),
    ];
  });
  const best: readonly (Best | null)[] = [
    ...[null, "highest", null, "highest", "lowest", "lowest", "lowest", "lowest"],
    ...PROCESSES.map((who) => (who === "client" ? null : "lowest")),
    "lowest",
  ] as const;
  return formatTable(
    [title, ...head, "API", "worker", "Redis", "Postgres", "client", "WAL B"],
    markBest(rows, best, (value) => value > 0),
  );
}

type Best = "lowest" | "highest";

/**
 * Sets the best displayed values of each column in bold, and all of them if several are equal.
 * @param best which value of each column is the best, or null for columns without one.
 * @param counts whether a value takes part. A contender without a worker does not win the worker's column.
 */
export function markBest(
  rows: readonly (readonly string[])[],
  best: readonly (Best | null)[],
  counts: (value: number) => boolean,
): string[][] {
  const takesPart = (cell: string | undefined) => cell !== undefined && cell !== "" && counts(Number(cell));
  const winners = best.map((which, column) => {
    const values = rows.map((row) => row[column]).filter(takesPart);
    if (which === null || values.length === 0) return null;
    return (which === "lowest" ? Math.min : Math.max)(...values.map(Number));
  });
  return rows.map((row) =>
    row.map((cell, column) => (takesPart(cell) && Number(cell) === winners[column] ? `**${cell}**` : cell)),
  );
}

/** Aligns the columns for reading on a terminal. The first column is text, the others are numbers. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(3, name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const pad = (text: string, column: number) =>
    column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0);
  const line = (cells: readonly string[]) => `| ${cells.map(pad).join(" | ")} |`;
  const rule = widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [head, rule, ...rows].map(line).join("\n");
}

/** Rounds a value. Empty for NaN, which stands for a value that could not be measured. */
function show(value: number, digits = 0): string {
  return Number.isNaN(value) ? "" : value.toFixed(digits);
}
