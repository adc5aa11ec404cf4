/** Makes a gate for at most `startsMax` callers per turn of the event loop, in order of arrival, so that other work runs in between. */
export function startsPerTurn(startsMax: number): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let started = 0;
  let scheduled = false;
  const nextTurn = () => {
    scheduled = false;
    started = 0;
    for (const start of waiting.splice(0, startsMax)) {
      started += 1;
      start();
    }
    if (started > 0) schedule();
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(nextTurn);
  };
  return () => {
    if (started < startsMax && waiting.length === 0) {
      started += 1;
      schedule();
      return Promise.resolve();
    }
    return new Promise((resolve) => waiting.push(resolve));
  };
}
