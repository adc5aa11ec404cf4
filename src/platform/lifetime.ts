/**
 * How long a run may continue once the process closes: long enough for usual runs, and a third of the time that a
 * process has to close. Milliseconds.
 */
const RUNS_MAX_MS = 5_000;

/** A connection, a server, a timer, or an object that works on items. */
export interface Closable {
  /** Accepts no further work, and resolves once the accepted work has ended. */
  close(): Promise<void>;
}

/** The resources of a process. */
export interface Lifetime {
  /** Closes a resource with the process, before those that were opened earlier. Returns the resource. */
  use<Resource extends Closable>(resource: Resource): Resource;
  /** Aborts a while after the close has begun: a long run must end, because what it uses closes soon. */
  endRuns: AbortSignal;
}

/**
 * Opens a lifetime. Its `close` closes the resources in reverse order, one after the other, each one even if another
 * fails, and then rejects with the errors.
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

/** Closes resources that do not use each other, all together. Rejects with the errors once all have ended. */
export async function closeAll(resources: readonly Closable[]): Promise<void> {
  const ended = await Promise.allSettled(resources.map((resource) => resource.close()));
  const errors = ended.flatMap((end) => (end.status === "rejected" ? [end.reason] : []));
  if (errors.length > 0) throw errors.length === 1 ? errors[0] : new AggregateError(errors, "some could not be closed");
}
