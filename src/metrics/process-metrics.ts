import { collectDefaultMetrics, Registry } from "prom-client";

/**
 * The registry of one process, with what Node itself tells: processor time, memory, event loop, garbage collection. What is only
 * worth measuring when somebody looks is measured by the functions given to `beforeScrape`.
 */
export class ProcessMetrics {
  readonly registry = new Registry();
  readonly #measures: (() => unknown)[] = [];

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** Runs `measure` before each scrape, begun in the order in which they were given, and waits for it. It must not fail. */
  beforeScrape(measure: () => unknown): void {
    this.#measures.push(measure);
  }

  /** Everything that is known, measured just now, in the text format of Prometheus. */
  async scrape(): Promise<string> {
    await Promise.all(this.#measures.map((measure) => measure()));
    return this.registry.metrics();
  }
}
