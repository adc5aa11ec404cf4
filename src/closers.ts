/** Closes what was opened, the last first. */
export class Closers {
  readonly #closers: (() => Promise<unknown>)[] = [];

  add(closer: () => Promise<unknown>): void {
    this.#closers.push(closer);
  }

  /** Rejects with every failure there was, after trying everything. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const closer of this.#closers.splice(0).reverse()) await closer().catch((error) => failures.push(error));
    if (failures.length > 0) throw new AggregateError(failures, "not everything could be closed");
  }
}
