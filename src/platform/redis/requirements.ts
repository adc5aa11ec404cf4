import { type Check, type Checked, runCheck } from "../checks.ts";
import { SLOTS } from "./slots.ts";
import { lacksRights, type ServerView, type Viewed, viewServers } from "./view-servers.ts";

/** What the servers of REDIS_URL report, if they answer, and the processes' QUEUE_SHARDS. */
interface Facts {
  named: readonly Viewed[];
  shards: number;
}

/** The oldest release of Redis with sharded channels, which carry workers' replies. */
const VERSION_MIN = 7;

const ACCESS: Check<Viewed> = {
  what: "access",
  wanted: "permitted",
  why: "Each address must lead to a Redis, with TLS and a user that it knows.",
  query: (server) => (stateOf(server) === "unusable" ? "refused" : "permitted"),
  sentence: (_, server) => reasonOf(server),
  code: "redis_unusable",
  effect: "refused",
};

const ROOM: Check<Viewed> = {
  what: "room",
  wanted: "for each connection",
  why: "Each process has several connections.",
  query: (server) => (stateOf(server) === "full" ? "none" : "for each connection"),
  sentence: (_, server) => reasonOf(server),
  code: "redis_full",
  effect: "waits",
};

const ANSWER: Check<Viewed> = {
  what: "answer",
  wanted: "every server",
  why: "A server that is away stops the jobs and reservations that it keeps.",
  query: (server) => (stateOf(server) === "silent" ? `none from ${server.address}` : "every server"),
  sentence: (_, server) =>
    `The Redis server ${server.address}, to which REDIS_URL leads, does not answer: ${reasonOf(server)}.`,
  code: "redis_node_silent",
  effect: "risk",
};

/** Requirements for all addresses together. */
const TOGETHER: readonly Check<Facts>[] = [
  {
    what: "kind",
    wanted: "one server, or nodes of one cluster",
    why: "A Redis Cluster is used with one connection to each master. One address of it is enough.",
    query: ({ named }) => each(named.flatMap(({ view }) => view ?? []).map(kindOf)),
    isMet: (_, { named }) => named.length === 1 || strayOf(named) === undefined,
    sentence: (_, { named }) =>
      `REDIS_URL names several servers, but ${strayOf(named)?.address} is not a node of a Redis Cluster. Name nodes ` +
      "of one cluster, or a single server.",
    code: "redis_no_cluster",
    effect: "refused",
  },
  {
    what: "cluster",
    wanted: "the same for every address",
    why: "Processes find each other's jobs.",
    query: ({ named }) => (strangerOf(named) === undefined ? "the same for every address" : "several"),
    sentence: (_, { named }) =>
      `REDIS_URL names nodes of different clusters: ${clustersOf(named)[0]?.address} and ` +
      `${strangerOf(named)?.address} do not know each other. Processes would not find each other's jobs.`,
    code: "redis_other_cluster",
    effect: "refused",
  },
  {
    what: "slots without a master",
    wanted: "0",
    why: "Each slot of a cluster keeps jobs and leases.",
    query: ({ named }) => String(missingSlotsOf(named)),
    sentence: (missing, { named }) =>
      `${missing} of the ${SLOTS} slots of the Redis Cluster have no master. Jobs and leases in them cannot be used. ` +
      `Run: redis-cli --cluster fix ${clustersOf(named)[0]?.address}`,
    code: "redis_slots",
    effect: "risk",
  },
  {
    what: "shards (QUEUE_SHARDS)",
    wanted: "a multiple of the masters",
    why: "Each master of a cluster gets as much work as the others.",
    query: ({ shards }) => String(shards),
    isMet: (_, { named, shards }) => shards % Math.max(1, mastersOf(named)) === 0,
    sentence: (shards, { named }) =>
      `QUEUE_SHARDS is ${shards}, which is not a multiple of the ${mastersOf(named)} masters of the Redis Cluster: ` +
      `some get more work than others. Use ${Math.ceil(Number(shards) / mastersOf(named)) * mastersOf(named)}.`,
    code: "redis_shards",
    effect: "risk",
  },
];

/** Requirements for each server. */
const SERVER: readonly Check<ServerView>[] = [
  {
    what: "version",
    wanted: `${VERSION_MIN} or newer`,
    why: "Replies travel on sharded channels, which Redis 7 introduced.",
    query: ({ read }) => read("redis_version"),
    isMet: (version) => Number.parseInt(version, 10) >= VERSION_MIN,
    sentence: (version, { address }) =>
      `Redis at ${address} is version ${version}. Install Redis ${VERSION_MIN} or newer.`,
    code: "redis_version",
    effect: "refused",
  },
  {
    what: "role",
    wanted: "primary",
    why: "A replica takes no writes, or loses them.",
    query: roleOf,
    isMet: (role, { cluster }) => role === "primary" || cluster !== null,
    sentence: (_, { address, read }) =>
      `REDIS_URL leads to a replica, ${address}. It must lead to the primary, ${read("master_host")}:` +
      `${read("master_port")}; or promote the replica: REPLICAOF NO ONE`,
    code: "redis_replica",
    effect: "waits",
  },
  {
    what: "commands",
    wanted: "all permitted",
    why: "The user of REDIS_URL must be permitted every command that the service and its queues run.",
    query: ({ missingRights }) => missingRights.join(" ") || "all permitted",
    sentence: (_, { address, user, missingRights }) => lacksRights(address, user, missingRights),
    code: "redis_rights",
    effect: "refused",
  },
  {
    what: "writes",
    wanted: "accepted",
    why: "A reservation and a job are written.",
    query: ({ refusal }) => refusal ?? "accepted",
    // Met if a right is missing or the server is a replica, because other requirements report these.
    isMet: (value, view) =>
      value === "accepted" || view.missingRights.length > 0 || (view.cluster === null && roleOf(view) === "replica"),
    sentence: (refusal, { address }) => `Redis at ${address} ${refuses(refusal)}`,
    code: "redis_refuses",
    effect: "waits",
  },
  {
    what: "persistence (appendonly)",
    wanted: "yes",
    why: "Jobs and leases survive a restart.",
    query: ({ read }) => (read("aof_enabled") === "1" ? "yes" : "no"),
    sentence: () =>
      "Redis has appendonly = no: a restart loses waiting jobs and leases. No redemption is lost, but callers wait " +
      "and retry. Set appendonly to yes, if the server has it.",
    code: "redis_without_aof",
    effect: "risk",
  },
  {
    what: "eviction (maxmemory-policy)",
    wanted: "noeviction",
    why: "An evicted job never runs.",
    query: ({ read }) => read("maxmemory_policy"),
    isMet: (policy) => policy === "noeviction" || policy === "",
    sentence: (policy) =>
      `Redis has maxmemory-policy = ${policy}: when memory is full it deletes jobs and leases. Set it to noeviction.`,
    code: "redis_evicts",
    effect: "risk",
  },
];

/** The sentence about a Redis that does not answer. */
export const NO_REDIS = "No answer from Redis.";

/** Ends a sentence about a server. `words` is the server's own message. */
export const refuses = (words: string) => `refuses writes: ${words}`;

const stateOf = (server: Viewed) => (server.view === null ? server.state : null);
const reasonOf = (server: Viewed) => (server.view === null ? server.reason : "");
const kindOf = ({ cluster }: ServerView) => (cluster === null ? "one server" : "Redis Cluster");
const each = (values: readonly string[]) => [...new Set(values)].join(", ") || "unknown";

function roleOf({ read }: ServerView): string {
  return read("role") === "slave" ? "replica" : "primary";
}

/** An address whose server belongs to no cluster. */
const strayOf = (named: readonly Viewed[]) => named.find(({ view }) => view !== null && view.cluster === null);

const clustersOf = (named: readonly Viewed[]) =>
  named.flatMap(({ address, view }) => (view?.cluster ? [{ address, ...view.cluster }] : []));

/** A node that knows none of the nodes that the first node knows. */
function strangerOf(named: readonly Viewed[]) {
  const [known, ...others] = clustersOf(named);
  return others.find(({ ids }) => !ids.some((id) => known?.ids.includes(id)));
}

const mastersOf = (named: readonly Viewed[]) => clustersOf(named)[0]?.masters.length ?? 0;

function missingSlotsOf(named: readonly Viewed[]): number {
  const [known] = clustersOf(named);
  const ranges = known?.masters.flatMap(({ slots }) => slots) ?? [[0, SLOTS - 1] as const];
  return SLOTS - ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** The results of checking the servers of REDIS_URL. */
export interface RedisCheck {
  rows: Checked[];
  /** Whether any server answered. A permanent refusal counts as an answer. */
  answered: boolean;
  /** Whether the servers are nodes of a Redis Cluster. Null if none answered. */
  isCluster: boolean | null;
}

/** Checks the servers of REDIS_URL. Does not reject when a server fails. @throws BadRedisUrl */
export async function checkRedis(redisUrl: string, shards: number, maxMs?: number): Promise<RedisCheck> {
  const { named, others } = await viewServers(redisUrl, maxMs);
  const servers = [...named, ...others];
  const views = servers.flatMap(({ view }) => view ?? []);
  return {
    rows: [
      ...[ACCESS, ROOM, ANSWER].map((check) => runCheck(check, servers)),
      ...TOGETHER.map((check) => runCheck(check, [{ named, shards }])),
      ...SERVER.map((check) => runCheck(check, views)),
    ],
    answered: named.some((server) => server.view !== null || server.state === "unusable"),
    isCluster: views.length === 0 ? null : views.some(({ cluster }) => cluster !== null),
  };
}
