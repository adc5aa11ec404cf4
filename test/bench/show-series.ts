import type { LoadCase } from "./cases.ts";
import type { ContenderId } from "./contenders.ts";
import { formatTable } from "./format-table.ts";
import type { Round, Series } from "./play-rounds.ts";
import { median } from "./statistics.ts";

/** The median over the rounds of something about each. */
export function medianOf(series: Series, what: (round: Round) => number): number {
  return median(series.rounds.map(what));
}

/** CPU time of one unit in all processes of the contender and its servers. Microseconds. */
export function totalCpu({ cpu }: Round): number {
  return cpu.api + cpu.worker + cpu.redis + cpu.postgres;
}

/** One table of a case: a row for each contender, medians over its rounds. */
export function showSeries(title: string, unit: LoadCase["unit"], connections: number, all: readonly Series[]): string {
  const best = bestOf(all, ["a", "a-2"]);
  const head = [
    "",
    `${unit}/s`,
    "± %",
    "× (a)",
    "p50 ms",
    "p99 ms",
    "CPU µs",
    "API",
    "worker",
    "Redis",
    "Postgres",
    "client",
  ];
  const memoryHead = ["MB API", "worker", "Redis", "Postgres"];
  const rows = all.map((series) => {
    const rates = series.rounds.map((round) => round.rate);
    const rate = median(rates);
    const spread = ((Math.max(...rates) - Math.min(...rates)) / 2 / rate) * 100;
    const cpu = (["api", "worker", "redis", "postgres", "client"] as const).map((who) =>
      medianOf(series, (round) => round.cpu[who]),
    );
    const memory = (["api", "worker", "redis", "postgres"] as const).map(
      (who) => medianOf(series, (round) => round.memory[who]) / 1_048_576,
    );
    return [
      series.title,
      whole(rate),
      whole(spread),
      best === null ? "" : (rate / best).toFixed(2),
      medianOf(series, (round) => round.p50Ms).toFixed(1),
      medianOf(series, (round) => round.p99Ms).toFixed(1),
      ...[medianOf(series, totalCpu), ...cpu, ...memory].map(whole),
    ];
  });
  return `\n${title}, ${connections === 1 ? "one connection" : `${connections} connections`}\n\n${formatTable([...head, ...memoryHead], rows)}`;
}

/** The best median rate among contenders, or null when none of them played. */
function bestOf(all: readonly Series[], ids: readonly ContenderId[]): number | null {
  const rates = all
    .filter((series) => ids.includes(series.contender))
    .map((one) => medianOf(one, (round) => round.rate));
  return rates.length === 0 ? null : Math.max(...rates);
}

function whole(value: number): string {
  return Number.isNaN(value) ? "" : String(Math.round(value));
}
