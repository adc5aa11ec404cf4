/** Starts something now or in a later turn of the event loop. `ownerOf` is called only if it must wait. */
type Starter = (start: () => void, ownerOf?: () => string) => void;

/**
 * Makes a starter for at most `startsMax` starts per turn of the event loop, so that other work runs in between. When
 * more wait, their owners take turns. One owner's starts keep their order.
 */
export function startsPerTurn(startsMax: number): Starter {
  /** The waiting starts, by owner. The owner whose turn is next comes first. */
  const lines = new Map<string, (() => void)[]>();
  let started = 0;
  let scheduled = false;
  const startNext = () => {
    for (const [owner, line] of lines) {
      lines.delete(owner);
      const start = line.shift();
      // The owner's next turn comes after those of all others.
      if (line.length > 0) lines.set(owner, line);
      return start?.();
    }
  };
  const nextTurn = () => {
    scheduled = false;
    for (started = 0; started < startsMax && lines.size > 0; started += 1) startNext();
    if (started > 0) schedule();
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(nextTurn);
  };
  return (start, ownerOf = () => "") => {
    if (started < startsMax && lines.size === 0) {
      started += 1;
      schedule();
      return start();
    }
    const owner = ownerOf();
    const line = lines.get(owner);
    if (line === undefined) lines.set(owner, [start]);
    else line.push(start);
  };
}

const startPiece = startsPerTurn(1);

/**
 * Resolves when the next piece of long work may run: one piece per turn of the event loop for all long work of the
 * process together. A piece takes a few milliseconds, so that calls between two pieces wait less than 20 ms.
 */
export const nextPiece = (): Promise<void> => new Promise((resolve) => startPiece(resolve));
