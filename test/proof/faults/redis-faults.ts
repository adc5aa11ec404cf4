import type { ClusterNode, TestCluster } from "../../support/redis-cluster.ts";
import { GATHER_MS, type Scene, takeover, target } from "./fault-target.ts";

export const redisTarget = target(
  4_000,
  (random) => {
    const weights = { kill: 2, killAndLoseTail: 3, killAndLoseEverything: 1, freeze: 3, failOver: 1 };
    const action = random.weigh(weights);
    // A failover lasts so long that callers get answers before it ends.
    return { action, forMs: action === "failOver" ? random.between(3_500, 5_000) : random.between(0, 1_200) };
  },
  ({ cluster: { redis, replica, workerWire }, pause, redisTurn }, { action, forMs }) =>
    redisTurn(async () => {
      if (action === "failOver") {
        // At first only the workers use the new primary, and the API processes stay with the old one.
        await replica.start();
        await replica.follow(redis);
        workerWire.jam();
        await pause(GATHER_MS);
        await replica.promote();
        workerWire.lead(replica.url);
        await pause(forMs);
        workerWire.lead(redis.url);
        return replica.kill("Everything");
      }
      if (action === "freeze") redis.freeze();
      if (action === "kill") await redis.kill("Nothing");
      if (action === "killAndLoseTail") await redis.kill("AppendOnlyTail");
      if (action === "killAndLoseEverything") await redis.kill("Everything");
      await pause(forMs);
      redis.thaw();
      return redis.start();
    }),
);

export const redisClusterTarget = target(
  6_000,
  (random) => {
    const weights = { killMaster: 3, killReplyMaster: 2, freezeMaster: 2, promoteStale: 3, moveSlots: 2 };
    return { action: random.weigh(weights), forMs: takeover(random) };
  },
  ({ cluster: { redisCluster }, random, pause, redisTurn }, { action, forMs }) =>
    redisTurn(async () => {
      if (redisCluster === null) throw new Error("there is no Redis Cluster");
      const masters = await redisCluster.masters();
      const anyMaster = random.pick(masters);
      if (action === "moveSlots") {
        // Most keys belong to queues.
        const key = await anyMaster.client.randomkey();
        if (key === null) return false;
        const slot = await anyMaster.client.cluster("KEYSLOT", key);
        return redisCluster.moveSlots([slot], random.pick(masters.filter((master) => master !== anyMaster)));
      }
      if (action === "freezeMaster") anyMaster.freeze();
      if (action === "killMaster") await anyMaster.kill();
      if (action === "killReplyMaster") {
        // Finds the master through which API processes get replies.
        const list = ["SHARDCHANNELS", "vouchers:replies:*"];
        const channels = await Promise.all(masters.map(({ client }) => client.call("PUBSUB", ...list)));
        await (masters.find((_, index) => (channels[index] as string[]).length > 0) ?? anyMaster).kill();
      }
      if (action === "promoteStale") await killBeforeStale(redisCluster, anyMaster, pause);
      await pause(forMs);
      return redisCluster.heal();
    }),
);

/** Kills a master whose replica lacks its last writes and will take over. */
export async function killBeforeStale(
  redisCluster: TestCluster,
  master: ClusterNode,
  pause: Scene["pause"],
): Promise<void> {
  const replica = await redisCluster.replicaOf(master);
  replica.freeze();
  await master.client.call("CLIENT", "KILL", "TYPE", "replica");
  await pause(GATHER_MS);
  await master.kill();
  replica.thaw();
}
