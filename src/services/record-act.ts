import { hostname, userInfo } from "node:os";
import { isDeepStrictEqual } from "node:util";
import type { AdminContext } from "../admin-context.ts";
import { type Entity, insertAct, lockEntity, readEntityState } from "../db/admin-acts.ts";
import type { Transaction } from "../db/pool.ts";
import { inTransaction, waitForLocks } from "../db/transaction.ts";

/** How long an act waits for each lock before it is refused. Milliseconds; a person is waiting. */
const LOCK_WAIT_MS = 10_000;

/** What is being done and by whom, as the row of an act tells it. */
export interface Act {
  command: string;
  arguments: Record<string, unknown>;
  osUser: string;
  host: string;
}

/** What an administrative service needs. */
export type ActContext = Pick<AdminContext, "pool" | "randomBytes"> & { act: Act };

/** An act of the user under whom this process runs. `args` must hold no secret and no code. */
export function actBy(command: string, args: Record<string, unknown>): Act {
  return { command, arguments: args, osUser: userName(), host: hostname() };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run under a number that no user has.
    return `uid ${process.getuid?.()}`;
  }
}

/** Thrown to roll back; never leaves this file. */
const NOTHING_CHANGED = Symbol("nothing changed");

/**
 * Does one act of administration and records it, in one transaction: neither is ever there without the other. The row tells what the
 * entity was before and after; when these are the same, everything is rolled back and nothing is recorded. Acts on the same entity take
 * turns. The connections of administration write nowhere else.
 * @param work does the act, in the transaction that it is given.
 * @param unseen what of the entity's state cannot be read from the database: as it was before, and as the act leaves it.
 */
export async function recordAct<T>(
  ctx: Pick<ActContext, "pool" | "act">,
  entity: Entity,
  work: (tx: Transaction) => Promise<T>,
  unseen?: { before: Record<string, unknown>; after: (result: T) => Record<string, unknown> },
): Promise<T> {
  let result: T | undefined;
  try {
    await inTransaction(ctx.pool, async (tx) => {
      await tx.query("SET TRANSACTION READ WRITE");
      await waitForLocks(tx, LOCK_WAIT_MS);
      await lockEntity(tx, entity);
      const before = merge(await readEntityState(tx, entity), unseen?.before);
      result = await work(tx);
      const after = merge(await readEntityState(tx, entity), unseen?.after(result));
      if (isDeepStrictEqual(before, after)) throw NOTHING_CHANGED;
      await insertAct(tx, { ...ctx.act, entity, before, after });
    });
  } catch (error) {
    if (error !== NOTHING_CHANGED) throw error;
  }
  return result as T;
}

function merge<State>(read: State | null, unseen: Record<string, unknown> | undefined): State | null {
  return unseen === undefined ? read : ({ ...read, ...unseen } as State);
}
