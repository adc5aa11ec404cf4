import { once } from "node:events";
import type pg from "pg";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import {
  inTransaction,
  isDatabaseUnavailable,
  isRetryable,
  readThenWrite,
  violates,
  waitForLocks,
} from "../../../src/platform/db/transaction.ts";
import { openServicePool } from "../../support/servers.ts";
import { useDatabase } from "../../support/use-service.ts";

const { servers } = useDatabase();
let pool: pg.Pool;

beforeAll(async () => {
  await servers.db.query("CREATE TABLE notes (text text PRIMARY KEY)");
});

beforeEach(async () => {
  await servers.db.query("DELETE FROM notes");
  pool = openServicePool(servers.ownerUrl);
});

afterEach(() => pool.end());

const note = (tx: pg.PoolClient, text: string) => tx.query("INSERT INTO notes (text) VALUES ($1)", [text]);

it("a transaction's lock timeout has the given length, and does not outlast the transaction", async () => {
  const timeout = async (tx: pg.PoolClient) => (await tx.query("SHOW lock_timeout")).rows[0].lock_timeout;
  const within = await inTransaction(pool, async (tx) => {
    await waitForLocks(tx, 4_321);
    return timeout(tx);
  });
  expect([within, await inTransaction(pool, timeout)]).toEqual(["4321ms", "250ms"]);
});

it("the function violates recognizes the unique constraint that a statement violated", async () => {
  await servers.db.query("CREATE TABLE once (a integer CONSTRAINT a_key UNIQUE)");
  await servers.db.query("INSERT INTO once VALUES (1)");
  const error = await servers.db.query("INSERT INTO once VALUES (1)").catch((thrown: unknown) => thrown);
  expect([violates(error, "a_key"), violates(error, "b_key")]).toEqual([true, false]);
});

it("a transaction writes nothing when BEGIN fails, although its reads were sent with BEGIN", async () => {
  const client = await pool.connect();
  const query = client.query.bind(client) as (...parts: unknown[]) => unknown;
  Object.assign(client, {
    query: (text: unknown, ...rest: unknown[]) => query(text === "BEGIN" ? "BEGIN nonsense" : text, ...rest),
  });
  client.release();
  let wrote = false;
  const done = readThenWrite(
    pool,
    (tx) => tx.query("SELECT 1"),
    async (_seen, tx) => {
      wrote = true;
      await note(tx, "outside");
      return { result: null, writes: [] };
    },
  );
  await expect(done).rejects.toThrow(/syntax error/);
  expect({ wrote, notes: await notes() }).toEqual({ wrote: false, notes: [] });
});

it("a transaction sends its reads with BEGIN, and each read sees all earlier commits", async () => {
  const seen = await readThenWrite(
    pool,
    async (tx) => {
      const first = tx.query<{ n: number }>("SELECT count(*)::int AS n FROM notes");
      const isolation = tx.query<{ transaction_isolation: string }>("SHOW transaction_isolation");
      return [(await first).rows[0]?.n, (await isolation).rows[0]?.transaction_isolation];
    },
    async (before, tx) => {
      await servers.db.query("INSERT INTO notes (text) VALUES ('from elsewhere')");
      const { rows } = await tx.query<{ n: number }>("SELECT count(*)::int AS n FROM notes");
      return { result: { before, after: rows[0]?.n }, writes: [] };
    },
  );
  expect(seen).toEqual({ before: [0, "read committed"], after: 1 });
});

it("a transaction sends its writes and COMMIT without waiting for the results of writes", async () => {
  const client = await pool.connect();
  const query = client.query.bind(client) as (...parts: unknown[]) => Promise<unknown>;
  const happened: string[] = [];
  Object.assign(client, {
    query: async (statement: string | pg.QueryConfig, ...rest: unknown[]) => {
      const text = typeof statement === "string" ? statement : statement.text;
      happened.push(`sent ${text}`);
      const result = await query(statement, ...rest);
      happened.push(`received ${text}`);
      return result;
    },
  });
  client.release();
  const result = await readThenWrite(
    pool,
    (tx) => tx.query("SELECT 1"),
    async () => ({ result: "decided", writes: [{ text: "SELECT 2" }, { text: "SELECT 3" }] }),
  );
  expect(result).toBe("decided");
  expect(happened.slice(0, 2)).toEqual(["sent BEGIN", "sent SELECT 1"]);
  expect(happened.slice(4, 7)).toEqual(["sent SELECT 2", "sent SELECT 3", "sent COMMIT"]);
});

it("a transaction rolls back if a write affects too few rows, although COMMIT was already sent", async () => {
  const done = readThenWrite(
    pool,
    async () => undefined,
    async () => ({
      result: "never returned",
      writes: [
        { text: "INSERT INTO notes (text) VALUES ('before')" },
        {
          text: `WITH kept AS (INSERT INTO notes VALUES ('one') RETURNING 1)
                 SELECT assert_row_count(count(*), 2, 'notes') FROM kept`,
        },
        { text: "INSERT INTO notes (text) VALUES ('after')" },
      ],
    }),
  );
  const error = await done.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: "VS001", message: "found 1 of 2 expected notes" });
  expect(isRetryable(error)).toBe(true);
  expect(await notes()).toEqual([]);
});

it("a transaction with a failing listener is committed, and the process logs a warning", async () => {
  const warned = once(process, "warning");
  const text = "INSERT INTO notes (text) VALUES ('kept')";
  const afterCommit = () => {
    throw new Error("the listener fails");
  };
  const decide = async () => ({ result: "done", writes: [{ text }], afterCommit });
  expect(await readThenWrite(pool, async () => undefined, decide)).toBe("done");
  expect((await servers.db.query("SELECT text FROM notes")).rows).toEqual([{ text: "kept" }]);
  expect(await warned).toMatchObject([{ message: "the listener fails" }]);
});

it("a transaction rejects with the error of the first failed statement, and rolls back", async () => {
  await servers.db.query("INSERT INTO notes (text) VALUES ('taken')");
  const done = inTransaction(pool, (tx) =>
    Promise.all([note(tx, "kept?"), note(tx, "taken"), note(tx, "after"), note(tx, "last")]),
  );
  await expect(done).rejects.toMatchObject({ code: "23505" });
  expect(await notes()).toEqual(["taken"]);
});

it("a transaction rejects with the first failed statement's error, even if a later error is seen first", async () => {
  await servers.db.query("INSERT INTO notes (text) VALUES ('taken')");
  const done = inTransaction(pool, (tx) => {
    const failed = note(tx, "taken");
    failed.catch(() => undefined);
    return note(tx, "after").then(() => failed);
  });
  await expect(done).rejects.toMatchObject({ code: "23505" });
});

it("a transaction leaves its connection usable after statements in a pipeline have failed", async () => {
  const named = (tx: pg.PoolClient, name: string, text: string) => tx.query({ name, text });
  const failing = inTransaction(pool, (tx) =>
    Promise.all([tx.query("SELECT 1 / 0"), named(tx, "first_use", "SELECT 1 AS one")]),
  );
  await expect(failing).rejects.toMatchObject({ code: "22012" });
  const { rows } = await inTransaction(pool, (tx) => named(tx, "first_use", "SELECT 1 AS one"));
  expect(rows).toEqual([{ one: 1 }]);
  expect(pool.totalCount).toBe(1);
});

it.each([
  ["a migration has changed the result of a prepared statement", "ALTER TABLE notes ADD COLUMN later text", "0A000"],
  ["its prepared statements are lost", "DEALLOCATE ALL", "26000"],
])("a transaction fails as unavailable and gives up its connection when %s", async (_what, change, code) => {
  const read = () => inTransaction(pool, (tx) => tx.query({ name: "read_notes", text: "SELECT * FROM notes" }));
  await read();
  await (change.startsWith("ALTER") ? servers.db : pool).query(change);
  const error = await read().catch((thrown: unknown) => thrown);
  expect([error, isDatabaseUnavailable(error)]).toEqual([expect.objectContaining({ code }), true]);
  expect((await read()).rows).toEqual([]);
});

async function notes(): Promise<string[]> {
  const { rows } = await servers.db.query<{ text: string }>("SELECT text FROM notes ORDER BY text");
  return rows.map((row) => row.text);
}
