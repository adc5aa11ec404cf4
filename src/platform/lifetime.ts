/**
 * Time that running work gets after the process has begun to close: enough for usual work, and a third of the time in
 * which a process must close. Milliseconds.
 */
const RUNS_MAX_MS = 5_000;

/** A connection, a server, a timer, or an object that works on items. */
export interface Closable {
  /** Accepts no further work, and resolves once the accepted work has ended. */
  close(): Promise<void>;
}

/** The resources of a process. */
export interface Lifetime {
  /** Adds a resource, and returns it. It closes with the process, before the resources that were added earlier. */
  use<Resource extends Closable>(resource: Resource): Resource;
  /** Aborts some time after the close has begun. Long work must then end, because its resources will close. */
  endRuns: AbortSignal;
}

/**
 * Opens a lifetime. `close` closes the resources one by one, in reverse order. If a resource fails, `close` closes the
 * rest and rejects with all errors.
 */
export function openLifetime(runsMaxMs = RUNS_MAX_MS): Lifetime & Closable {
  const resources = new AsyncDisposableStack();
  const ending = new AbortController();
  return {
    use: (resource) => resources.adopt(resource, () => resource.close()),
    endRuns: ending.signal,
    async close() {
      const timer = setTimeout(() => ending.abort(), runsMaxMs);
      await resources.disposeAsync().finally(() => clearTimeout(timer));
    },
  };
}

/** Closes resources that do not use each other, all at the same time. Rejects with the errors after all have ended. */
export async function closeAll(resources: readonly Closable[]): Promise<void> {
  const ended = await Promise.allSettled(resources.map((resource) => resource.close()));
  const errors = ended.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, "some could not be closed");
}
