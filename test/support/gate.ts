/** A place where one caller stops until the test lets it on. */
export interface Gate {
  /** Resolves when the caller has come to the gate. */
  reached: Promise<void>;
  /** Called by whoever is to stop here. */
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
