import { bigint, boolean } from "./columns.ts";
import type { Transaction } from "./pool.ts";
import { loadStatements, type PreparedStatements, prepare, readRequiredRow } from "./statements.ts";
import { type AnnouncedEvent, announceEvents } from "./webhook-deliveries.ts";

export const sql = loadStatements(new URL("./log-batches.sql", import.meta.url), {
  next_log_batch: { id: bigint },
  find_enabled_endpoints: { hasEndpoints: boolean },
  insert_log_batch: {},
});

/** Most leaves of a batch: the lowest twelve bits of a slot are the leaf's position in its batch. */
export const BATCH_LEAVES_MAX = 4_096;

/** The leaves that a transaction adds to the log, in the order in which it seals its events, and the events that it announces. */
export class LogBatch {
  readonly #id: number;
  readonly #hashes: string[] = [];
  readonly #hasEndpoints: boolean;
  readonly #announced: AnnouncedEvent[] = [];

  constructor(id: number, hasEndpoints: boolean) {
    this.#id = id;
    this.#hasEndpoints = hasEndpoints;
  }

  /** Adds an event by its `recordHash`. Returns its slot: the batch and the leaf's position in it, as one number. */
  add(recordHash: string): number {
    if (this.#hashes.length === BATCH_LEAVES_MAX)
      throw new Error(`a batch of the log has at most ${BATCH_LEAVES_MAX} leaves`);
    this.#hashes.push(recordHash);
    return this.#id * BATCH_LEAVES_MAX + this.#hashes.length - 1;
  }

  /** Announces an event to webhook endpoints, if any endpoint is enabled. */
  announce({ voucherId, sequence }: AnnouncedEvent): void {
    if (this.#hasEndpoints) this.#announced.push({ voucherId, sequence });
  }

  /** Whether the transaction announces events to webhook endpoints. */
  get announces(): boolean {
    return this.#announced.length > 0;
  }

  /** Statements that add the leaves to the log and announce the events. */
  writes(): PreparedStatements {
    if (this.#hashes.length === 0) return [];
    return [
      prepare(sql.insert_log_batch, [this.#id, this.#hashes.length, Buffer.from(this.#hashes.join(""), "hex")]),
      ...announceEvents(this.#announced),
    ];
  }
}

/** Opens the batch of a transaction. Must be sent after the statement that locks its vouchers. */
export async function openLogBatch(tx: Transaction): Promise<LogBatch> {
  const [{ id }, { hasEndpoints }] = await Promise.all([
    readRequiredRow(tx, sql.next_log_batch, []),
    readRequiredRow(tx, sql.find_enabled_endpoints, []),
  ]);
  return new LogBatch(id, hasEndpoints);
}
