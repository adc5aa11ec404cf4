import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWorkerContext, type WorkerContext } from "../../src/context.ts";
import { Leases, leaseKey, ORPHAN_AFTER_MS } from "../../src/holds/lease.ts";
import { PREFIX, type SweepReport } from "../../src/queues/catalog.ts";
import { checkChains } from "../../src/services/check-chains.ts";
import { sealVoucher } from "../../src/services/seal-events.ts";
import { sweep } from "../../src/services/sweep.ts";
import { voidVoucher } from "../../src/services/void-voucher.ts";
import { type PartnerClient, partnerClient } from "../support/client.ts";
import { assertInvariants } from "../support/invariants.ts";
import { inSeconds, makeContract, newUser } from "../support/marketplace.ts";
import { besideTransaction, untilPast, whileLocked } from "../support/outside-transaction.ts";
import { readRecorded, readReservation } from "../support/recorded.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { openTestServers, type TestServers } from "../support/servers.ts";
import { startApi, startWorkers, type TestApi, testConfig } from "../support/service.ts";
import {
  issueVoucher,
  issueVouchers,
  makeKey,
  makePartner,
  provisioning,
  type TestPartner,
} from "../support/supply.ts";
import { until } from "../support/until.ts";

let servers: TestServers;
/** Its holds last ten minutes. */
let api: TestApi;
/** Its holds last one second. */
let hasty: TestApi;
let ctx: WorkerContext;
let partner: TestPartner;
let till: PartnerClient;
let hastyTill: PartnerClient;
let rival: PartnerClient;

beforeAll(async () => {
  servers = await openTestServers();
  [api, hasty] = await Promise.all([
    startApi(servers, { RESERVATION_SECONDS: "600" }),
    startApi(servers, { RESERVATION_SECONDS: "1" }),
  ]);
  ctx = openWorkerContext(testConfig(servers));
  await until(() => ctx.redis.status === "ready");
  partner = await makePartner(servers.db);
  const [one, other] = await Promise.all([
    makeKey(servers.db, partner.organizationId),
    makeKey(servers.db, partner.organizationId),
  ]);
  till = partnerClient(api.url, one.key);
  hastyTill = partnerClient(hasty.url, one.key);
  rival = partnerClient(api.url, other.key);
});

afterAll(async () => {
  await assertInvariants(servers.db);
  await Promise.all([api.close(), hasty.close(), ctx.close()]);
  await servers.close();
});

/** Leases that cannot be put back. */
class FailingLeases extends Leases {
  override async restore(): Promise<boolean> {
    throw new Error("Redis is away");
  }
}

/** Runs passes until one has been round everything, and adds up what they did. */
async function sweepRound(): Promise<SweepReport> {
  const first = await sweep(ctx);
  const second = await sweep(ctx);
  expect([first.failures, second.failures]).toEqual([{}, {}]);
  const sum = { ...first };
  for (const key of Object.keys(first) as (keyof SweepReport)[]) {
    if (key !== "failures") sum[key] = first[key] + second[key];
  }
  return sum;
}

/** A hold whose second is over. */
async function makeOverdue(): Promise<{ id: string; code: string; ticket: string; expiresAt: Date }> {
  const { id, code } = await issueVoucher(servers.db, partner);
  const { ticket, expiresAt } = (await hastyTill.reserve(code)).body;
  await untilPast(servers.db, new Date(expiresAt));
  return { id, code, ticket, expiresAt: new Date(expiresAt) };
}

function leaseOf(voucherId: string): Promise<Record<string, string>> {
  return servers.redis.hgetall(leaseKey(voucherId));
}

describe("a pass of the sweeper", () => {
  it("finds nothing to do where all is done, and writes nothing but how far it got", async () => {
    await sweepRound();
    const { holdsExpired, leasesRestored, leasesRemoved, expiriesRecorded, sealsRequested, chainsBroken } =
      await sweepRound();
    expect({ holdsExpired, leasesRestored, leasesRemoved, expiriesRecorded, sealsRequested, chainsBroken }).toEqual({
      holdsExpired: 0,
      leasesRestored: 0,
      leasesRemoved: 0,
      expiriesRecorded: 0,
      sealsRequested: 0,
      chainsBroken: 0,
    });
  });

  it("goes on with its other tasks when one fails, and says which", async () => {
    const { ticket } = await makeOverdue();
    await till.reserve((await issueVoucher(servers.db, partner)).code);
    const report = await sweep({ ...ctx, leases: new FailingLeases(ctx.redis) });
    expect(report.failures).toEqual({ restoreLeases: "Redis is away" });
    expect((await readReservation(servers.db, ticket)).state).toBe("Expired");
  });
});

describe("holds past their time", () => {
  it("are recorded as Expired at their own end, and their leases are gone", async () => {
    const { id, ticket, expiresAt } = await makeOverdue();
    await servers.redis.persist(leaseKey(id));
    await servers.redis.hset(leaseKey(id), { ticket, key: "key", start: Date.now() });
    expect((await sweepRound()).holdsExpired).toBe(1);
    expect(await readReservation(servers.db, ticket)).toMatchObject({ state: "Expired", endedAt: expiresAt });
    expect(await leaseOf(id)).toEqual({});
  });

  it("lose no lease that another hold has by now", async () => {
    const { id } = await makeOverdue();
    await servers.redis.hset(leaseKey(id), { ticket: "rsv_of_another", key: "key", start: Date.now() });
    expect((await sweep(ctx)).holdsExpired).toBe(1);
    expect(await leaseOf(id)).toMatchObject({ ticket: "rsv_of_another" });
  });

  it("wait for the next pass when their voucher is locked, and hold no others up", async () => {
    const stuck = await makeOverdue();
    const free = await makeOverdue();
    await whileLocked(servers.db, [stuck.id], async () => {
      expect((await sweep(ctx)).holdsExpired).toBe(1);
      expect((await readReservation(servers.db, stuck.ticket)).state).toBe("Live");
      expect((await readReservation(servers.db, free.ticket)).state).toBe("Expired");
    });
    expect((await sweep(ctx)).holdsExpired).toBe(1);
    expect((await readReservation(servers.db, stuck.ticket)).state).toBe("Expired");
  });

  it("are recorded once by two passes at the same time", async () => {
    const overdue = await Promise.all(Array.from({ length: 20 }, makeOverdue));
    const [one, other] = await Promise.all([sweep(ctx), sweep(ctx)]);
    const { holdsExpired } = await sweep(ctx);
    expect(one.holdsExpired + other.holdsExpired + holdsExpired).toBe(overdue.length);
  });

  it("leave a hold alone whose time is not over", async () => {
    const { code } = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(code)).body;
    await sweepRound();
    expect((await readReservation(servers.db, ticket)).state).toBe("Live");
  });
});

describe("leases of live holds", () => {
  it("come back with the time that is left after Redis has lost everything, and turn others away again", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const hold = (await till.reserve(code)).body;
    const before = await leaseOf(id);
    await servers.redis.flushdb();
    expect((await sweepRound()).leasesRestored).toBeGreaterThanOrEqual(1);
    const after = await leaseOf(id);
    expect(after).toMatchObject({ ticket: before.ticket, key: before.key });
    expect(Math.abs(Number(after.start) - Number(before.start))).toBeLessThan(1_000);
    const left = Date.parse(hold.expiresAt) - Date.now();
    expect(Math.abs((await servers.redis.pttl(leaseKey(id))) - left)).toBeLessThan(1_000);
    expect(await rival.reserve(code)).toMatchObject({ status: 409, body: { code: "voucher_reserved" } });
  });

  it("take the place of another ticket's lease: the row is the truth", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(code)).body;
    await servers.redis.hset(leaseKey(id), { ticket: "rsv_of_another", key: "key", start: Date.now() });
    expect((await sweepRound()).leasesRestored).toBe(1);
    expect(await leaseOf(id)).toMatchObject({ ticket });
  });

  it("are all gone over, however many passes it takes", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 1_100);
    await servers.db.query(
      `INSERT INTO reservations (started_at, expires_at, ticket, voucher_id, organization_id, key_id, state, token_secret_id)
       SELECT date_trunc('second', now()), date_trunc('second', now()) + interval '5 minutes', 'rsv_many_' || id, id, $2, 'key',
              'Live', 'none' FROM unnest($1::text[]) AS id`,
      [vouchers.map(({ id }) => id), partner.organizationId],
    );
    expect((await sweepRound()).leasesRestored).toBe(1_100);
    expect(await servers.redis.exists(vouchers.map(({ id }) => leaseKey(id)))).toBe(1_100);
  });
});

describe("leases without a live hold", () => {
  it("are removed once they are older than a reserve takes, and not before", async () => {
    await servers.redis.flushdb();
    await sweepRound();
    const [old, young] = await issueVouchers(servers.db, partner, 2);
    const [seconds] = await servers.redis.time();
    const now = Number(seconds) * 1_000;
    await servers.redis.hset(leaseKey(old?.id ?? ""), {
      ticket: "rsv_old",
      key: "key",
      start: now - ORPHAN_AFTER_MS - 1_000,
    });
    // Young for as long as this test may take.
    await servers.redis.hset(leaseKey(young?.id ?? ""), { ticket: "rsv_young", key: "key", start: now + 60_000 });
    expect((await sweep(ctx)).leasesRemoved).toBe(1);
    expect(await leaseOf(old?.id ?? "")).toEqual({});
    expect(await leaseOf(young?.id ?? "")).toMatchObject({ ticket: "rsv_young" });
  });

  it("of a hold that lives are left alone, however old", async () => {
    const { id, code } = await issueVoucher(servers.db, partner);
    const { ticket } = (await till.reserve(code)).body;
    await servers.redis.hincrby(leaseKey(id), "start", -300_000);
    await sweepRound();
    expect(await leaseOf(id)).toMatchObject({ ticket });
  });
});

describe("vouchers past their validUntil", () => {
  const past = () => new Date(Date.now() - 1_000);
  const expiredEvents = (voucherId: string) =>
    readRecorded(servers.db, voucherId).then(({ events }) =>
      events.filter(({ eventType }) => eventType === "voucher.instance.expired"),
    );

  it("get one sealed event that says so, at the end of their chain, and read Expired before and after", async () => {
    const validUntil = past();
    const [voucher] = await issueVouchers(servers.db, partner, 1, { validUntil });
    const read = async () => (await till.lookUp(voucher?.code ?? "")).body.voucher.status;
    expect(await read()).toBe("Expired");
    expect((await sweepRound()).expiriesRecorded).toBe(1);
    expect(await expiredEvents(voucher?.id ?? "")).toEqual([
      {
        sequence: 2,
        eventType: "voucher.instance.expired",
        sealStatus: "Sealed",
        data: {
          nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
          voucherCode: voucher?.code,
          serial: 1,
          validUntil: validUntil.toISOString(),
        },
      },
    ]);
    expect(await read()).toBe("Expired");
    expect((await till.events(voucher?.code ?? "")).body.events[1]).toMatchObject({
      code: "VCH006",
      actorConnectedId: null,
    });
  });

  it("are all recorded, over many transactions, without a job each", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 1_200, { validUntil: past() });
    const jobs = await countJobs(servers.redis, "seal");
    let recorded = 0;
    while (recorded < vouchers.length) {
      const { expiriesRecorded, failures } = await sweep(ctx);
      expect(failures).toEqual({});
      recorded += expiriesRecorded;
    }
    expect(recorded).toBe(vouchers.length);
    const { rows } = await servers.db.query(
      "SELECT count(*)::int AS n FROM voucher_events WHERE voucher_id = ANY ($1) AND event_type = 'voucher.instance.expired'",
      [vouchers.map(({ id }) => id)],
    );
    expect(rows[0].n).toBe(vouchers.length);
    expect(await countJobs(servers.redis, "seal")).toBe(jobs);
  });

  it("that were burnt or voided stay what they are", async () => {
    const validUntil = new Date(Date.now() + 2_000);
    const [burnt, voided, left] = await issueVouchers(servers.db, partner, 3, { validUntil });
    const workers = await startWorkers(servers);
    expect((await till.redeem({ code: burnt?.code, externalRef: "before-the-end" })).status).toBe(200);
    await workers.close();
    await voidVoucher(provisioning(servers.db), partner.organizationId, voided?.code ?? "", null);
    await untilPast(servers.db, validUntil);
    expect((await sweepRound()).expiriesRecorded).toBe(1);
    expect(await expiredEvents(burnt?.id ?? "")).toEqual([]);
    expect(await expiredEvents(voided?.id ?? "")).toEqual([]);
    expect(await expiredEvents(left?.id ?? "")).toHaveLength(1);
  });

  it("whose rows are locked are passed over and recorded later; the rest of the batch is not recorded twice", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 5, { validUntil: past() });
    const stuck = vouchers[2]?.id ?? "";
    await whileLocked(servers.db, [stuck], async () => {
      expect((await sweep(ctx)).expiriesRecorded).toBe(4);
      expect((await sweep(ctx)).expiriesRecorded).toBe(0);
      expect(await expiredEvents(stuck)).toEqual([]);
    });
    expect((await sweep(ctx)).expiriesRecorded).toBe(1);
    for (const { id } of vouchers) expect(await expiredEvents(id)).toHaveLength(1);
  });

  it("are recorded once by passes at the same time", async () => {
    const vouchers = await issueVouchers(servers.db, partner, 700, { validUntil: past() });
    const passes = await Promise.all([sweep(ctx), sweep(ctx), sweep(ctx)]);
    const { expiriesRecorded } = await sweep(ctx);
    expect(passes.reduce((sum, pass) => sum + pass.expiriesRecorded, expiriesRecorded)).toBe(vouchers.length);
    expect(passes.map(({ failures }) => failures)).toEqual([{}, {}, {}]);
  });

  it("get the seals of earlier Pending events first", async () => {
    const validUntil = new Date(Date.now() + 1_000);
    const [voucher] = await issueVouchers(servers.db, partner, 1, { validUntil });
    const id = voucher?.id ?? "";
    await servers.db.query(
      `WITH counted AS (UPDATE vouchers SET last_sequence = 2 WHERE id = $1 RETURNING id)
       INSERT INTO voucher_events (occurred_at, sequence, voucher_id, seal_status, event_type, data)
       SELECT now(), 2, id, 'Pending', 'voucher.instance.claimed', '{"nonce":"00"}' FROM counted`,
      [id],
    );
    await untilPast(servers.db, validUntil);
    await sweep(ctx);
    const { events } = await readRecorded(servers.db, id);
    expect(events.map(({ eventType, sealStatus }) => `${eventType} ${sealStatus}`)).toEqual([
      "voucher.instance.issued Sealed",
      "voucher.instance.claimed Sealed",
      "voucher.instance.expired Sealed",
    ]);
  });
});

describe("referrer contracts past their end", () => {
  const statusOf = async (id: string) => {
    const { rows } = await servers.db.query(
      "SELECT status, changed_at > ends_at AS after FROM referrer_contracts WHERE id = $1",
      [id],
    );
    return rows[0];
  };
  const contract = (...how: [status?: "Offered" | "Active" | "Ended" | "Declined", endsAt?: Date | null]) =>
    makeContract(servers.db, partner.brandId, newUser(), ...how);

  it("are recorded as Ended, once, and make room for a new one; all others stay what they are", async () => {
    const user = newUser();
    const over = await makeContract(servers.db, partner.brandId, user, "Active", inSeconds(-1));
    const others = [
      [await contract("Active", inSeconds(600)), "Active"],
      [await contract("Active"), "Active"],
      [await contract("Offered", inSeconds(-1)), "Offered"],
      [await contract("Declined", inSeconds(-1)), "Declined"],
    ] as const;
    const { contractsEnded, failures } = await sweep(ctx);
    expect({ contractsEnded, failures }).toEqual({ contractsEnded: 1, failures: {} });
    expect(await statusOf(over)).toEqual({ status: "Ended", after: true });
    for (const [id, status] of others) expect(await statusOf(id)).toMatchObject({ status });
    expect((await sweep(ctx)).contractsEnded).toBe(0);
    await makeContract(servers.db, partner.brandId, user, "Active");
  });

  it("are recorded once by passes at the same time, more than one pass's worth by the next ones", async () => {
    const before = (await sweep(ctx)).contractsEnded;
    expect(before).toBe(0);
    await servers.db.query(
      `INSERT INTO referrer_contracts (id, brand_id, user_id, ends_at)
       SELECT 'ctr_many_' || n, $1, 'many-' || n, now() - interval '1 second' FROM generate_series(1, 1500) AS n`,
      [partner.brandId],
    );
    await servers.db.query("UPDATE referrer_contracts SET status = 'Active' WHERE id LIKE 'ctr_many_%'");
    const passes = await Promise.all([sweep(ctx), sweep(ctx)]);
    const { contractsEnded } = await sweep(ctx);
    expect(passes.reduce((sum, pass) => sum + pass.contractsEnded, contractsEnded)).toBe(1_500);
  });

  it("wait for the next pass when somebody else is moving them, and hold no others up", async () => {
    const [stuck, free] = [await contract("Active", inSeconds(-1)), await contract("Active", inSeconds(-1))];
    await besideTransaction(servers.db, async (outside) => {
      await outside.query("SELECT 1 FROM referrer_contracts WHERE id = $1 FOR UPDATE", [stuck]);
      expect((await sweep(ctx)).contractsEnded).toBe(1);
      expect(await statusOf(free)).toMatchObject({ status: "Ended" });
    });
    expect((await sweep(ctx)).contractsEnded).toBe(1);
    expect(await statusOf(stuck)).toMatchObject({ status: "Ended" });
  });
});

describe("events that wait for their seal", () => {
  it("get one seal job per voucher once they are a few seconds late, and are sealed by it", async () => {
    const { rows } = await servers.db.query("SELECT voucher_id FROM voucher_events WHERE seal_status = 'Pending'");
    for (const { voucher_id } of rows) await sealVoucher(ctx, voucher_id);
    const [late, recent] = await issueVouchers(servers.db, partner, 2);
    for (const voucher of [late, recent])
      await voidVoucher(provisioning(servers.db), partner.organizationId, voucher?.code ?? "", null);
    const client = await servers.db.connect();
    await client.query("SET session_replication_role = replica");
    await client.query(
      "UPDATE voucher_events SET occurred_at = occurred_at - interval '6 seconds' WHERE voucher_id = $1 AND seal_status = 'Pending'",
      [late?.id],
    );
    client.release(true);
    expect((await sweep(ctx)).sealsRequested).toBe(1);
    expect((await readRecorded(servers.db, recent?.id ?? "")).sealedSequence).toBe(1);
    // The second request finds the first one still waiting.
    await sweep(ctx);
    const waiting = await servers.redis.lrange(`${PREFIX}:seal:wait`, "0", "-1");
    expect(waiting.filter((jobId) => jobId.startsWith(late?.id ?? ""))).toHaveLength(1);
    const workers = await startWorkers(servers);
    await until(async () => (await readRecorded(servers.db, late?.id ?? "")).sealedSequence === 2);
    await workers.close();
  });
});

describe("chains", () => {
  it("are all verified in turn, and a broken one is counted in every round", async () => {
    const own = await openTestServers();
    const other = openWorkerContext(testConfig(own));
    try {
      const vouchers = await issueVouchers(own.db, await makePartner(own.db), 250);
      const client = await own.db.connect();
      await client.query("SET session_replication_role = replica");
      await client.query("ALTER TABLE voucher_events DROP CONSTRAINT record_hash_is_of_payload");
      const broken = vouchers[123]?.id;
      await client.query("UPDATE voucher_events SET payload = payload || ' ' WHERE voucher_id = $1", [broken]);
      client.release(true);
      let checked = 0;
      const found: string[] = [];
      for (let pass = 0; pass < 6; pass++) {
        const result = await checkChains(other);
        checked += result.vouchers;
        found.push(...result.broken.map(({ voucherId }) => voucherId));
      }
      expect(checked).toBe(500);
      expect(found).toEqual([broken, broken]);
    } finally {
      await other.close();
      await own.close();
    }
  });

  it("are verified faster when there are more of them than the time allows for", async () => {
    const own = await openTestServers();
    const other = openWorkerContext(testConfig(own, { CHAIN_CHECK_HOURS: "1" }));
    try {
      await issueVouchers(own.db, await makePartner(own.db), 1_000);
      await own.db.query("ANALYZE vouchers");
      await checkChains(other);
      await own.db.query("UPDATE sweep_positions SET moved_at = moved_at - interval '30 minutes'");
      const { vouchers } = await checkChains(other);
      expect(vouchers).toBeGreaterThanOrEqual(500);
      expect(vouchers).toBeLessThan(520);
    } finally {
      await other.close();
      await own.close();
    }
  });
});

describe("the schedule", () => {
  it("is one, however many workers keep it, and comes back when Redis has lost it", async () => {
    const env = { WORKER_QUEUES: "sweep", SWEEP_INTERVAL_MS: "300" };
    const workers = await Promise.all(Array.from({ length: 3 }, () => startWorkers(servers, env)));
    const finished = () => servers.redis.zcard(`${PREFIX}:sweep:completed`);
    const startedAt = Date.now();
    await until(async () => (await finished()) >= 4);
    // One pass per interval, not three.
    expect(await finished()).toBeLessThanOrEqual(Math.ceil((Date.now() - startedAt) / 300) + 1);
    await servers.redis.flushdb();
    await until(async () => (await finished()) >= 2);
    await Promise.all(workers.map((worker) => worker.close()));
    const overdue = await servers.redis.zrange(`${PREFIX}:sweep:completed`, "0", "0");
    const [returned] = await servers.redis.hmget(`${PREFIX}:sweep:${overdue[0]}`, "returnvalue");
    expect(JSON.parse(returned ?? "null")).toMatchObject({ holdsExpired: expect.any(Number), failures: {} });
  });
});
