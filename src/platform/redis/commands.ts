import { type Redis, ReplyError } from "ioredis";

/**
 * Every command that the service and BullMQ's scripts run, each with enough arguments: `k` is a key, `c` a channel. The
 * check at the start covers only these. CLIENT LIST is missing on purpose: managed servers may refuse it, and only
 * `voucherctl` runs it.
 */
const COMMANDS = `
bzpopmin k 1|del k|eval return 0|evalsha x 0|exists k|get k|hdel k f|hexists k f|hget k f|hgetall k|hincrby k f 1
hlen k|hmget k f|hmset k f v|hset k f v|incr k|incrby k 1|lindex k 0|llen k|lpop k|lpos k v|lpush k v|lrange k 0 0
lrem k 0 v|lset k 0 v|ltrim k 0 0|persist k|pexpire k 1|pexpireat k 1|ping|pttl k|rename k k|rpop k|rpoplpush k k
rpush k v|sadd k v|scan 0|scard k|set k v|sismember k v|smembers k|spublish c m|srem k v|time|type k|unlink k
xadd k * f v|xdel k 0-0|xlen k|xrange k - +|xread STREAMS k 0|xtrim k MAXLEN 0|zadd k 0 v|zcard k|zcount k 0 0
zlexcount k - +|zpopmin k|zrange k 0 0|zrangebylex k - +|zrangebyscore k 0 0|zrem k v|zremrangebyrank k 0 0
zremrangebyscore k 0 0|zrevrange k 0 0|zrevrangebyscore k 0 0|zscore k v|client SETNAME x`;

/** The names of {@link COMMANDS}. Subcommands are written as in ACL rules. */
export const COMMAND_NAMES = [...split(COMMANDS).map(nameOf), "ssubscribe", "multi"];

/** Commands that only a Redis Cluster needs. */
const CLUSTER_COMMANDS = "cluster SLOTS|cluster NODES|cluster INFO";

const CHANNEL = "vouchers:replies:probe";
/**
 * One key of each form that the service uses, to check the user's rights on them. In this order: queues, and reports of
 * processes (`queues/shards.ts`, `core/processes`); the newest mark (`servers/share-memory.ts`); leases of vouchers
 * (`core/reserve/lease.ts`); counts of rate limits (`limits/rate-limiter.ts`).
 */
const KEYS = ["{pva:probe}:probe", "pva:probe:memory", "lease:{probe}:probe", "limit:probe"];

/**
 * The rules that a user lacks, in the form of `ACL SETUSER`: `+xadd`, `~*` or `&*`. Queues each command in a
 * transaction and discards the transaction, so no command runs. Afterwards the connection is subscribed to a channel,
 * so the caller can only close it.
 */
export async function findMissingRights(redis: Redis, isCluster: boolean): Promise<string[]> {
  const missing = new Set<string>();
  const attempt = async ([name = "", ...args]: string[]) => {
    try {
      await redis.call(name, ...args);
    } catch (error) {
      const rule = ruleAgainst(error, nameOf([name, ...args]));
      if (rule !== null) missing.add(rule);
    }
  };
  await attempt(["multi"]);
  if (missing.size > 0) return [...missing];
  const commands = split(isCluster ? `${COMMANDS}|${CLUSTER_COMMANDS}` : COMMANDS);
  const writes = KEYS.map((key) => ["hset", key, "f", "v"]);
  await Promise.all([...commands.map((command) => command.map(nameArgument)), ...writes].map(attempt));
  await redis.call("discard");
  // Runs this command after the transaction. Inside, the client would not understand the reply.
  await attempt(["ssubscribe", CHANNEL]);
  return [...missing].toSorted();
}

/** The rule that the user lacks, according to a refusal. Null for other reasons, such as full memory. */
function ruleAgainst(error: unknown, name: string): string | null {
  if (!(error instanceof Error && error instanceof ReplyError)) throw error;
  if (/^ERR unknown (sub)?command/i.test(error.message)) return `+${name}`;
  if (!error.message.startsWith("NOPERM")) return null;
  if (/\bkeys?\b/.test(error.message)) return "~*";
  return /\bchannels?\b/.test(error.message) ? "&*" : `+${name}`;
}

function split(commands: string): string[][] {
  return commands
    .trim()
    .split(/[|\n]/)
    .map((command) => command.split(" "));
}

function nameOf([name = "", first]: readonly string[]): string {
  return ["client", "cluster"].includes(name) && first !== undefined ? `${name}|${first.toLowerCase()}` : name;
}

function nameArgument(argument: string): string {
  return argument === "k" ? (KEYS[0] ?? "") : argument === "c" ? CHANNEL : argument;
}
