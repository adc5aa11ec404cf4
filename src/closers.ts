/** Closes resources in reverse order of opening. */
export class Closers {
  readonly #closers: (() => Promise<unknown>)[] = [];

  add(closer: () => Promise<unknown>): void {
    this.#closers.push(closer);
  }

  /** Closes everything, and then rejects with all failures if there were any. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const closer of this.#closers.splice(0).reverse()) await closer().catch((error) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "failed to close all resources");
  }
}
