import { Counter, Histogram, type Registry } from "prom-client";

/** The route of everything that no route answers: paths that do not exist are without number. */
const NO_ROUTE = "none";
/** Methods that have a name of their own; anybody may send any of the others. */
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

/** Seconds; from a look-up that a quiet machine answers to a redeem that waited in vain. */
const DURATION_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];

/** A request that has been answered, or whose caller has gone. */
export interface AnsweredRequest {
  /** The route's pattern, never the path; undefined when no route answered. */
  route: string | undefined;
  method: string;
  status: number;
  /** The error code of a refusal. */
  errorCode: string | undefined;
  durationMs: number;
}

/** What an API process answered: how long it took, and what it refused. */
export class RequestMetrics {
  readonly #durations: Histogram<"route" | "method" | "status">;
  readonly #refusals: Counter<"code">;
  /** A labelled metric is looked up once and then kept: looking one up costs as much as everything else here. */
  readonly #durationsOf = new Map<string, Histogram.Internal<"route" | "method" | "status">>();
  readonly #refusalsOf = new Map<string, Counter.Internal>();

  constructor(registry: Registry) {
    this.#durations = new Histogram({
      name: "voucher_http_request_duration_seconds",
      help: "Time from a request's arrival to the end of its answer, by the route's pattern.",
      labelNames: ["route", "method", "status"],
      buckets: DURATION_BUCKETS,
      registers: [registry],
    });
    this.#refusals = new Counter({
      name: "voucher_refusals_total",
      help: "Requests that were answered with an error, by the error's code.",
      labelNames: ["code"],
      registers: [registry],
    });
  }

  /** Names every error code there is: a counter that begins at 1 hides its first increase from `rate` and `increase`. */
  prepare(codes: readonly string[]): void {
    for (const code of codes) this.#refusals.inc({ code }, 0);
  }

  /** Counts one request. */
  countRequest({ route = NO_ROUTE, method, status, errorCode, durationMs }: AnsweredRequest): void {
    const known = METHODS.has(method) ? method : "other";
    const name = `${known} ${route} ${status}`;
    let durations = this.#durationsOf.get(name);
    if (durations === undefined) {
      durations = this.#durations.labels(route, known, String(status));
      this.#durationsOf.set(name, durations);
    }
    durations.observe(durationMs / 1_000);
    if (errorCode !== undefined) this.countRefusal(errorCode);
  }

  /** Counts a refusal of something that was no request yet. */
  countRefusal(code: string): void {
    let refusals = this.#refusalsOf.get(code);
    if (refusals === undefined) {
      refusals = this.#refusals.labels(code);
      this.#refusalsOf.set(code, refusals);
    }
    refusals.inc();
  }
}
