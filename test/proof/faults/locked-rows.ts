import { Redis } from "ioredis";
import { listShards } from "../../../src/platform/queues/shards.ts";
import { slotOf } from "../../../src/platform/redis/slots.ts";
import { besideTransaction } from "../../support/outside-transaction.ts";
import { until } from "../../support/until.ts";
import { CLUSTER_SHARDS, type Cluster } from "./cluster.ts";
import { type Fault, GATHER_MS, type Scene, target } from "./fault-target.ts";
import { killBeforeStale } from "./redis-faults.ts";

type LockedAction = "deliverAgain" | "restoreRedis" | "loseRedisTail" | "promoteStale";

/** How long deliveries wait before the same job is delivered again. Milliseconds. */
const AGAIN_MS = 400;
/** Time for the last deliveries to reach their locked rows. Milliseconds. */
const DELIVERED_MS = 300;

/**
 * Other sessions lock the next vouchers. While the vouchers' jobs wait for the locks, or after they gave up, Redis
 * delivers them again, as after a stall or a loss. Then the locks end. All answers sent until then must stay true.
 */
const lockedRows = (weights: Partial<Record<LockedAction, number>>) =>
  target<LockedAction>(
    6_000,
    (random) => ({
      action: random.weigh(weights as Record<LockedAction, number>),
      // Some locks last longer than the 1.5 s for which a job waits.
      forMs: random.between(1_200, 2_600),
    }),
    (scene, fault) =>
      scene.postgresTurn(() =>
        scene.redisTurn(async () => {
          const { db, redisCluster } = scene.cluster;
          await until(() => db.query("SELECT 1").catch(() => null));
          await besideTransaction(db, async (outside) => {
            const lock = "SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED";
            await outside.query(lock, [scene.upcomingVouchers()]);
            await scene.pause(GATHER_MS);
            await bringBack(scene, fault);
            // Does at once what BullMQ does after the jobs' locks in Redis have expired.
            await deliverAgain(scene.cluster);
            await scene.pause(DELIVERED_MS);
          });
          return redisCluster?.heal();
        }),
      ),
  );

/** Waits until the first deliveries have given up, and returns their jobs to the queue. */
async function bringBack({ cluster, random, pause }: Scene, { action, forMs }: Fault<LockedAction>): Promise<void> {
  const { redis, redisCluster } = cluster;
  if (action === "deliverAgain") {
    for (let passedMs = 0; passedMs < forMs; passedMs += AGAIN_MS) {
      await deliverAgain(cluster);
      await pause(AGAIN_MS);
    }
    return;
  }
  if (action === "promoteStale") {
    if (redisCluster === null) throw new Error("there is no Redis Cluster");
    const master = random.pick(await redisCluster.masters());
    await pause(forMs);
    await killBeforeStale(redisCluster, master, pause);
    await until(async () => (await redisCluster.masters()).every((node) => node !== master));
    return;
  }
  if (action === "restoreRedis") redis.keepFiles();
  await pause(forMs);
  await redis.kill(action === "restoreRedis" ? "SinceKept" : "AppendOnlyTail");
  await redis.start();
}

export const lockedRowsTarget = lockedRows({ deliverAgain: 3, restoreRedis: 2, loseRedisTail: 2 });
export const lockedRowsOnClusterTarget = lockedRows({ deliverAgain: 2, promoteStale: 1 });

/** Returns the workers' jobs to the queue, as BullMQ does after the jobs' locks have expired. Returns their number. */
export async function deliverAgain(cluster: Pick<Cluster, "db" | "redis" | "redisCluster">): Promise<number> {
  const { db, redis, redisCluster } = cluster;
  const { rows } = await db.query<{ id: string }>("SELECT id FROM deployment");
  const shards = listShards(rows[0]?.id ?? "", redisCluster === null ? 1 : CLUSTER_SHARDS);
  let count = 0;
  for (const { prefix } of shards) {
    const own = redisCluster === null ? new Redis(redis.url) : null;
    const client = own ?? (await redisCluster?.masterOf(slotOf(prefix.slice(1, -1))))?.client;
    count += Number(await client?.eval(DELIVER_AGAIN, 0, `${prefix}:redeem:`));
    own?.disconnect();
  }
  return count;
}

const DELIVER_AGAIN = `
  local active = redis.call('LRANGE', ARGV[1] .. 'active', 0, -1)
  for _, id in ipairs(active) do
    redis.call('LREM', ARGV[1] .. 'active', 1, id)
    redis.call('DEL', ARGV[1] .. id .. ':lock')
    redis.call('SREM', ARGV[1] .. 'stalled', id)
    redis.call('RPUSH', ARGV[1] .. 'wait', id)
    redis.call('ZADD', ARGV[1] .. 'marker', 0, '0')
  end
  return #active`;
