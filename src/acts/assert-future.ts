import { isPast } from "../core/catalog/db/catalog.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Queryable } from "../platform/db/pool.ts";

/** An end that was given has passed already. */
export class PastTime extends AppError {
  /** The name of the end among the act's arguments. */
  readonly field: string;

  constructor(field: string, end: Date) {
    super("invalid_request", `The time ${end.toISOString()} is in the past.`);
    this.field = field;
  }
}

/**
 * Refuses ends that have passed by the database's clock, for every act that takes an end. Null is no end.
 * @throws PastTime.
 */
export async function assertFuture(
  db: Queryable,
  ends: Readonly<Record<string, Date | null | undefined>>,
): Promise<void> {
  for (const [field, end] of Object.entries(ends)) {
    if (end && (await isPast(db, end))) throw new PastTime(field, end);
  }
}
