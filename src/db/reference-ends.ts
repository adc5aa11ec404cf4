import type pg from "pg";
import type { Confirmation } from "../domain/redeem.ts";
import { boolean, integer, outerJoined, text, timestamptz } from "./columns.ts";
import type { Transaction } from "./pool.ts";
import type { ExternalRef } from "./redemptions.ts";
import { columnsOf, execute, loadStatements, type PreparedStatements, prepare, readRows } from "./statements.ts";

export const sql = loadStatements(new URL("./reference-ends.sql", import.meta.url), {
  lock_references: { n: integer },
  find_references: {
    n: integer,
    isEnded: boolean,
    confirmation: outerJoined({ attemptId: text, redeemCode: text, redeemedAt: timestamptz }),
  },
  keep_generation: {},
  lock_references_to_end: { n: integer },
  end_references: {},
  begin_generation: {},
  delete_old_ends: {},
});

/** What the first read of an attempt has seen of the ends of its reference. */
export interface SeenReference extends ExternalRef {
  /** The version of the reference's last end; 0 without one. */
  seenEnd: number;
  generation: number;
}

/**
 * Locks the references of attempts against an end, until the transaction ends, and reads what is known of them. Does not wait.
 * Each result has the attempt's reference; `isEnded` if the reference was ended since the attempt's first read, or is being ended.
 */
export async function lockReferences(
  tx: Transaction,
  attempts: readonly SeenReference[],
): Promise<{ n: number; isEnded: boolean; confirmation: Confirmation | null }[]> {
  const [held, known] = await Promise.all([
    readRows(tx, sql.lock_references, columnsOf(attempts, "organizationId", "externalRef")),
    readRows(tx, sql.find_references, columnsOf(attempts, "organizationId", "externalRef", "seenEnd", "generation")),
  ]);
  return [...known, ...held.map(({ n }) => ({ n, isEnded: true, confirmation: null }))];
}

/**
 * Locks references so that no other transaction redeems or ends them before this one has ended. Does not wait: returns the positions of
 * those that another transaction has locked. The references must be distinct.
 */
export async function lockReferencesToEnd(tx: Transaction, refs: readonly ExternalRef[]): Promise<Set<number>> {
  const [held] = await Promise.all([
    readRows(tx, sql.lock_references_to_end, columnsOf(refs, "organizationId", "externalRef")),
    execute(tx, sql.keep_generation, []),
  ]);
  return new Set(held.map(({ n }) => n));
}

/** Statements that end the attempts of references that {@link lockReferencesToEnd} has locked and that no later statement found redeemed. */
export function endReferences(refs: readonly ExternalRef[]): PreparedStatements {
  return refs.length === 0 ? [] : [prepare(sql.end_references, columnsOf(refs, "organizationId", "externalRef"))];
}

/** Begins a generation of ends if the present one is an hour old, and deletes at most `limit` ends that no attempt needs; returns how many. */
export async function deleteOldEnds(pool: pg.Pool, limit: number): Promise<number> {
  await execute(pool, sql.begin_generation, []);
  return execute(pool, sql.delete_old_ends, [limit]);
}
