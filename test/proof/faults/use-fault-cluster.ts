import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { assertInvariants } from "../../support/invariants.ts";
import { countJobs, readQueuePrefix } from "../../support/redeem-jobs.ts";
import { issueVouchers, makeKey, makePartner } from "../../support/supply.ts";
import { untilStarted } from "../../support/until.ts";
import { untilReady } from "./checker.ts";
import { type ApiProcess, type Cluster, type ClusterOptions, embedded, openCluster } from "./cluster.ts";
import type { FaultPostgres } from "./fault-postgres.ts";
import type { SuppliedKey, SuppliedVoucher } from "./history.ts";
import { type Answer, sendCall } from "./http-call.ts";
import { hasFakeTime } from "./stepped-clock.ts";

/** A request to redeem an unused voucher. */
export interface Order {
  id: string;
  body: { code: string; externalRef: string };
}

/** Longer than any answer. Milliseconds. */
const CALL_TIMEOUT_MS = 20_000;

async function countRedemptions({ db }: Cluster, ids: readonly string[]): Promise<number> {
  const query = "SELECT count(*)::int AS count FROM redemptions WHERE voucher_id = ANY ($1)";
  return (await db.query(query, [ids])).rows[0].count;
}

/** Counts the redeem jobs that wait, and those that wait or run. */
async function countRedeemJobs(cluster: Cluster): Promise<{ waiting: number; all: number }> {
  const redis = new Redis(cluster.redis.url);
  const queuePrefix = await readQueuePrefix(cluster.db);
  const counts = [redis.llen(`${queuePrefix}:redeem:wait`), countJobs({ redis, queuePrefix }, "redeem")];
  const [waiting = 0, all = 0] = await Promise.all(counts).finally(() => redis.disconnect());
  return { waiting, all };
}

/** Makes everything that tests can already use before `beforeAll`. `useFaultCluster` fills in the rest. */
function makeMembers() {
  let orders = 0;
  const own = {
    cluster: undefined as unknown as Cluster,
    postgres: undefined as unknown as FaultPostgres,
    api: undefined as unknown as ApiProcess,
    otherApi: undefined as unknown as ApiProcess,
    key: undefined as unknown as SuppliedKey,
    otherKey: undefined as unknown as SuppliedKey,
    vouchers: [] as SuppliedVoucher[],
    newVoucher(): SuppliedVoucher {
      const voucher = own.vouchers.pop();
      if (voucher === undefined) throw new Error("no voucher is left");
      return voucher;
    },
    newOrder(): Order {
      const { id, code } = own.newVoucher();
      orders += 1;
      return { id, body: { code, externalRef: `order-${orders}` } };
    },
    newOrders: (count: number): Order[] => Array.from({ length: count }, own.newOrder),
    get: ({ url }: ApiProcess, path: string): Promise<Answer> =>
      sendCall({ method: "GET", url: `${url}${path}`, key: own.key.secret, timeoutMs: CALL_TIMEOUT_MS }),
    post(
      { url }: ApiProcess,
      path: string,
      body: object,
      how: { key?: SuppliedKey; timeoutMs?: number } = {},
    ): Promise<Answer> {
      const { key = own.key, timeoutMs = CALL_TIMEOUT_MS } = how;
      return sendCall({ method: "POST", url: `${url}/partner/vouchers/${path}`, key: key.secret, body, timeoutMs });
    },
    redeem: ({ body }: { body: object }, at: ApiProcess): Promise<Answer> => own.post(at, "redeem", body),
    redeemAll: (all: readonly Order[], at: ApiProcess): Promise<Answer[]> =>
      Promise.all(all.map((order) => own.redeem(order, at))),
    async untilRedeems(one: ApiProcess): Promise<void> {
      const order = own.newOrder();
      await untilStarted(async () => (await own.redeem(order, one)).status === 200);
    },
    countRedemptions: (ids: readonly string[]) => countRedemptions(own.cluster, ids),
    countRedeemJobs: () => countRedeemJobs(own.cluster),
    /** Repairs the cluster and waits until each API process can redeem, and each worker works. */
    async makeWhole(): Promise<void> {
      const { cluster } = own;
      await cluster.heal();
      await untilReady(cluster);
      for (const one of cluster.apis) await own.untilRedeems(one);
      for (const worker of cluster.workers) await untilStarted(() => worker.hasLogged("working"));
    },
  };
  return own;
}

async function supply({ db }: Cluster, count: number) {
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const [key, otherKey] = await Promise.all(
    [1, 2].map(async (): Promise<SuppliedKey> => {
      const made = await makeKey(db, organizationId);
      return { id: made.id, secret: made.key, organizationId };
    }),
  );
  const issued = await issueVouchers(db, partner, count);
  return { key, otherKey, vouchers: issued.map(({ id, code }): SuppliedVoucher => ({ id, code, organizationId })) };
}

/**
 * Starts a cluster for one fault at a time, repaired before each test. After the last test, its database must satisfy
 * the invariants.
 */
export function useFaultCluster(
  options: Omit<ClusterOptions, "postgres" | "reservationSeconds">,
  clock = hasFakeTime(),
  vouchers = 5_000,
) {
  const own = makeMembers();

  beforeAll(async () => {
    // Reservations last longer than every test.
    const cluster = await openCluster({ ...options, postgres: { standby: true, clock }, reservationSeconds: 120 });
    const [api, otherApi] = cluster.apis as [ApiProcess, ApiProcess];
    Object.assign(own, {
      cluster,
      postgres: embedded(cluster.postgres),
      api,
      otherApi,
      ...(await supply(cluster, vouchers)),
    });
    await own.makeWhole();
  });

  afterEach(async () => {
    if (clock) await own.postgres.clock.set(0);
    await own.makeWhole();
  });

  afterAll(async () => {
    expect(own.cluster.accidents).toEqual([]);
    await assertInvariants(own.cluster.db).finally(() => own.cluster.close());
  });

  return own;
}
