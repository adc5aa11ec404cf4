import pLimit from "p-limit";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { nextPiece } from "../../platform/batching/fair-slots.ts";
import type { MetricDefinition } from "./metric-definitions.ts";
import { METRICS } from "./metric-definitions.ts";

const CLASSES = { counter: Counter, gauge: Gauge, histogram: Histogram };

interface Recorders {
  counter: { inc(by?: number): void };
  gauge: { set(value: number): void; inc(by: number): void };
  histogram: { observe(value: number): void };
}

/** Stands for label values beyond a metric's `valuesMax`. */
const OTHER = "other";

/** One metric of this process. */
class Metric<Labels extends readonly string[], Recorder> {
  readonly #metric: Counter | Gauge | Histogram;
  readonly #labels: readonly string[];
  readonly #valuesMax: number;
  /** Finding a labelled series costs more than recording a value, so each is found once. */
  readonly #series = new Map<string, Recorder>();

  constructor(
    { type, name, help, labels, buckets = [], zero = [], valuesMax = Infinity }: MetricDefinition,
    registry: Registry,
  ) {
    this.#metric = new CLASSES[type]({
      name,
      help,
      labelNames: [...labels],
      buckets: [...buckets],
      registers: [registry],
    });
    this.#labels = labels;
    this.#valuesMax = valuesMax;
    if (!(this.#metric instanceof Histogram)) for (const value of zero) this.#metric.labels(value).inc(0);
  }

  /** The series with these labels, in the order of `METRICS`. */
  with(...labels: { [Index in keyof Labels]: string }): Recorder {
    const key = labels.join(" ");
    let series = this.#series.get(key);
    if (series === undefined && this.#series.size >= this.#valuesMax && !labels.includes(OTHER)) {
      return this.with(...(labels.map(() => OTHER) as { [Index in keyof Labels]: string }));
    }
    if (series === undefined) {
      series = this.#metric.labels(...labels) as Recorder;
      this.#series.set(key, series);
    }
    return series;
  }

  /** Reports nothing until the next value is recorded. */
  clear(): void {
    this.#metric.reset();
    // A reset leaves a gauge without labels at 0.
    if (this.#labels.length === 0) this.#metric.remove();
  }
}

type Definitions = typeof METRICS;

type MetricsOf<Process> = {
  readonly [Key in keyof Definitions as Definitions[Key]["process"] extends "every" | Process ? Key : never]: Metric<
    Definitions[Key]["labels"],
    Recorders[Definitions[Key]["type"]]
  >;
};

/** The source of a scrape. */
export interface Scrapable {
  contentType: string;
  /** Every metric, measured now, in the text format of Prometheus. */
  scrape(): Promise<string>;
}

/** The metrics that every process reports. */
export type ServiceMetrics = MetricsOf<"every">;
export type ApiMetrics = MetricsOf<"api"> & Scrapable;
export type WorkerMetrics = MetricsOf<"worker"> & Scrapable;

/** Opens a process's metrics and Node's own. `measure` runs before each scrape and must not fail. */
export function openMetrics<Process extends "api" | "worker">(
  process: Process,
  measure: (metrics: MetricsOf<Process>) => unknown,
): MetricsOf<Process> & Scrapable {
  const registry = new Registry();
  // Each scrape replaces what the last one has measured.
  const oneAtATime = pLimit(1);
  collectDefaultMetrics({ register: registry });
  const reported = Object.entries(METRICS).filter(([, metric]) => ["every", process].includes(metric.process));
  const metrics = Object.fromEntries(
    reported.map(([key, definition]) => [key, new Metric(definition, registry)]),
  ) as unknown as MetricsOf<Process>;
  return {
    ...metrics,
    contentType: registry.contentType,
    scrape: () =>
      oneAtATime(async () => {
        await measure(metrics);
        const texts: string[] = [];
        // A metric with a series for each shard takes milliseconds.
        for (const { name } of registry.getMetricsAsArray()) {
          await nextPiece();
          texts.push(await registry.getSingleMetricAsString(name));
        }
        return `${texts.join("\n\n")}\n`;
      }),
  };
}
