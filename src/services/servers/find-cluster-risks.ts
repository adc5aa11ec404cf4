import { SLOTS } from "../../queues/shards.ts";
import { inspectNodes } from "../../redis/inspect-nodes.ts";

/** A mismatch between REDIS_URL or QUEUE_SHARDS and the Redis servers. */
export interface ClusterRisk {
  code: "redis_node_silent" | "redis_no_cluster" | "redis_other_cluster" | "redis_slots" | "redis_shards";
  /** What goes wrong, and what to change. */
  message: string;
}

/** If REDIS_URL names several servers, asks each one about its cluster. A server that does not respond is a risk, not an error. */
export async function findClusterRisks(redisUrl: string, shards: number): Promise<ClusterRisk[]> {
  const nodes = await inspectNodes(redisUrl);
  const risks: ClusterRisk[] = [];
  for (const { address } of nodes.filter(({ nodeIds }) => nodeIds === null)) {
    risks.push({
      code: "redis_node_silent",
      message: `The Redis server ${address}, which REDIS_URL names, does not answer.`,
    });
  }
  for (const { address } of nodes.filter(({ nodeIds }) => nodeIds?.length === 0)) {
    const message = `REDIS_URL names several servers, but ${address} is not a node of a Redis Cluster. Name nodes of one cluster, or a single server.`;
    risks.push({ code: "redis_no_cluster", message });
  }
  const members = nodes.filter(({ nodeIds }) => nodeIds !== null && nodeIds.length > 0);
  const [known, ...others] = members;
  if (known === undefined) return risks;
  for (const { address } of others.filter(({ nodeIds }) => !nodeIds?.some((id) => known.nodeIds?.includes(id)))) {
    const message = `REDIS_URL names nodes of different clusters: ${known.address} and ${address} do not know each other. Processes would not find each other's jobs.`;
    risks.push({ code: "redis_other_cluster", message });
  }
  const missing = SLOTS - known.masterSlots.reduce((sum, count) => sum + count, 0);
  if (missing > 0) {
    const message = `${missing} of the ${SLOTS} slots of the Redis Cluster have no master. Jobs and leases in them cannot be used; run redis-cli --cluster fix.`;
    risks.push({ code: "redis_slots", message });
  }
  const masters = known.masterSlots.length;
  if (masters > 0 && shards % masters !== 0) {
    const message = `QUEUE_SHARDS is ${shards}, which is not a multiple of the ${masters} masters of the Redis Cluster: some get more work than others. Use ${Math.ceil(shards / masters) * masters}.`;
    risks.push({ code: "redis_shards", message });
  }
  return risks;
}
