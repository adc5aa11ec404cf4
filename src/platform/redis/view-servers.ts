import type { Redis } from "ioredis";
import pTimeout from "p-timeout";
import { parseRedisUrl } from "./addresses.ts";
import { findMissingRights } from "./commands.ts";
import { addressOf, connectOnce, UnusableRedis } from "./connect-once.ts";
import { probeWrites } from "./probe-writes.ts";
import { SLOTS, slotOf } from "./slots.ts";

/** What a server reports about itself to the user of REDIS_URL. */
export interface ServerView {
  /** `host:port`. */
  address: string;
  /** The user of REDIS_URL. */
  user: string;
  /** Returns a field of INFO. Empty if the server does not send it. */
  read(field: string): string;
  /** Access rules that the user lacks. */
  missingRights: string[];
  /** The server's message if it refuses a write, or null. */
  refusal: string | null;
  /** What a node reports about its cluster. Null if the server belongs to none. */
  cluster: { ids: string[]; masters: { id: string; address: string; slots: [from: number, to: number][] }[] } | null;
}

/** A server of REDIS_URL: its view, or the reason why there is none. */
export type Viewed =
  | { address: string; view: ServerView }
  | { address: string; view: null; state: "silent" | "full" | "unusable"; reason: string };

/** Maximum wait for a connection, and for each response. Milliseconds. */
const WAIT_MAX_MS = 5_000;

/**
 * Asks each server that REDIS_URL names and, in a cluster, also every other master. Does not reject when a server
 * fails.
 * @throws BadRedisUrl
 */
export async function viewServers(
  redisUrl: string,
  maxMs = WAIT_MAX_MS,
): Promise<{ named: Viewed[]; others: Viewed[] }> {
  const urls = parseRedisUrl(redisUrl);
  const named = await Promise.all(urls.map((url) => viewServer(url, maxMs)));
  const [first] = urls as [URL];
  const masters = named.flatMap(({ view }) => view?.cluster?.masters ?? []).map(({ address }) => address);
  const known = named.map(({ address }) => address);
  const unknown = [...new Set(masters)].filter((address) => !known.includes(address));
  return { named, others: await Promise.all(unknown.map((address) => viewServer(withAddress(first, address), maxMs))) };
}

function withAddress(url: URL, address: string): URL {
  const other = new URL(url);
  other.host = address;
  return other;
}

async function viewServer(url: URL, maxMs: number): Promise<Viewed> {
  const address = addressOf(url);
  try {
    // Limits the whole time, because the connection waits while Redis loads its files.
    const view = await pTimeout(
      connectOnce(url, maxMs, (redis) => readView(url, redis)),
      { milliseconds: maxMs, message: `no answer within ${maxMs / 1_000} seconds` },
    );
    return { address, view };
  } catch (error) {
    const state = !(error instanceof UnusableRedis) ? "silent" : error.mayPass ? "full" : "unusable";
    return { address, view: null, state, reason: (error as Error).message };
  }
}

async function readView(url: URL, redis: Redis): Promise<ServerView> {
  const user = decodeURIComponent(url.username) || "default";
  const info = await redis.info().catch((error: Error) => {
    throw error.message.startsWith("NOPERM") ? new UnusableRedis(lacksRights(addressOf(url), user, ["+info"])) : error;
  });
  const read = (field: string) => new RegExp(`^${field}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? "";
  const isNode = read("cluster_enabled") === "1";
  const cluster = isNode ? readCluster(url, await redis.cluster("NODES").then(String, () => "")) : null;
  const own = cluster?.masters.find(({ isSelf }) => isSelf);
  // Probes writes only with the server's own slots: in a cluster, only a master that has slots accepts writes.
  const slots = cluster === null ? ([0, SLOTS - 1] as const) : own?.slots[0];
  const refusal = slots === undefined ? null : await probeWrites(redis, `{${tagIn(slots)}}`);
  // Comes last, because it leaves the connection subscribed.
  const missingRights = await findMissingRights(redis, isNode);
  return { address: addressOf(url), user, read, missingRights, cluster, refusal };
}

/** A sentence with the rights that a user lacks, and the command that gives them. */
export function lacksRights(address: string, user: string, rules: readonly string[]): string {
  return `The user ${user} of Redis at ${address} lacks rights. Run: ACL SETUSER ${user} ${rules.join(" ")}`;
}

/**
 * Reads CLUSTER NODES. The fields of a line are: id, address, flags, master, two times, epoch, link state and, from
 * index 8 on, a master's slots. The address is `host:port@bus,name`. A missing host is that of the responding server.
 */
function readCluster(url: URL, nodes: string) {
  const lines = nodes
    .trim()
    .split("\n")
    .map((line) => line.split(" "));
  const masters = lines.map(([id = "", given = "", flags = "", ...fields]) => {
    const [, host = "", port = "", name = ""] = /^(.*):(\d+)(?:@\d+)?(?:,([^,]*))?/.exec(given) ?? [];
    const usesName = url.protocol === "rediss:" && name !== "";
    const chosen = (usesName ? name : host) || url.hostname;
    const address = `${chosen.includes(":") && !chosen.startsWith("[") ? `[${chosen}]` : chosen}:${port}`;
    return { id, address, isSelf: flags.includes("myself"), slots: readSlots(fields.slice(5)) };
  });
  return { ids: lines.map(([id = ""]) => id), masters: masters.filter(({ slots }) => slots.length > 0) };
}

/**
 * Reads slots such as `0-5460` and `77`. Ignores entries in brackets, which are slots in migration: their owner's line
 * also lists them without brackets.
 */
function readSlots(ranges: readonly string[]): [from: number, to: number][] {
  return ranges
    .filter((range) => !range.startsWith("["))
    .map((range) => {
      const [from = 0, to = from] = range.split("-").map(Number);
      return [from, to];
    });
}

/** A hash tag whose slot is in the range. */
function tagIn([from, to]: readonly [number, number]): string {
  for (let number = 0; ; number += 1) {
    const tag = `pva:probe:${number}`;
    const slot = slotOf(tag);
    if (slot >= from && slot <= to) return tag;
  }
}
