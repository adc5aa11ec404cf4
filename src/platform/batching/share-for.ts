/**
 * Lets callers share a running read. Reuses its result until `keptMs` after the start of the read, while `stillHolds`
 * is true. Does not reuse the error of a failed read.
 */
export function shareFor<T>(
  keptMs: number,
  read: () => Promise<T>,
  stillHolds: (result: T) => boolean = () => true,
): () => Promise<T> {
  let latest: { result: Promise<T>; startedAt: number; isRunning: boolean; mayRepeat: () => boolean } | undefined;
  return () => {
    if (latest?.isRunning || (latest && performance.now() - latest.startedAt < keptMs && latest.mayRepeat())) {
      return latest.result;
    }
    const shared = { result: read(), startedAt: performance.now(), isRunning: true, mayRepeat: () => true };
    latest = shared;
    shared.result.then(
      (result) => {
        shared.isRunning = false;
        shared.mayRepeat = () => stillHolds(result);
      },
      () => {
        if (latest === shared) latest = undefined;
      },
    );
    return shared.result;
  };
}
