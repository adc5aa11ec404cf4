import { Redis } from "ioredis";
import { parseRedisUrl } from "./addresses.ts";

/** What the server at one address of REDIS_URL says about its cluster. */
export interface NodeView {
  /** `host:port`. */
  address: string;
  /** Null when the server does not answer; otherwise the ids of all nodes, or none when the server belongs to no cluster. */
  nodeIds: string[] | null;
  /** The number of slots of each master that has any. */
  masterSlots: number[];
}

/** Longest wait for a server. Milliseconds. */
const ANSWER_MS = 5_000;

/** Asks each server that REDIS_URL names, if it names several. Never rejects. */
export async function inspectNodes(redisUrl: string): Promise<NodeView[]> {
  const urls = parseRedisUrl(redisUrl);
  return urls.length === 1 ? [] : Promise.all(urls.map(inspectNode));
}

async function inspectNode(url: URL): Promise<NodeView> {
  const address = `${url.hostname}:${url.port || 6379}`;
  const redis = new Redis(url.href, {
    lazyConnect: true,
    connectTimeout: ANSWER_MS,
    commandTimeout: ANSWER_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    if (!/^cluster_enabled:1/m.test(await redis.info("cluster"))) return { address, nodeIds: [], masterSlots: [] };
    // id, address, flags, master, two times, epoch, link, and the slots of a master.
    const lines = String(await redis.cluster("NODES"))
      .trim()
      .split("\n");
    const nodes = lines.map((line) => line.split(" "));
    return {
      address,
      nodeIds: nodes.map(([id = ""]) => id),
      masterSlots: nodes.map((fields) => countSlots(fields.slice(8))).filter((count) => count > 0),
    };
  } catch {
    return { address, nodeIds: null, masterSlots: [] };
  } finally {
    redis.disconnect();
  }
}

/** Counts slots such as `0-5460` and `77`. Ignores those that are moving, in brackets: their owner also lists them. */
function countSlots(ranges: readonly string[]): number {
  return ranges
    .filter((range) => !range.startsWith("["))
    .map((range) => range.split("-").map(Number))
    .reduce((sum, [from = 0, to = from]) => sum + to - from + 1, 0);
}
