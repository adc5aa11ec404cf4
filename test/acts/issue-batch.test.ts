import { Readable } from "node:stream";
import pg from "pg";
import { expect, it } from "vitest";
import { writeBatch } from "../../src/acts/issue-batch.ts";
import { makeGate } from "../support/gate.ts";
import { besideTransaction, untilWaiting } from "../support/outside-transaction.ts";
import { provisioning } from "../support/supply.ts";
import { useService } from "../support/use-service.ts";

const { partner, db } = useService({ apis: [], workers: [] });

it("an import of codes that fails during a COPY ends the COPY before the rollback", async () => {
  const pool = new pg.Pool({ ...db.options, max: 1 });
  const statements: string[] = [];
  pool.on("connect", (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => unknown;
    client.query = ((...args: unknown[]) => {
      const [asked] = args as [string | { text: string } | { cursor?: { text: string } }];
      statements.push(String(typeof asked === "string" ? asked : "text" in asked ? asked.text : "COPY").slice(0, 30));
      return query(...args);
    }) as typeof client.query;
  });
  const isRead = makeGate();
  const lines = async function* () {
    for (let line = 0; line < 1_000; line += 1) yield `BROKEN-FILE-${line}`;
    // Postgres is receiving the first lines when the import reads an invalid line.
    await untilWaiting(db, 1);
    void isRead.pass();
    yield "?";
  };
  const { productId } = partner;
  const validUntil = new Date(Date.now() + 86_400_000);
  const input = { productId, count: 2_000, validUntil, audience: "OpenToAll" as const, windows: {} };
  const refusal = await besideTransaction(db, async (outside) => {
    await outside.query("LOCK TABLE vouchers IN SHARE MODE");
    const codes = () => Readable.from(lines());
    const issuing = writeBatch(provisioning(pool), { ...input, codes }, () => undefined).catch((error) => error);
    await Promise.race([isRead.reached, issuing]);
    await outside.query("ROLLBACK");
    return issuing;
  });
  await pool.end();
  expect(refusal.message).toMatch(/^Line 1001 is not a code: .* Nothing was issued\.$/);
  expect(statements.filter((text) => text.startsWith("COPY"))).toHaveLength(2);
  expect(statements.at(-1)).toBe("ROLLBACK");
  expect((await db.query("SELECT FROM vouchers WHERE code LIKE 'BROKEN-FILE-%'")).rowCount).toBe(0);
});
