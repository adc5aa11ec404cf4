import type pg from "pg";
import { text } from "./columns.ts";
import { UnusableDatabase } from "./schema.ts";
import { Statements } from "./statements.ts";
import { inTransaction, isDatabaseUnavailable, write } from "./transaction.ts";

export const sql = new Statements(new URL("./durability.sql", import.meta.url));

export const awaitStandbys = sql.prepare("await_standbys");
const readServer = sql.requiredValue("read_server", { started: text });

/**
 * Runs work that may take several transactions. Waits until the synchronous standbys have everything that the work has
 * read and committed, and then returns its result or throws its error. Otherwise a failover could make the result
 * untrue. Connections may be read-only.
 * @throws UnusableDatabase when the standbys do not confirm, or when another server has become the primary.
 */
export async function confirmed<T>(pool: pg.Pool, work: () => Promise<T>): Promise<T> {
  const started = await readServer(pool);
  const [told] = await Promise.allSettled([work()]);
  // The error of an unavailable database reports no data, so it needs no confirmation.
  if (told.status === "rejected" && isDatabaseUnavailable(told.reason)) throw told.reason;
  await awaitConfirmation(pool, started).catch((cause: unknown) => {
    const message = "The standbys have not confirmed this, so it may be undone. Repeat it once they answer.";
    throw new UnusableDatabase("unavailable", message, { cause });
  });
  if (told.status === "rejected") throw told.reason;
  return told.value;
}

function awaitConfirmation(pool: pg.Pool, started: string): Promise<void> {
  return inTransaction(pool, async (tx) => {
    if ((await readServer(tx)) !== started) throw new Error("another server has answered");
    await write(tx, [awaitStandbys()]);
  });
}
