/** A point at which a caller waits until the test opens it. */
export interface Gate {
  /** Resolves when a caller waits at the gate. */
  reached: Promise<void>;
  /** Waits until the gate is open. */
  pass(): Promise<void>;
  open(): void;
}

export function makeGate(): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    reached: reached.promise,
    pass() {
      reached.resolve();
      return opened.promise;
    },
    open: opened.resolve,
  };
}
