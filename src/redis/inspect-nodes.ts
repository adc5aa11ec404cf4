import { Redis } from "ioredis";
import { parseRedisUrl } from "./addresses.ts";

/** What the server at one address of REDIS_URL says about its cluster. */
interface NodeView {
  /** `host:port`. */
  address: string;
  /** The ids of all nodes of the cluster. Empty when the server belongs to no cluster; null when it does not respond. */
  nodeIds: string[] | null;
  /** The number of slots of each master that has any. */
  masterSlots: number[];
}

/** Longest wait for a connection, and for each response. Milliseconds. */
const WAIT_MAX_MS = 5_000;

/**
 * Asks each server that REDIS_URL names, if it names several. Does not reject when a server fails.
 * @throws BadRedisUrl
 */
export async function inspectNodes(redisUrl: string): Promise<NodeView[]> {
  const urls = parseRedisUrl(redisUrl);
  return urls.length === 1 ? [] : Promise.all(urls.map(inspectNode));
}

async function inspectNode(url: URL): Promise<NodeView> {
  const address = `${url.hostname}:${url.port || 6379}`;
  const redis = new Redis(url.href, {
    lazyConnect: true,
    connectTimeout: WAIT_MAX_MS,
    commandTimeout: WAIT_MAX_MS,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
  });
  redis.on("error", () => undefined);
  try {
    await redis.connect();
    if (!/^cluster_enabled:1/m.test(await redis.info("cluster"))) return { address, nodeIds: [], masterSlots: [] };
    // The fields of a line: id, address, flags, master, two times, epoch, link state, and from index 8 on the slots of a master.
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

/** Counts slots such as `0-5460` and `77`. Ignores slots in migration, in brackets: their owner also lists them without brackets. */
function countSlots(ranges: readonly string[]): number {
  return ranges
    .filter((range) => !range.startsWith("["))
    .map((range) => range.split("-").map(Number))
    .reduce((sum, [from = 0, to = from]) => sum + to - from + 1, 0);
}
