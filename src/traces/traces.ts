import type { IncomingMessage } from "node:http";

/** What a request's trace is told when its answer is finished. */
export interface RequestOutcome {
  /** The route's pattern, never the path; undefined when no route answered. */
  route: string | undefined;
  status: number;
  /** The error code of a refusal. */
  errorCode: string | undefined;
}

/** A request that is being traced. */
export interface TracedRequest {
  traceId: string;
  end(outcome: RequestOutcome): void;
}

/**
 * Follows a request over its job to the transaction of a worker. Everything that takes work to run returns what the work returns
 * and throws what it throws.
 */
export interface Traces {
  /**
   * Begins a request's trace, or goes on with that of its caller, and runs the rest of the request in it, whoever listens to
   * what else arrives of it included. Null when there is nothing to trace.
   */
  request(incoming: IncomingMessage, run: (request: TracedRequest | null) => void): void;
  /** Runs what adds a job and waits for it. `traceparent` (W3C Trace Context) is for the job's data. */
  ask<T>(queue: string, run: (traceparent: string | undefined) => Promise<T>): Promise<T>;
  /** Runs a job as part of the trace that its data names. */
  job<T>(queue: string, traceparent: string | undefined, run: () => Promise<T>): Promise<T>;
  /** Remembers in which span an item was first submitted, for the batch that it will be in. */
  mark(item: object): void;
  /** Runs a batch as part of the first marked item's trace, linked to and from those of all others. */
  batch<T>(name: string, items: readonly object[], run: () => Promise<T>): Promise<T>;
  /** Sends what was not sent yet. Never fails, and takes three seconds at most. */
  close(): Promise<void>;
}

/** No traces, at no cost. */
export const TRACES_OFF: Traces = {
  request: (_incoming, run) => run(null),
  ask: (_queue, run) => run(undefined),
  job: (_queue, _traceparent, run) => run(),
  mark: () => undefined,
  batch: (_name, _items, run) => run(),
  close: async () => undefined,
};
