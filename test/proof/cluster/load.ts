import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { findShard, shardOf } from "../../../src/platform/queues/shards.ts";
import { slotOf } from "../../../src/platform/redis/slots.ts";
import { type PartnerClient, partnerClient } from "../../support/client.ts";
import { type ClusterNode, startRedisCluster, type TestCluster } from "../../support/redis-cluster.ts";
import { openTestServers, type TestServers } from "../../support/servers.ts";
import { endService, startApi, startWorkers, type TestApi, type TestWorker } from "../../support/service.ts";
import { issueVouchers, makeKey, makePartner, type TestPartner } from "../../support/supply.ts";

/** The number of shards of the tests' services. */
export const SHARDS = 6;

/** A Redis Cluster, with a service and a partner for a test file. */
export interface ClusterService {
  cluster: TestCluster;
  servers: TestServers;
  env: Record<string, string>;
  apis: TestApi[];
  workers: TestWorker[];
  partner: TestPartner;
  key: string;
  /** Clients that use the key, one for each API. */
  tills: PartnerClient[];
}

/**
 * Starts the cluster and the service before the tests of the calling file, and closes them afterwards. Only tests and
 * hooks may use what this returns.
 */
export function useCluster({ apis = 0, workers = 0, env: more = {} as Record<string, string> } = {}): ClusterService {
  const own = {} as ClusterService;
  beforeAll(async () => {
    const [cluster, servers] = await Promise.all([startRedisCluster(), openTestServers()]);
    const env = { REDIS_URL: cluster.url, QUEUE_SHARDS: String(SHARDS), ...more };
    const times = <T>(count: number, start: () => Promise<T>) => Promise.all(Array.from({ length: count }, start));
    const [started, working] = await Promise.all([
      times(apis, () => startApi(servers, env)),
      times(workers, () => startWorkers(servers, env)),
    ]);
    const partner = await makePartner(servers.db);
    const { key } = await makeKey(servers.db, partner.organizationId);
    const tills = started.map(({ url }) => partnerClient(url, key));
    Object.assign(own, { cluster, servers, env, partner, key, apis: started, workers: working, tills });
  });
  afterAll(async () => {
    await endService(own.servers);
    await own.cluster.close();
  });
  return own;
}

/** One answer to a redeem. Times are in milliseconds. */
interface Answer {
  externalRef: string;
  shard: number;
  till: number;
  status: number;
  code: string;
  sentAt: number;
  answeredAt: number;
}

/**
 * Partners that redeem one voucher after another. They repeat a call after a 503, with the same reference, until they
 * get a result.
 */
export interface Load {
  answers: Answer[];
  finish(): Promise<void>;
  /** Finishes the running calls and compares every answer with the database. */
  end(): Promise<void>;
}

/**
 * Starts partners whose calls go to `tills` in turn. With `shards`, they redeem only vouchers of these shards. They
 * redeem `vouchers` first.
 */
export async function startLoad(
  servers: Pick<TestServers, "db">,
  partner: TestPartner,
  tills: readonly PartnerClient[],
  { partners = 12, shards = null as number[] | null, vouchers = [] as readonly { id: string; code: string }[] } = {},
): Promise<Load> {
  const answers: Answer[] = [];
  const supply = [...vouchers];
  let ended = false;
  const refill = async () => {
    const issued = await issueVouchers(servers.db, partner, 500);
    supply.push(...issued.filter(({ id }) => shards?.includes(shardOf(id, SHARDS)) ?? true));
  };
  if (supply.length === 0) await refill();
  let refilling: Promise<void> | null = null;
  const next = async () => {
    while (supply.length < 50) {
      refilling ??= refill().finally(() => {
        refilling = null;
      });
      await refilling;
    }
    return supply.pop() as { id: string; code: string };
  };
  const work = async (number: number) => {
    for (let turn = number; !ended; turn++) {
      const { id, code } = await next();
      for (;;) {
        const till = turn % tills.length;
        const sentAt = Date.now();
        const { status, body } = await (tills[till] as PartnerClient).redeem({ code, externalRef: id });
        const shard = shardOf(id, SHARDS);
        answers.push({ externalRef: id, shard, till, status, code: body.code, sentAt, answeredAt: Date.now() });
        if (status === 200) break;
        expect({ status, code: body.code }).toMatchObject({ status: 503 });
        await sleep(100);
      }
    }
  };
  const working = Array.from({ length: partners }, (_, number) => work(number));
  const finish = async () => {
    ended = true;
    await Promise.all(working);
  };
  return {
    answers,
    finish,
    async end() {
      await finish();
      await compare(servers, answers);
    },
  };
}

/** Finds the confirmed references that are not in the database. */
export async function findMissing({ db }: Pick<TestServers, "db">, answers: readonly Answer[]): Promise<string[]> {
  const refs = answers.filter(({ status }) => status === 200).map(({ externalRef }) => externalRef);
  const { rows } = await db.query<{ ref: string }>(
    "SELECT ref FROM unnest($1::text[]) AS ref WHERE NOT EXISTS (SELECT FROM redemptions WHERE external_ref = ref)",
    [refs],
  );
  return rows.map(({ ref }) => ref);
}

/** Expects one redemption of the right voucher per confirmed reference, and no `redeem_timeout` to a later call. */
async function compare({ db }: Pick<TestServers, "db">, answers: readonly Answer[]): Promise<void> {
  const refs = answers.filter(({ status }) => status === 200).map(({ externalRef }) => externalRef);
  const { rows } = await db.query<{ ref: string; voucher: string; at: Date }>(
    `SELECT external_ref AS ref, voucher_id AS voucher, redeemed_at AS at FROM redemptions
      WHERE external_ref = ANY ($1)`,
    [refs],
  );
  expect(rows.filter(({ ref, voucher }) => ref !== voucher)).toEqual([]);
  const redeemedAt = new Map(rows.map(({ ref, at }) => [ref, at.getTime()]));
  expect(redeemedAt.size).toBe(refs.length);
  const untrue = answers.filter(
    ({ externalRef, code, sentAt }) => code === "redeem_timeout" && (redeemedAt.get(externalRef) ?? Infinity) < sentAt,
  );
  expect(untrue).toEqual([]);
}

/**
 * Returns the longest time without a redemption of a shard, from `from` to the last answer of any shard. Null means all
 * shards together. Infinity without any redemption. Milliseconds.
 */
export function longestGap(answers: readonly Answer[], shard: number | null, from: number): number {
  const relevant = answers.filter((one) => (shard === null || one.shard === shard) && one.status === 200);
  const times = relevant.map(({ answeredAt }) => answeredAt).filter((time) => time >= from);
  if (times.length === 0) return Number.POSITIVE_INFINITY;
  const until = Math.max(...answers.map(({ answeredAt }) => answeredAt));
  const sorted = [from, ...times, until].sort((one, other) => one - other);
  return Math.max(...sorted.slice(1).map((time, index) => time - (sorted[index] as number)));
}

/** The answers to calls that began at this time or later. */
export function since(answers: readonly Answer[], from: number): Answer[] {
  return answers.filter(({ sentAt }) => sentAt >= from);
}

/** The slot of a shard. */
export function slotOfShard({ deploymentId }: TestServers, index: number): number {
  return slotOf(findShard(deploymentId, index, SHARDS).prefix.slice(1, -1));
}

/** Finds the shards that a node serves now. */
export async function shardsOn({ cluster, servers }: ClusterService, node: ClusterNode): Promise<number[]> {
  const shards = Array.from({ length: SHARDS }, (_, index) => index);
  const owners = await Promise.all(shards.map((index) => cluster.masterOf(slotOfShard(servers, index))));
  return shards.filter((index) => owners[index] === node);
}
