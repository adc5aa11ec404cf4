import type { IncomingMessage } from "node:http";

/** The outcome that a request's span records when the response is finished. */
interface RequestOutcome {
  /** The route's pattern, never the path. Undefined if no route answered. */
  route: string | undefined;
  status: number;
  errorCode: string | undefined;
}

/** A request that is being traced. */
export interface TracedRequest {
  traceId: string;
  end(outcome: RequestOutcome): void;
}

/** Traces a request through its job to the transaction. Methods return or throw what the given function does. */
export interface Traces {
  /** Runs a request and its body's listeners in a span, in the caller's trace if any. Passes null if traces are off. */
  request(incoming: IncomingMessage, run: (request: TracedRequest | null) => void): void;
  /** Runs a function that adds a job and waits for its reply. `traceparent` belongs in the job's data. */
  sendJob<T>(queue: string, run: (traceparent: string | undefined) => Promise<T>): Promise<T>;
  /** Runs a job as part of the trace that the job's data names. */
  processJob<T>(queue: string, traceparent: string | undefined, run: () => Promise<T>): Promise<T>;
  /** Records the active span for an item that is submitted to a batch. Later calls for the same item have no effect. */
  recordSubmission(item: object): void;
  /** Runs a batch in a child span of the first item's span, linked with the other items' spans in both directions. */
  runBatch<T>(name: string, items: readonly object[], run: () => Promise<T>): Promise<T>;
  /** Sends the remaining spans, for at most three seconds. Never fails. */
  close(): Promise<void>;
}

/** Traces nothing. */
export const TRACES_OFF: Traces = {
  request: (_incoming, run) => run(null),
  sendJob: (_queue, run) => run(undefined),
  processJob: (_queue, _traceparent, run) => run(),
  recordSubmission: () => undefined,
  runBatch: (_name, _items, run) => run(),
  close: async () => undefined,
};
