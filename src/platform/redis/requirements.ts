import { SLOTS } from "./slots.ts";
import { lacksRights, type ServerView, type Viewed, viewServers } from "./view-servers.ts";

/** A requirement that the servers do not meet. */
export interface Problem {
  code: string;
  /** What is wrong, and the setting or the command that mends it, as sentences for an operator. */
  message: string;
  /**
   * `refused`: no process can use the servers, and waiting does not help. `waits`: no process can use them now. `risk`:
   * work can get lost or slow.
   */
  effect: "refused" | "waits" | "risk";
}

/** One requirement, and what was found. */
interface Checked {
  name: string;
  why: string;
  wanted: string;
  /** What was found: each different value among the servers. */
  actual: string;
  problems: Problem[];
}

/** What the servers of REDIS_URL say, as far as they answer, and the processes' QUEUE_SHARDS. */
interface Facts {
  named: readonly Viewed[];
  others: readonly Viewed[];
  views: readonly ServerView[];
  shards: number;
}

interface Requirement {
  name: string;
  wanted: string;
  why: string;
  actual(facts: Facts): string;
  judge(facts: Facts): Iterable<Problem>;
}

/** The oldest release with sharded channels, on which replies travel. */
const VERSION_MIN = 7;

/** Everything that the code relies on in Redis. */
const REQUIREMENTS: readonly Requirement[] = [
  {
    name: "answer",
    wanted: "every server",
    why: "Every named server must be reached, with TLS and a user that it knows.",
    actual: ({ named, others }) => {
      const answering = [...named, ...others].filter(({ view }) => view !== null).length;
      return `${answering} of ${named.length + others.length} servers`;
    },
    *judge({ named, others }) {
      for (const server of [...named, ...others]) {
        if (server.view !== null) continue;
        const { address, isUnusable, reason } = server;
        if (isUnusable) yield { code: "redis_unusable", message: reason, effect: "refused" };
        else {
          const message = `The Redis server ${address}, to which REDIS_URL leads, does not answer: ${reason}.`;
          yield { code: "redis_node_silent", message, effect: "risk" };
        }
      }
    },
  },
  {
    name: "version",
    wanted: `${VERSION_MIN} or newer`,
    why: "Replies travel on sharded channels, which Redis 7 introduced.",
    actual: ({ views }) => each(views, ({ read }) => read("redis_version")),
    *judge({ views }) {
      for (const { address, read } of views) {
        const version = read("redis_version");
        if (Number.parseInt(version, 10) >= VERSION_MIN) continue;
        const message = `Redis at ${address} is version ${version}. Install Redis ${VERSION_MIN} or newer.`;
        yield { code: "redis_version", message, effect: "refused" };
      }
    },
  },
  {
    name: "kind",
    wanted: "one server, or nodes of one cluster",
    why:
      "A Redis Cluster is used with one connection to each master. One address is enough: the server says what it " +
      "is.",
    actual: ({ views }) => each(views, ({ cluster }) => (cluster === null ? "one server" : "Redis Cluster")),
    *judge(facts) {
      yield* judgeCluster(facts);
    },
  },
  {
    name: "role",
    wanted: "primary",
    why: "A replica takes no writes, or loses them.",
    actual: ({ views }) => each(views, ({ read }) => (read("role") === "slave" ? "replica" : "primary")),
    *judge({ views }) {
      for (const { address, cluster, read } of views) {
        if (cluster !== null || read("role") !== "slave") continue;
        const primary = `${read("master_host")}:${read("master_port")}`;
        const message = `REDIS_URL leads to a replica, ${address}. It must lead to the primary, ${primary}; or promote \
the replica: REPLICAOF NO ONE`;
        yield { code: "redis_replica", message, effect: "waits" };
      }
    },
  },
  {
    name: "commands",
    wanted: "all permitted",
    why: "The user of REDIS_URL must be permitted every command that the service and its queues run.",
    actual: ({ views }) => each(views, ({ missingRights }) => missingRights.join(" ") || "all permitted"),
    *judge({ views }) {
      for (const { address, user, missingRights } of views) {
        if (missingRights.length === 0) continue;
        yield { code: "redis_rights", message: lacksRights(address, user, missingRights), effect: "refused" };
      }
    },
  },
  {
    name: "writes",
    wanted: "accepted",
    why: "A reservation and a job are written.",
    actual: ({ views }) => each(views, ({ refusal }) => refusal ?? "accepted"),
    *judge({ views }) {
      for (const { address, cluster, missingRights, read, refusal } of views) {
        const isExplained = missingRights.length > 0 || (cluster === null && read("role") === "slave");
        if (refusal === null || isExplained) continue;
        yield { code: "redis_refuses", message: `Redis at ${address} ${refuses(refusal)}`, effect: "waits" };
      }
    },
  },
  {
    name: "persistence (appendonly)",
    wanted: "yes",
    why: "Jobs and leases survive a restart.",
    actual: ({ views }) => each(views, ({ read }) => (read("aof_enabled") === "1" ? "yes" : "no")),
    *judge({ views }) {
      if (views.every(({ read }) => read("aof_enabled") === "1")) return;
      const message =
        "Redis has appendonly = no: a restart loses waiting jobs and leases. No redemption is lost, but callers " +
        "wait and retry. Run: CONFIG SET appendonly yes";
      yield { code: "redis_without_aof", message, effect: "risk" };
    },
  },
  {
    name: "eviction (maxmemory-policy)",
    wanted: "noeviction",
    why: "An evicted job never runs.",
    actual: ({ views }) => each(views, policyOf),
    *judge({ views }) {
      for (const policy of new Set(views.map(policyOf))) {
        if (policy === "noeviction" || policy === "") continue;
        const message = `Redis has maxmemory-policy = ${policy}: when memory is full it deletes jobs and leases. Run: \
CONFIG SET maxmemory-policy noeviction`;
        yield { code: "redis_evicts", message, effect: "risk" };
      }
    },
  },
  {
    name: "shards (QUEUE_SHARDS)",
    wanted: "a multiple of the masters",
    why: "Each master of a cluster gets as much work as the others.",
    actual: ({ shards }) => String(shards),
    *judge({ views, shards }) {
      const masters = views.find(({ cluster }) => cluster !== null)?.cluster?.masters.length ?? 0;
      if (masters === 0 || shards % masters === 0) return;
      const message =
        `QUEUE_SHARDS is ${shards}, which is not a multiple of the ${masters} masters of the Redis \
Cluster: some ` + `get more work than others. Use ${Math.ceil(shards / masters) * masters}.`;
      yield { code: "redis_shards", message, effect: "risk" };
    },
  },
];

const policyOf = ({ read }: ServerView) => read("maxmemory_policy");

/** The sentence about a Redis that does not answer. */
export const NO_REDIS = "No answer from Redis.";

/** The end of a sentence that quotes the words of a server that refuses a write. */
export const refuses = (words: string) => `refuses writes: ${words}`;

/** The different values among all servers. */
function each(views: readonly ServerView[], describe: (view: ServerView) => string): string {
  return [...new Set(views.map(describe))].join(", ") || "unknown";
}

function* judgeCluster({ named }: Facts): Iterable<Problem> {
  if (named.length > 1) {
    for (const { address, view } of named) {
      if (view === null || view.cluster !== null) continue;
      const message = `REDIS_URL names several servers, but ${address} is not a node of a Redis Cluster. Name nodes of \
one cluster, or a single server.`;
      yield { code: "redis_no_cluster", message, effect: "refused" };
    }
  }
  const [known, ...others] = named.flatMap(({ address, view }) =>
    view?.cluster ? [{ address, ...view.cluster }] : [],
  );
  if (known === undefined) return;
  for (const { address } of others.filter(({ ids }) => !ids.some((id) => known.ids.includes(id)))) {
    const message = `REDIS_URL names nodes of different clusters: ${known.address} and ${address} do not know each \
other. Processes would not find each other's jobs.`;
    yield { code: "redis_other_cluster", message, effect: "refused" };
  }
  const ranges = known.masters.flatMap(({ slots }) => slots);
  const missing = SLOTS - ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  if (missing === 0) return;
  const message =
    `${missing} of the ${SLOTS} slots of the Redis Cluster have no master. Jobs and leases in them \
cannot be used. ` + `Run: redis-cli --cluster fix ${known.address}`;
  yield { code: "redis_slots", message, effect: "risk" };
}

/** What was found when the servers of REDIS_URL were checked. */
export interface RedisCheck {
  rows: Checked[];
  /** Whether any server answered, if only with a refusal. */
  answered: boolean;
  /** Whether the servers are nodes of a Redis Cluster. Null when none answered. */
  isCluster: boolean | null;
}

/**
 * Compares the servers of REDIS_URL with {@link REQUIREMENTS}. Does not reject when a server fails.
 * @throws BadRedisUrl
 */
export async function checkRedis(redisUrl: string, shards: number, maxMs?: number): Promise<RedisCheck> {
  const { named, others } = await viewServers(redisUrl, maxMs);
  const views = [...named, ...others].flatMap(({ view }) => view ?? []);
  const facts = { named, others, views, shards };
  return {
    rows: REQUIREMENTS.map(({ name, wanted, why, actual, judge }) => ({
      name,
      wanted,
      why,
      actual: actual(facts),
      problems: [...judge(facts)],
    })),
    answered: named.some((server) => server.view !== null || server.isUnusable),
    isCluster: views.length === 0 ? null : views.some(({ cluster }) => cluster !== null),
  };
}

/** The problems of all rows. */
export const problemsOf = ({ rows }: RedisCheck): Problem[] => rows.flatMap(({ problems }) => problems);
