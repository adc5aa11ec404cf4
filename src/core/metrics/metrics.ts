import pLimit from "p-limit";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { nextPiece } from "../../platform/batching/fair-slots.ts";
import { METRICS, type MetricDefinition, type MetricTable } from "./metric-definitions.ts";

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
  /** The series that were already found, because finding a labelled series costs more than recording a value. */
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

  /** Removes all values. The metric reports nothing until the next value is recorded. */
  clear(): void {
    this.#metric.reset();
    // Removes the series too: after a reset, a gauge without labels would report 0.
    if (this.#labels.length === 0) this.#metric.remove();
  }
}

type ProcessKind = "api" | "worker";

type MetricsOf<Definitions extends MetricTable, Process> = {
  readonly [Key in keyof Definitions as Definitions[Key]["process"] extends "every" | Process ? Key : never]: Metric<
    Definitions[Key]["labels"],
    Recorders[Definitions[Key]["type"]]
  >;
};

/** The metrics of the wings (optional parts of the service) in a process. */
export interface OfWings<Process extends ProcessKind = ProcessKind> {
  process: Process;
  ofWings: ReadonlyMap<MetricTable, object>;
}

/** Declares the metrics of a wing (an optional part of the service). `of` finds them among a process's metrics. */
export const wingMetrics = <const Table extends MetricTable>(table: Table) => ({
  table,
  of: <Process extends ProcessKind>({ ofWings }: OfWings<Process>) => ofWings.get(table) as MetricsOf<Table, Process>,
});

/** What a wing (an optional part of the service) adds to the metrics. */
export interface MetricsPart {
  metrics?: { table: MetricTable };
}

/** The source of a scrape. */
export interface Scrapable {
  contentType: string;
  /** Every metric, measured now, in the text format of Prometheus. */
  scrape(): Promise<string>;
}

/** The metrics that every process reports. */
export type ServiceMetrics = MetricsOf<typeof METRICS, "every">;
type ProcessMetrics<Process extends ProcessKind> = MetricsOf<typeof METRICS, Process> & OfWings<Process> & Gauges;
export type ApiMetrics = ProcessMetrics<"api"> & Scrapable;
export type WorkerMetrics = ProcessMetrics<"worker"> & Scrapable;

interface Gauges {
  /** Clears the gauges that only this kind of process reports. They report nothing until they are recorded again. */
  clearGauges(): void;
}

/** Opens a process's metrics, with those of wings and Node. `measure` runs before each scrape and must not fail. */
export function openMetrics<Process extends ProcessKind>(
  process: Process,
  wings: readonly MetricsPart[],
  measure: (metrics: ProcessMetrics<Process>) => unknown,
): ProcessMetrics<Process> & Scrapable {
  const registry = new Registry();
  // One scrape at a time, because each scrape overwrites the measurements of the last one.
  const oneAtATime = pLimit(1);
  collectDefaultMetrics({ register: registry });
  const gauges: { clear(): void }[] = [];
  const open = <Table extends MetricTable>(table: Table) => {
    const reported = Object.entries(table).filter(([, metric]) => ["every", process].includes(metric.process));
    const opened = reported.map(([key, definition]) => {
      const metric = new Metric(definition, registry);
      if (definition.type === "gauge" && definition.process === process) gauges.push(metric);
      return [key, metric];
    });
    return Object.fromEntries(opened) as MetricsOf<Table, Process>;
  };
  const metrics: ProcessMetrics<Process> = {
    ...open(METRICS),
    process,
    ofWings: new Map(wings.flatMap(({ metrics }) => (metrics ? [[metrics.table, open(metrics.table)]] : []))),
    clearGauges: () => {
      for (const gauge of gauges) gauge.clear();
    },
  };
  return {
    ...metrics,
    contentType: registry.contentType,
    scrape: () =>
      oneAtATime(async () => {
        await measure(metrics);
        const texts: string[] = [];
        // Renders one metric per turn of the event loop, because a metric with a series per shard takes milliseconds.
        for (const { name } of registry.getMetricsAsArray()) {
          await nextPiece();
          texts.push(await registry.getSingleMetricAsString(name));
        }
        return `${texts.join("\n\n")}\n`;
      }),
  };
}
