import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import {
  advanceCompleteUntil,
  findCompleteUntil,
  insertRedemptions,
  selectRedemptions,
} from "../../../src/core/redeem/db/redemptions.ts";
import { runRedeemJob } from "../../../src/core/redeem/redeem-committer.ts";
import { migrateDatabase } from "../../../src/platform/db/migrate.ts";
import { write } from "../../../src/platform/db/transaction.ts";
import type { PartnerClient } from "../../support/client.ts";
import { openLastingPool } from "../../support/lasting-pool.ts";
import { databaseTime } from "../../support/outside-transaction.ts";
import { openOwnPostgres } from "../../support/own-postgres.ts";
import { newAttempt, redeemJob } from "../../support/redeem-jobs.ts";
import type { WorkerContext } from "../../support/service.ts";
import { issueVoucher, issueVouchers, makePartner } from "../../support/supply.ts";
import { until } from "../../support/until.ts";
import { useService } from "../../support/use-service.ts";

const WRITERS = 64;
const VOUCHERS = 3_000;
const WRITE_MS = 15_000;
const READERS = [1, 7, 100, 1_000];
/**
 * The writers wait if a reader lags by more redemptions than this, so that on any machine each reader often reaches the
 * list's end.
 */
const BEHIND_MAX = 200;
/** The writers stop once each reader has reached the list's end this many times, with more redemptions each time. */
const ENDS_MIN = 4;

/** Each context stands for a process that redeems, with one transaction at a time. */
const { db, tills, partner, keys, contexts } = useService({ apis: [{}, {}], workers: [], contexts: 16 });

/** Makes commits take up to four seconds, while a list waits only two seconds for the redemptions of a time. */
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

/** All redemptions that a reader has listed, and each `completeUntil` at which the list ended for the reader. */
interface Reader {
  ids: string[];
  ends: { completeUntil: string; listed: number }[];
}

/** The latest `completeUntil` in any answer so far. */
let latestTold = "";

it("a reader that reached completeUntil has listed each earlier redemption once, despite slow commits", async () => {
  const vouchers = (await issueVouchers(db, partner, VOUCHERS)).map(({ id }) => id);
  await db.query(SLOW_COMMITS);
  let endedAt: string | null = null;
  const readers = READERS.map((): Reader => ({ ids: [], ends: [] }));
  const following = READERS.map((limit, n) =>
    follow(tills[n % 2] as PartnerClient, limit, readers[n] as Reader, (time) => endedAt !== null && time > endedAt),
  );
  const startedAt = performance.now();
  const isOver = () => performance.now() > startedAt + WRITE_MS && readers.every((one) => countEnds(one) >= ENDS_MIN);
  let areWaiting = false;
  const mayGoOn = () => {
    const behind = VOUCHERS - vouchers.length - Math.min(...readers.map(({ ids }) => ids.length));
    areWaiting = areWaiting ? behind > 0 : behind >= BEHIND_MAX;
    return !areWaiting;
  };

  /** Redeems vouchers one after another, and repeats each until a worker has answered. */
  const redeemAll = async () => {
    while (!isOver()) {
      const id = mayGoOn() ? vouchers.pop() : undefined;
      const job = id === undefined ? null : redeemJob(partner, keys.till.id, id, `order ${id}`);
      for (let isAnswered = false; job !== null && !isAnswered; ) {
        const worker = contexts[Math.floor(Math.random() * contexts.length)] as WorkerContext;
        const reply = await runRedeemJob(worker, newAttempt(job.voucherId), job).catch(() => null);
        isAnswered = reply?.kind === "redeemed" || reply?.kind === "confirmed";
        if (!isAnswered) await sleep(50);
      }
      if (job === null) await sleep(20);
    }
  };
  let killed = 0;
  const killConnections = async () => {
    while (!isOver()) {
      await sleep(150);
      const { rowCount } = await db.query(
        `SELECT pg_terminate_backend(pid) FROM (SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND application_name LIKE 'worker (%' AND state <> 'idle'
          ORDER BY random() LIMIT 1) AS one`,
      );
      killed += rowCount ?? 0;
    }
  };
  await Promise.all([killConnections(), ...Array.from({ length: WRITERS }, redeemAll)]);
  endedAt = (await databaseTime(db)).toISOString();
  await Promise.all(following);

  const { rows } = await db.query<{ id: string; at: Date }>(
    "SELECT voucher_id AS id, redeemed_at AS at FROM redemptions ORDER BY redeemed_at, voucher_id",
  );
  expect(rows.length).toBeGreaterThan(WRITERS);
  expect(killed).toBeGreaterThan(10);
  for (const { ids, ends } of readers) {
    expect(ids).toEqual(rows.map(({ id }) => id));
    const before = (time: string) => rows.filter(({ at }) => at.toISOString() < time).length;
    expect(ends.filter(({ completeUntil, listed }) => before(completeUntil) !== listed)).toEqual([]);
  }
});

it("a redemption in a prepared transaction holds back completeUntil, even after a server restart", async () => {
  const postgres = await openOwnPostgres(["max_prepared_transactions=2"]);
  await postgres.superuser.query("CREATE DATABASE vouchers");
  await migrateDatabase(postgres.url("vouchers"));
  const own = openLastingPool({ connectionString: postgres.url("vouchers"), max: 2 });
  const owner = await makePartner(own);
  const { organizationId } = owner;
  const { id } = await issueVoucher(own, owner);
  const redeemedAt = await databaseTime(own);
  const client = await own.connect();
  await client.query("BEGIN");
  const job = redeemJob({ organizationId }, "key", id, "prepared");
  await write(client, insertRedemptions([{ ...job, attemptId: "attempt", redeemCode: "code" }], redeemedAt));
  await client.query("PREPARE TRANSACTION 'redemption'");
  client.release();
  const list = async () => {
    await advanceCompleteUntil(own, new Date("2999-01-01"));
    const completeUntil = await findCompleteUntil(own);
    const start = { redeemedAt: new Date(0), voucherId: "" };
    return { completeUntil, listed: await selectRedemptions(own, organizationId, start, completeUntil, 10) };
  };
  await until(async () => {
    await list();
    const { rows } = await own.query("SELECT closed_until > $1 AS closed FROM redemptions_closed", [redeemedAt]);
    return rows[0]?.closed;
  });
  expect(await list()).toEqual({ completeUntil: redeemedAt, listed: [] });
  await postgres.restart();
  await until(() => own.query("SELECT 1").catch(() => null));
  expect(await list()).toEqual({ completeUntil: redeemedAt, listed: [] });
  await own.query("COMMIT PREPARED 'redemption'");
  const { completeUntil, listed } = await list();
  expect(completeUntil.getTime()).toBeGreaterThan(redeemedAt.getTime());
  expect(listed.map(({ voucherId }) => voucherId)).toEqual([id]);
  await own.end();
  await postgres.close();
});

/** Follows the cursor until `isOver`. */
async function follow(
  client: PartnerClient,
  limit: number,
  { ids, ends }: Reader,
  isOver: (completeUntil: string) => boolean,
) {
  let last = "";
  for (let cursor: string | null = null; ; ) {
    const toldBefore = latestTold;
    const { status, body } = await client.redemptions({ limit: String(limit), ...(cursor !== null && { cursor }) });
    // A busy API may refuse a page. The reader then requests it again, as a partner must.
    if (status === 503) {
      await sleep(100);
      continue;
    }
    expect(status, JSON.stringify(body)).toBe(200);
    expect(body.completeUntil >= toldBefore, `${body.completeUntil} after ${toldBefore}`).toBe(true);
    if (body.completeUntil > latestTold) latestTold = body.completeUntil;
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
