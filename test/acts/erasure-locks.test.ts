import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { replayErasures } from "../../src/acts/replay-erasures.ts";
import { inTransaction } from "../../src/platform/db/transaction.ts";
import { appendEvent } from "../support/append-event.ts";
import { besideTransaction, databaseTime, lockRows, untilWaiting } from "../support/outside-transaction.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { useDatabase } from "../support/use-service.ts";

const { db, partner } = useDatabase();

it("an erasure processes locked vouchers last, and holds no voucher's lock during its wait", async () => {
  const ids = await bought("a busy user", 30);
  const erased = await besideTransaction(db, (stuck) =>
    besideTransaction(db, async (passing) => {
      await lockRows(stuck, ids.slice(24, 25));
      await lockRows(passing, ids.slice(0, 24));
      const erasing = erasePerson(provisioning(db), { by: "user", userId: "a busy user" }, null);
      await untilWaiting(db, 1);
      expect(await erasedOf(ids)).toEqual(ids.slice(25));
      await passing.query("ROLLBACK");
      // The erasure has erased the other 29 vouchers and waits for the voucher that `stuck` locks.
      await untilErased(ids, 29);
      await untilWaiting(db, 1);
      expect(await lockedOf(ids)).toEqual(ids.slice(24, 25));
      // While the erasure waits, the user's own calls do not wait.
      expect((await db.query(`SELECT ${TRY_USER} AS free`, ["a busy user"])).rows).toEqual([{ free: true }]);
      await stuck.query("ROLLBACK");
      return erasing;
    }),
  );
  expect(erased).toMatchObject({ vouchers: 30, events: 30 });
});

/** Locks that a redemption or claim holds until its transaction ends. `argumentsOf` returns their arguments. */
const TEXT_LOCKS: Record<string, [lock: string, argumentsOf: (id: string) => unknown[]]> = {
  reference: [
    "pg_advisory_xact_lock_shared(hashtext($1), hashtext($2))",
    (id) => [partner.organizationId, `reference of ${id}`],
  ],
  claimer: ["pg_advisory_xact_lock_shared(1701995891, hashtext($1))", (id) => [`claimer of ${id}`]],
};

/** Ways to erase the voucher at index 3 of a user's vouchers. `erasesAll`: the user's other vouchers are erased too. */
const ERASERS: Record<string, [erasesAll: boolean, erase: (userId: string, id: string) => Promise<unknown>]> = {
  user: [true, (userId) => erasePerson(provisioning(db), { by: "user", userId }, null)],
  voucher: [false, (_, voucherId) => erasePerson(provisioning(db), { by: "voucher", voucherId }, null)],
  replay: [
    false,
    async (_, voucherId) => {
      const items = [{ voucherId, sequences: [2], erasedAt: (await databaseTime(db)).toISOString() }];
      return replayErasures(provisioning(db), { items, users: [], usersErasedAt: {}, references: [] });
    },
  ],
};

const CASES = Object.keys(ERASERS).flatMap((by) => Object.keys(TEXT_LOCKS).map((text) => ({ by, text })));

it.each(CASES)("an erasure by $by keeps no voucher locked during its wait for the lock of a $text", async ({
  by,
  text,
}) => {
  const [erasesAll, erase] = ERASERS[by] ?? [];
  const [lock, argumentsOf] = TEXT_LOCKS[text] ?? [];
  const userId = `user of ${by} and ${text}`;
  const ids = await bought(userId, 5);
  await db.query(
    `INSERT INTO claims (user_id, product_id, voucher_id)
     SELECT 'claimer of ' || id, $1, id FROM unnest($2::text[]) AS v (id)`,
    [partner.productId, ids],
  );
  await redeemAll(ids);
  const id = ids[3] ?? "";
  const others = ids.filter((other) => other !== id);
  const erasing = await besideTransaction(db, async (holder) => {
    await holder.query(`SELECT ${lock}`, argumentsOf?.(id));
    const running = erase?.(userId, id);
    await untilWaiting(db, 1);
    expect(await lockedOf(ids)).toEqual([]);
    expect(await erasedOf(ids)).toEqual(erasesAll ? others : []);
    // While it waits, the erasure holds no lock on another text of this or another voucher.
    for (const [name, [otherLock, ofVoucher]] of Object.entries(TEXT_LOCKS)) {
      const free = `SELECT ${otherLock.replace("pg_", "pg_try_").replace("_shared", "")} AS free`;
      for (const one of name === text ? others.slice(0, 1) : [id, ...others.slice(0, 1)]) {
        expect((await db.query(free, ofVoucher(one))).rows, `${name} of ${one}`).toEqual([{ free: true }]);
      }
    }
    await holder.query("ROLLBACK");
    return running;
  });
  expect(erasing).toMatchObject({ vouchers: erasesAll ? 5 : 1 });
  expect(await erasedOf(ids)).toEqual(erasesAll ? ids : [id]);
});

const TRY_USER = "pg_try_advisory_xact_lock(1701995891, hashtext($1))";

async function bought(userId: string, count: number): Promise<string[]> {
  const ids = (await issueVouchers(db, partner, count)).map(({ id }) => id).toSorted();
  await inTransaction(db, async (tx) => {
    for (const id of ids) await appendEvent(tx, id, "voucher.instance.bought");
    await tx.query(
      `INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id)
       SELECT $1, $3, id, id FROM unnest($2::text[]) AS v (id)`,
      [partner.organizationId, ids, userId],
    );
  });
  return ids;
}

const redeemAll = (ids: readonly string[]) =>
  db.query(
    `WITH v AS (UPDATE vouchers SET status = 'Redeemed', redeemed_at = now() WHERE id = ANY ($1)
                RETURNING id, organization_id)
     INSERT INTO redemptions (redeemed_at, voucher_id, organization_id, key_id, attempt_id, redeem_code, external_ref)
     SELECT date_trunc('milliseconds', clock_timestamp()), id, organization_id, 'key', 'attempt', id,
            'reference of ' || id
       FROM v`,
    [ids],
  );

async function erasedOf(ids: readonly string[]): Promise<string[]> {
  const { rows } = await db.query(
    "SELECT voucher_id AS id FROM voucher_events WHERE voucher_id = ANY ($1) AND erased_by IS NOT NULL ORDER BY 1",
    [ids],
  );
  return rows.map(({ id }) => id);
}

const untilErased = (ids: readonly string[], count: number) =>
  until(async () => (await erasedOf(ids)).length === count);

/** Returns which of the vouchers that a transaction has locked. */
async function lockedOf(ids: readonly string[]): Promise<string[]> {
  return inTransaction(db, async (tx) => {
    const { rows } = await tx.query("SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED", [ids]);
    const free = new Set(rows.map(({ id }) => id));
    return ids.filter((id) => !free.has(id));
  });
}
