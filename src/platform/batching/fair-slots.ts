import { Shares } from "./shares.ts";

/** The error for a caller that disconnected while it waited. */
export class CallerLeft extends Error {
  constructor() {
    super("the caller has left");
    this.name = "CallerLeft";
  }
}

/**
 * Lets owners share slots: the right to run one piece of work. An owner may take another slot only while it holds fewer
 * slots than are free, so that each new owner finds some. Waiting owners take turns, so that one owner's waiting work
 * does not delay the others.
 */
export class FairSlots {
  readonly #slots: Shares;
  /** The functions that start waiting work, by owner, in order of arrival. The next owner to start work comes first. */
  readonly #lines = new Map<string, Set<() => void>>();
  #waiting = 0;

  constructor(max: number) {
    this.#slots = new Shares(max, 1);
  }

  get used(): number {
    return this.#slots.used;
  }

  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(owner: string): number {
    return this.#lines.get(owner)?.size ?? 0;
  }

  hasRoom(owner: string): boolean {
    return this.#slots.hasRoom(owner);
  }

  /**
   * Waits for a slot, and frees it in the next turn of the event loop. So one owner can start at most half as many
   * calls in a turn as there are slots, and leaves slots for other owners.
   */
  startInTurn(owner: string): Promise<void> {
    return new Promise((start) => {
      void this.run(owner, () => {
        start();
        return new Promise<void>((nextTurn) => setImmediate(nextTurn));
      });
    });
  }

  /**
   * Runs the work as soon as its owner may have a slot, unless the signal aborts first.
   * @throws CallerLeft, or the work's own error.
   */
  async run<T>(owner: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (signal?.aborted) throw new CallerLeft();
    if (this.hasRoom(owner)) this.#slots.take(owner);
    else await this.#wait(owner, signal);
    try {
      if (signal?.aborted) throw new CallerLeft();
      return await work();
    } finally {
      this.#release(owner);
    }
  }

  #wait(owner: string, signal: AbortSignal | undefined): Promise<void> {
    const line = this.#lines.get(owner) ?? new Set();
    this.#lines.set(owner, line);
    this.#waiting += 1;
    return new Promise((resolve, reject) => {
      const start = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#remove(owner, line, start);
        reject(new CallerLeft());
      };
      line.add(start);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  #remove(owner: string, line: Set<() => void>, start: () => void): void {
    line.delete(start);
    this.#waiting -= 1;
    if (line.size === 0) this.#lines.delete(owner);
  }

  #release(owner: string): void {
    this.#slots.release(owner);
    // An owner whose work starts moves to the end of the map. The loop reaches it again if more of its work waits.
    for (const [owner, line] of this.#lines) {
      if (this.#slots.isFull) break;
      const [start] = line;
      if (start === undefined || !this.hasRoom(owner)) continue;
      this.#slots.take(owner);
      this.#remove(owner, line, start);
      if (this.#lines.delete(owner)) this.#lines.set(owner, line);
      start();
    }
  }
}

/** Slots for long work. One owner gets one of two slots, so one piece of long work runs per turn. */
const PIECES = new FairSlots(2);

/**
 * Resolves when the next piece of long work may run. In each turn of the event loop, the process runs one piece of long
 * work. A piece takes a few milliseconds, so calls wait less than 20 ms.
 */
export const nextPiece = (): Promise<void> => PIECES.startInTurn("long work");
