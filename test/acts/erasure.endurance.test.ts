import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { expect, it } from "vitest";
import { erasePerson } from "../../src/acts/erase-person.ts";
import { nextEvent } from "../../src/core/chain/chain.ts";
import { appendEvents, openSinks } from "../../src/core/chain/seal-events.ts";
import { verifyAllChains, verifyOneChain } from "../../src/core/chain/verify-chains.ts";
import { advanceChains, readLockedVouchers } from "../../src/core/voucher/db/vouchers.ts";
import { inTransaction, write } from "../../src/platform/db/transaction.ts";
import { pooledRandomBytes } from "../../src/platform/random.ts";
import { makeMember } from "../support/marketplace.ts";
import { tablesWith } from "../support/row-dump.ts";
import { openStatementGate } from "../support/statement-gate.ts";
import { issueVouchers, provisioning } from "../support/supply.ts";
import { useDatabase } from "../support/use-service.ts";

const VOUCHERS = 10_000;
const PORTION = 1_000;
const USER = "a user who bought much";

const { servers, db, partner } = useDatabase();

it("an erasure of 10 000 vouchers completes although its process is killed several times", async () => {
  const ids = (await issueVouchers(db, partner, VOUCHERS)).map(({ id }) => id);
  for (let from = 0; from < VOUCHERS; from += PORTION) await buy(ids.slice(from, from + PORTION));
  let kills = 0;
  for (let waitMs = 900; (await countErased(db)) < VOUCHERS; waitMs += 37)
    if (await eraseUntil(sleep(waitMs, true))) kills += 1;
  while (await eraseUntil(sleep(60_000, true)));
  expect(kills).toBeGreaterThan(3);
  expect(await verifyAllChains({ pool: db })).toMatchObject({ vouchers: VOUCHERS, erased: VOUCHERS, broken: [] });
  const { rows } = await db.query("SELECT count(*)::int AS plain FROM purchases WHERE user_id NOT LIKE 'erased:%'");
  expect(rows[0].plain).toBe(0);
  const { rows: entries } = await db.query(
    `SELECT sum((after->>'events')::int)::int AS events, count(*) FILTER (WHERE strpos(a::text, $1) > 0)::int AS named
       FROM audit_entries AS a WHERE command = 'person erase'`,
    [USER],
  );
  expect(entries[0]).toEqual({ events: VOUCHERS, named: 0 });
}, 600_000);

it("an erasure that is killed after any statement leaves intact chains, and the next run completes it", async () => {
  const gate = await openStatementGate(servers.adminUrl);
  servers.onClose(() => gate.close());
  for (let statements = 1, isKilled = true; isKilled; statements += 1) {
    const user = `user who is erased in ${statements} statements`;
    const ids = (await issueVouchers(db, partner, 2)).map(({ id }) => id);
    await buy(ids, user);
    await makeMember(db, { organizationId: partner.organizationId, userId: user, role: "employee" });
    const reached = Promise.withResolvers<boolean>();
    gate.limit(statements, () => reached.resolve(true));
    isKilled = await eraseUntil(reached.promise, user, gate.url);
    for (const id of ids) expect(await verifyOneChain({ pool: db }, id)).toMatchObject({ broken: [] });
    const { rows: half } = await db.query(
      `SELECT FROM purchases AS p JOIN voucher_events AS e ON e.voucher_id = p.voucher_id AND e.sequence = 2
        WHERE p.voucher_id = ANY ($1) AND starts_with(p.user_id, 'erased:') IS DISTINCT FROM (e.erased_by IS NOT NULL)`,
      [ids],
    );
    expect(half).toEqual([]);
    await erasePerson(provisioning(db), { by: "user", userId: user }, null);
    expect(await tablesWith(db, user)).toEqual([]);
    const { rows } = await db.query(
      `SELECT sum((after->>'events')::int)::int AS events FROM audit_entries WHERE entity_id = erased_form('', $1)`,
      [user],
    );
    expect(rows).toEqual([{ events: 2 }]);
    if (!isKilled) expect(statements).toBeGreaterThan(20);
  }
}, 1_200_000);

/** Runs the command, and kills it if `moment` resolves to true before it ends. Returns whether it was killed. */
async function eraseUntil(moment: Promise<boolean>, user = USER, databaseUrl = servers.adminUrl): Promise<boolean> {
  const command = spawn(process.execPath, ["src/cli/main.ts", "person", "erase", "--user", user, "--yes", "--json"], {
    env: { ...process.env, DATABASE_URL: databaseUrl, REDIS_URL: servers.redisUrl },
    stdio: "ignore",
  });
  const ended = once(command, "exit");
  const killed = await Promise.race([ended.then(() => false), moment]);
  if (killed) command.kill("SIGKILL");
  await ended;
  return killed;
}

async function countErased(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query("SELECT count(*)::int AS n FROM voucher_events WHERE erased_by IS NOT NULL");
  return rows[0].n;
}

/** Records purchases of vouchers by a user, each with its sealed event. */
async function buy(ids: readonly string[], user = USER): Promise<void> {
  await inTransaction(db, async (tx) => {
    const { now, vouchers } = await readLockedVouchers(tx, ids);
    const chains = [...vouchers.values()];
    const events = chains.map((voucher) => ({
      ...nextEvent(pooledRandomBytes, voucher, "voucher.instance.bought", now, { paymentRef: voucher.id }),
      actorConnectedId: user,
    }));
    const { writes, advances } = appendEvents(await openSinks(tx), chains, [], events);
    await write(tx, [...writes, ...advanceChains(advances)]);
    await tx.query(
      `INSERT INTO purchases (organization_id, user_id, payment_ref, voucher_id)
       SELECT $1, $2, id, id FROM unnest($3::text[]) AS v (id)`,
      [partner.organizationId, user, ids],
    );
  });
}
