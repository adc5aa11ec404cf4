import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { expect, it } from "vitest";
import { migrateDatabase } from "../../src/db/migrate.ts";
import { closeRedemptions, insertRedemptions, selectRedemptions } from "../../src/db/redemptions.ts";
import { write } from "../../src/db/transaction.ts";
import { runRedeemJob } from "../../src/services/partner/redeem-committer.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { databaseTime } from "../support/outside-transaction.ts";
import { openOwnPostgres } from "../support/own-postgres.ts";
import { newAttempt, redeemJob } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { openWorkerContext, startApi, testConfig, type WorkerContext } from "../support/service.ts";
import { issueVoucher, issueVouchers, makeKey, makePartner, type TestPartner } from "../support/supply.ts";
import { until } from "../support/until.ts";

const WRITERS = 64;
/** Processes that redeem, each with one fast transaction at a time. */
const WORKERS = 16;
const VOUCHERS = 3_000;
const WRITE_MS = 15_000;
const READERS = [1, 7, 100, 1_000];
/** Writers wait for a reader that is further behind, so that on any machine each reader reaches the list's end again and again. */
const BEHIND_MAX = 200;
/** Different ends of the list that each reader must have reached before the writers stop. */
const ENDS_MIN = 4;

/** Lets commits take up to four seconds, longer than the two seconds after which the list closes a time. */
const SLOW_COMMITS = `
  CREATE FUNCTION delay_commit() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF current_setting('test.delayed', true) IS DISTINCT FROM txid_current()::text THEN
      PERFORM set_config('test.delayed', txid_current()::text, true);
      PERFORM pg_sleep(CASE WHEN random() < 0.3 THEN 4 * random() ELSE 0.05 * random() END);
    END IF;
    RETURN NULL;
  END $$;
  CREATE CONSTRAINT TRIGGER delay_commit AFTER INSERT ON redemptions DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION delay_commit()`;

/** Everything that a reader has listed, and each end of the list that it has reached: the time before which the list was complete. */
interface Reader {
  ids: string[];
  ends: { completeUntil: string; listed: number }[];
}

/** Follows the cursor until `isOver`. */
async function follow(
  client: PartnerClient,
  limit: number,
  { ids, ends }: Reader,
  isOver: (completeUntil: string) => boolean,
) {
  let last = "";
  for (let cursor: string | null = null; ; ) {
    const query: Record<string, string> = { limit: String(limit) };
    const { status, body } = await client.redemptions(cursor === null ? query : { ...query, cursor });
    // A busy API may refuse a page; the reader asks for the same page again, as a partner does.
    if (status === 503) {
      await sleep(100);
      continue;
    }
    expect(status, JSON.stringify(body)).toBe(200);
    for (const { voucherInstanceId, redeemedAt } of body.redemptions) {
      const place = `${redeemedAt} ${voucherInstanceId}`;
      expect(place > last && redeemedAt < body.completeUntil, `${place} after ${last}`).toBe(true);
      last = place;
      ids.push(voucherInstanceId);
    }
    cursor = body.nextCursor;
    if (body.redemptions.length === limit) continue;
    ends.push({ completeUntil: body.completeUntil, listed: ids.length });
    if (isOver(body.completeUntil)) return;
    await sleep(20);
  }
}

const countEnds = ({ ends }: Reader) => new Set(ends.map(({ listed }) => listed)).size;

/** Redeems vouchers one after another until `isOver`; repeats each until a worker has answered. */
async function redeemAll(
  vouchers: string[],
  workers: WorkerContext[],
  partner: TestPartner,
  keyId: string,
  mayGoOn: () => boolean,
  isOver: () => boolean,
) {
  while (!isOver()) {
    const id = mayGoOn() ? vouchers.pop() : undefined;
    if (id === undefined) {
      await sleep(20);
      continue;
    }
    const job = redeemJob(partner, keyId, id, `order ${id}`);
    for (let answered = false; !answered; ) {
      const worker = workers[Math.floor(Math.random() * workers.length)] as WorkerContext;
      const reply = await runRedeemJob(worker, newAttempt(id), job).catch(() => null);
      answered = reply?.kind === "redeemed" || reply?.kind === "confirmed";
      if (!answered) await sleep(50);
    }
  }
}

/** Ends connections of random workers until it is stopped; returns how many. */
async function killConnections(servers: TestServers, isStopped: () => boolean): Promise<number> {
  let killed = 0;
  while (!isStopped()) {
    await sleep(150);
    const { rowCount } = await servers.db.query(
      `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'worker' AND state <> 'idle' ORDER BY random() LIMIT 1) AS one`,
    );
    killed += rowCount ?? 0;
  }
  return killed;
}

it("readers list each redemption exactly once while 64 writers commit slowly and lose connections, and nothing is added before a completeUntil", async () => {
  const servers = await openTestServers();
  const partner = await makePartner(servers.db);
  const { id: keyId, key } = await makeKey(servers.db, partner.organizationId);
  const vouchers = (await issueVouchers(servers.db, partner, VOUCHERS)).map(({ id }) => id);
  await servers.db.query(SLOW_COMMITS);
  const apis = await Promise.all([startApi(servers), startApi(servers)]);
  const workers = Array.from({ length: WORKERS }, () => openWorkerContext(testConfig(servers)));
  for (const worker of workers) servers.onClose(() => worker.close());

  let endedAt: string | null = null;
  const readers = READERS.map((): Reader => ({ ids: [], ends: [] }));
  const following = READERS.map((limit, n) =>
    follow(
      partnerClient(apis[n % 2]?.url ?? "", key),
      limit,
      readers[n] as Reader,
      (time) => endedAt !== null && time > endedAt,
    ),
  );
  const startedAt = performance.now();
  const isOver = () => performance.now() > startedAt + WRITE_MS && readers.every((one) => countEnds(one) >= ENDS_MIN);
  const mayGoOn = () => VOUCHERS - vouchers.length < Math.min(...readers.map(({ ids }) => ids.length)) + BEHIND_MAX;
  const killing = killConnections(servers, isOver);
  await Promise.all(
    Array.from({ length: WRITERS }, () => redeemAll(vouchers, workers, partner, keyId, mayGoOn, isOver)),
  );
  endedAt = (await databaseTime(servers.db)).toISOString();
  await Promise.all(following);

  const { rows } = await servers.db.query<{ id: string; at: Date }>(
    "SELECT voucher_id AS id, redeemed_at AS at FROM redemptions ORDER BY redeemed_at, voucher_id",
  );
  expect(rows.length).toBeGreaterThan(WRITERS);
  expect(await killing).toBeGreaterThan(10);
  for (const { ids, ends } of readers) {
    expect(ids).toEqual(rows.map(({ id }) => id));
    const wrong = ends.filter(
      ({ completeUntil, listed }) => rows.filter(({ at }) => at.toISOString() < completeUntil).length !== listed,
    );
    expect(wrong).toEqual([]);
  }
  await assertInvariants(servers.db);
  await servers.close();
});

it("a redemption in a prepared transaction bounds completeUntil, even after the server has restarted", async () => {
  const postgres = await openOwnPostgres(["max_prepared_transactions=2"]);
  try {
    await postgres.superuser.query("CREATE DATABASE vouchers");
    await migrateDatabase(postgres.url("vouchers"));
    const db = new pg.Pool({ connectionString: postgres.url("vouchers"), max: 2 });
    db.on("error", () => undefined);
    const partner = await makePartner(db);
    const { id } = await issueVoucher(db, partner);
    const redeemedAt = await databaseTime(db);
    const client = await db.connect();
    client.on("error", () => undefined);
    await client.query("BEGIN");
    const redemption = { ...redeemJob(partner, "key", id, "prepared"), attemptId: "attempt", redeemCode: "code" };
    await write(client, insertRedemptions([redemption], redeemedAt));
    await client.query("PREPARE TRANSACTION 'redemption'");
    client.release();
    const list = async () => {
      const completeUntil = await closeRedemptions(db, new Date("2999-01-01"));
      const start = { redeemedAt: new Date(0), voucherId: "" };
      return { completeUntil, listed: await selectRedemptions(db, partner.organizationId, start, completeUntil, 10) };
    };
    const untilClosed = () =>
      until(async () => {
        await list();
        const { rows } = await db.query("SELECT closed_until > $1 AS closed FROM redemptions_closed", [redeemedAt]);
        return rows[0]?.closed;
      });
    await untilClosed();
    expect(await list()).toEqual({ completeUntil: redeemedAt, listed: [] });
    await postgres.restart();
    await until(() => db.query("SELECT 1").catch(() => null));
    expect(await list()).toEqual({ completeUntil: redeemedAt, listed: [] });
    await db.query("COMMIT PREPARED 'redemption'");
    const { completeUntil, listed } = await list();
    expect(completeUntil.getTime()).toBeGreaterThan(redeemedAt.getTime());
    expect(listed.map(({ voucherId }) => voucherId)).toEqual([id]);
    await db.end();
  } finally {
    await postgres.close();
  }
});
