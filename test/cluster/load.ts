import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { findShard, listShards, shardOf, slotOf } from "../../src/queues/shards.ts";
import type { PartnerClient } from "../support/client.ts";
import type { ClusterNode, TestCluster } from "../support/redis-cluster.ts";
import type { TestServers } from "../support/servers.ts";
import { issueVouchers, type TestPartner } from "../support/supply.ts";

/** The number of shards of the tests' services. */
export const SHARDS = 6;

/** One answer to a redeem. Times are in milliseconds. */
interface Answer {
  externalRef: string;
  shard: number;
  status: number;
  code: string;
  sentAt: number;
  answeredAt: number;
  /** Null unless redeemed. */
  redeemedAt: number | null;
}

/** Partners that redeem one voucher after another, and repeat a 503 with the same reference until they get a result. */
export interface Load {
  answers: Answer[];
  /** Finishes the calls in progress. */
  finish(): Promise<void>;
  /** Finishes the calls in progress and compares every answer with the database. */
  end(): Promise<void>;
}

/** Starts partners that call any of `tills`. With `shards`, they redeem only vouchers of these. They begin with `vouchers`. */
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
        const till = tills[turn % tills.length] as PartnerClient;
        const sentAt = Date.now();
        const { status, body } = await till.redeem({ code, externalRef: id });
        const redeemedAt = status === 200 ? Date.parse(body.redeemedAt) : null;
        const shard = shardOf(id, SHARDS);
        answers.push({ externalRef: id, shard, status, code: body.code, sentAt, answeredAt: Date.now(), redeemedAt });
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

/** The confirmed references that the database does not have. */
export async function findMissing({ db }: Pick<TestServers, "db">, answers: readonly Answer[]): Promise<string[]> {
  const refs = answers.filter(({ status }) => status === 200).map(({ externalRef }) => externalRef);
  const { rows } = await db.query<{ ref: string }>(
    "SELECT ref FROM unnest($1::text[]) AS ref WHERE NOT EXISTS (SELECT FROM redemptions WHERE external_ref = ref)",
    [refs],
  );
  return rows.map(({ ref }) => ref);
}

/** Every confirmed reference has exactly one redemption, of its own voucher, and no answer of `redeem_timeout` was wrong. */
async function compare(servers: Pick<TestServers, "db">, answers: readonly Answer[]): Promise<void> {
  const confirmed = answers.filter(({ status }) => status === 200);
  const refs = confirmed.map(({ externalRef }) => externalRef);
  const { rows } = await servers.db.query<{ ref: string; voucher: string; at: Date }>(
    "SELECT external_ref AS ref, voucher_id AS voucher, redeemed_at AS at FROM redemptions WHERE external_ref = ANY($1)",
    [refs],
  );
  expect(rows.filter(({ ref, voucher }) => ref !== voucher)).toEqual([]);
  expect(new Set(rows.map(({ ref }) => ref)).size).toBe(refs.length);
  const redeemedAt = new Map(rows.map(({ ref, at }) => [ref, at.getTime()]));
  const untrue = answers.filter(
    ({ externalRef, code, sentAt }) => code === "redeem_timeout" && (redeemedAt.get(externalRef) ?? Infinity) < sentAt,
  );
  expect(untrue).toEqual([]);
}

/** The longest time in which no partner got a voucher of this shard redeemed, or of any shard if it is null. Milliseconds. */
export function longestGap(answers: readonly Answer[], shard: number | null, from: number): number {
  const times = answers
    .filter((answer) => (shard === null || answer.shard === shard) && answer.status === 200)
    .map((answer) => answer.answeredAt);
  const relevant = [from, ...times.filter((time) => time >= from).sort((one, other) => one - other)];
  return Math.max(...relevant.slice(1).map((time, index) => time - (relevant[index] as number)));
}

/** The answers whose calls began in a span of time. */
export function during(answers: readonly Answer[], from: number, to = Infinity): Answer[] {
  return answers.filter(({ sentAt }) => sentAt >= from && sentAt < to);
}

/** The slot of a shard. */
export function slotOfShard(servers: TestServers, index: number, count = SHARDS): number {
  return slotOf(findShard(servers.deploymentId, index, count).prefix.slice(1, -1));
}

/** The shards that a node carries now. */
export async function shardsOn(cluster: TestCluster, servers: TestServers, node: ClusterNode): Promise<number[]> {
  const owners = await Promise.all(
    listShards(servers.deploymentId, SHARDS).map(({ index }) => cluster.masterOf(slotOfShard(servers, index))),
  );
  return owners.flatMap((owner, index) => (owner === node ? [index] : []));
}
