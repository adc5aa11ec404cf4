import { CONTENDERS, type ContenderId } from "./contenders.ts";

/** One turn of one contender. */
export interface Round {
  /** Completed units per second. */
  rate: number;
  p50Ms: number;
  p99Ms: number;
  /** CPU time per unit, in microseconds. The client is the load generator, on the same cores. */
  cpu: Record<"api" | "worker" | "redis" | "postgres" | "client", number>;
  /** The part of each Redis server that takes commands. */
  redisServers: number[];
  /** Bytes of Postgres's write-ahead log per unit. */
  walBytes: number;
  /** Writing transactions per unit. */
  commits: number;
  /** The part of their time in which the processors were idle. */
  idleShare: number;
}

/** CPU time per unit of all processes except the client. */
const cpuOf = ({ cpu }: Round) => cpu.api + cpu.worker + cpu.redis + cpu.postgres;

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
 * Renders a case as a Markdown table with the medians of each contender. The ratios compare rate and CPU time of the same round with the
 * service in --against, or without it with (a).
 */
export function showCase(title: string, all: readonly Series[]): string {
  const reference = ["against", "a"].map((id) => all.find(({ contender }) => contender === id)).find((found) => found);
  const ratioHead = reference === undefined ? "" : `× ${reference.contender === "a" ? "(a)" : reference.contender}`;
  const hasCluster = all.some(({ rounds }) => rounds.some(({ redisServers }) => redisServers.length > 1));
  const head = [
    ...[
      "/s",
      "± %",
      ratioHead,
      "p50 ms",
      "p99 ms",
      "CPU µs",
      ratioHead,
      "API",
      "worker",
      "Redis",
      "Postgres",
      "client",
    ],
    ...["WAL B", "commits", "idle %"],
    ...(hasCluster ? ["Redis masters"] : []),
  ];
  const rows = all.map(({ contender, rounds }) => {
    const of = (what: (round: Round) => number) => median(rounds.map(what));
    const rates = rounds.map(({ rate }) => rate);
    const ratio = (what: (round: Round) => number) => {
      if (reference === undefined) return "";
      const ratios = rounds.map((round, index) => {
        const other = reference.rounds[index];
        return other === undefined ? Number.NaN : what(round) / what(other);
      });
      return fixed(median(ratios), 2);
    };
    return [
      CONTENDERS[contender].title,
      whole(median(rates)),
      whole(((Math.max(...rates) - Math.min(...rates)) / 2 / median(rates)) * 100),
      ratio(({ rate }) => rate),
      of(({ p50Ms }) => p50Ms).toFixed(1),
      of(({ p99Ms }) => p99Ms).toFixed(1),
      whole(of(cpuOf)),
      ratio(cpuOf),
      ...(["api", "worker", "redis", "postgres", "client"] as const).map((who) => whole(of(({ cpu }) => cpu[who]))),
      whole(of(({ walBytes }) => walBytes)),
      fixed(
        of(({ commits }) => commits),
        3,
      ),
      whole(of(({ idleShare }) => idleShare * 100)),
      ...(hasCluster ? [showServers(rounds)] : []),
    ];
  });
  return formatTable([title, ...head], rows);
}

/** The median of each Redis server. */
function showServers(rounds: readonly Round[]): string {
  const servers = rounds[0]?.redisServers ?? [];
  return servers.map((_, n) => whole(median(rounds.map(({ redisServers }) => redisServers[n] as number)))).join(" ");
}

/** Aligns the columns for reading on a terminal. The first column is text, the others are numbers. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(3, name.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const show = (cells: readonly string[]) =>
    `| ${cells.map((text, column) => (column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0))).join(" | ")} |`;
  const rule = widths.map((width, column) => (column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`));
  return [head, rule, ...rows].map(show).join("\n");
}

/** Rounds a value; empty when it could not be measured. */
function whole(value: number): string {
  return fixed(value, 0);
}

function fixed(value: number, digits: number): string {
  return Number.isNaN(value) ? "" : value.toFixed(digits);
}
