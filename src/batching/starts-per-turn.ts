/**
 * Makes a gate that lets at most `startsMax` callers through per turn of the event loop, in order of arrival. Without it, callers that arrive
 * together would all run in one turn, and all other work of the process would wait for its end.
 */
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
