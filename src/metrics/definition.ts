/** One metric, as Prometheus sees it. */
export interface MetricDefinition {
  name: string;
  type: "counter" | "gauge" | "histogram";
  /** The processes that report it. */
  process: "api" | "worker" | "every";
  help: string;
  labels: readonly string[];
  /** Upper bounds of a histogram. */
  buckets?: readonly number[];
  /** Most label values that one process reports; further ones are counted under `other`. For labels whose values customers choose. */
  valuesMax?: number;
  /** Values of its only label that are reported as 0 from the start: `rate` does not see the first increase of a counter that begins at 1. */
  zero?: readonly string[];
}
