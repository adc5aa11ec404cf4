import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { appendEvent } from "../support/append-event.ts";
import { besideTransaction, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useDatabase } from "../support/use-service.ts";

const { db, partner } = useDatabase();

it("an erasure processes locked vouchers last, and locks no other voucher while it waits for them", async () => {
  const ids = (await issueVouchers(db, partner, 30)).map(({ id }) => id).toSorted();
  await inTransaction(db, async (tx) => {
    for (const id of ids) await appendEvent(tx, id, "voucher.instance.bought");
    await tx.query(
      `INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id)
       SELECT $1, 'a busy user', id, id FROM unnest($2::text[]) AS v (id)`,
      [partner.organizationId, ids],
    );
  });
  const erased = await besideTransaction(db, (stuck) =>
    besideTransaction(db, async (passing) => {
      await lockRows(stuck, ids.slice(24, 25));
      await lockRows(passing, ids.slice(0, 24));
      const erasing = erasePerson(provisioning(db), { by: "user", userId: "a busy user" }, null);
      await untilWaiting(db, 1);
      expect(await erasedOf(ids)).toEqual(ids.slice(25));
      await passing.query("ROLLBACK");
      // It waits for the stuck one.
      await untilErased(ids, 29);
      await untilWaiting(db, 1);
      expect(await lockedOf(ids)).toEqual(ids.slice(24, 25));
      await stuck.query("ROLLBACK");
      return erasing;
    }),
  );
  expect(erased).toMatchObject({ vouchers: 30, events: 30 });
});

/** The vouchers of which an event is erased. */
async function erasedOf(ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query(
    "SELECT voucher_id AS id FROM voucher_events WHERE voucher_id = ANY ($1) AND erased_by IS NOT NULL ORDER BY 1",
    [ids],
  );
  return rows.map(({ id }) => id);
}

const untilErased = (ids: readonly string[], count: number) =>
  until(async () => (await erasedOf(ids)).length === count);

/** The vouchers that some transaction has locked. */
async function lockedOf(ids: readonly string[]): Promise<string[]> {
  return inTransaction(db, async (tx) => {
    const { rows } = await tx.query("SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED", [ids]);
    const free = new Set(rows.map(({ id }) => id));
    return ids.filter((id) => !free.has(id));
  });
}
