/** Lets callers share a running read, and its result until `keptMs` after its start. A failed read is not kept. */
export function shareFor<T>(keptMs: number, read: () => Promise<T>): () => Promise<T> {
  let latest: { result: Promise<T>; startedAt: number; isRunning: boolean } | undefined;
  return () => {
    if (latest !== undefined && (latest.isRunning || performance.now() - latest.startedAt < keptMs)) {
      return latest.result;
    }
    const shared = { result: read(), startedAt: performance.now(), isRunning: true };
    latest = shared;
    shared.result.then(
      () => {
        shared.isRunning = false;
      },
      () => {
        if (latest === shared) latest = undefined;
      },
    );
    return shared.result;
  };
}
