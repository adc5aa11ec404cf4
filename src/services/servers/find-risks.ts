import type pg from "pg";
import type { Logger } from "pino";
import { findWeakenedRoles, readDurabilitySettings } from "../../db/durability.ts";
import { SLOTS } from "../../queues/shards.ts";
import { isCluster, mastersOf, type RedisClient } from "../../redis/connections.ts";
import { inspectNodes } from "../../redis/inspect-nodes.ts";

/** One way in which acknowledged work could be lost, or in which REDIS_URL or QUEUE_SHARDS does not fit the Redis servers. */
export interface Risk {
  code: string;
  /** What is wrong, and what to change, as sentences for an operator. */
  message: string;
}

/** The values of `synchronous_commit` that wait until a synchronous standby has the transaction on disk. */
const WAITS_FOR_STANDBY = ["on", "remote_apply"];

/** Finds settings of Postgres and, unless it is null, of Redis that could lose acknowledged work. @throws Error without an answer. */
export async function findDurabilityRisks({
  pool,
  redis,
}: {
  pool: pg.Pool;
  redis: RedisClient | null;
}): Promise<Risk[]> {
  return [...(await risksOfPostgres(pool)), ...(redis === null ? [] : await risksOfRedis(redis))];
}

/** Logs a warning for each risk. Never fails: the readiness check reports a server that does not respond. */
export async function warnOfRisks(log: Logger, find: Promise<Risk[]>): Promise<void> {
  for (const { code, message } of await find.catch(() => [])) log.warn({ risk: code }, message);
}

async function risksOfPostgres(pool: pg.Pool): Promise<Risk[]> {
  const settings = await readDurabilitySettings(pool);
  if (settings.isStandby) {
    // The primary can have other settings, so those of the standby are not checked.
    return [{ code: "standby", message: "DATABASE_URL leads to a standby. It must always lead to the primary." }];
  }
  const risks: Risk[] = [];
  if (settings.fsync !== "on") {
    risks.push({ code: "fsync_off", message: "Postgres has fsync = off: a crash of its host can lose everything." });
  }
  if (settings.fullPageWrites !== "on") {
    const message = "Postgres has full_page_writes = off: a crash of its host can leave damaged pages.";
    risks.push({ code: "full_page_writes_off", message });
  }
  if (!WAITS_FOR_STANDBY.includes(settings.synchronousCommit)) {
    const message = `Postgres has synchronous_commit = ${settings.synchronousCommit}: a crash or a failover can lose acknowledged redemptions. Set it to on.`;
    risks.push({ code: "synchronous_commit", message });
  }
  for (const { subject, setting } of await findWeakenedRoles(pool)) {
    const message = `The Postgres ${subject} has ${setting}: a crash or a failover can lose redemptions acknowledged to its connections.`;
    risks.push({ code: "synchronous_commit", message });
  }
  if (settings.synchronousStandbyNames === "") {
    const message =
      "Postgres has no synchronous standby (synchronous_standby_names is empty): if the primary's disk is lost or a standby is promoted, " +
      "acknowledged redemptions can be missing and their vouchers redeemed again.";
    risks.push({ code: "no_synchronous_standby", message });
  } else if (settings.restartAfterCrash !== "off") {
    const message =
      "Postgres has restart_after_crash = on with synchronous standbys: after a crash it serves transactions that no standby has. Set it to off.";
    risks.push({ code: "restart_after_crash", message });
  }
  return risks;
}

/** Returns each risk once, even if several masters of a cluster have it. */
async function risksOfRedis(redis: RedisClient): Promise<Risk[]> {
  const infos = await Promise.all(mastersOf(redis).map((master) => master.info()));
  const risks = infos.flatMap(risksOfServer);
  if (!isCluster(redis) && infos.some((info) => /^cluster_enabled:1/m.test(info))) {
    const message =
      "REDIS_URL names one server, which is a node of a Redis Cluster. Name several nodes, separated by commas.";
    risks.push({ code: "redis_one_address", message });
  }
  return risks.filter((risk, index) => risks.findIndex(({ message }) => message === risk.message) === index);
}

function risksOfServer(info: string): Risk[] {
  const read = (field: string) => new RegExp(`^${field}:(\\S+)`, "m").exec(info)?.[1];
  const risks: Risk[] = [];
  if (read("aof_enabled") !== "1") {
    const message =
      "Redis has appendonly = no: a restart loses waiting jobs and leases. No redemption is lost, but callers wait and retry.";
    risks.push({ code: "redis_without_aof", message });
  }
  const policy = read("maxmemory_policy");
  if (policy !== undefined && policy !== "noeviction") {
    const message = `Redis has maxmemory-policy = ${policy}: when memory is full it deletes jobs and leases. Set it to noeviction.`;
    risks.push({ code: "redis_evicts", message });
  }
  return risks;
}

/** If REDIS_URL names several servers, asks each one about its cluster. A server that does not respond is a risk, not an error. */
export async function findClusterRisks(redisUrl: string, shards: number): Promise<Risk[]> {
  const nodes = await inspectNodes(redisUrl);
  const risks: Risk[] = [];
  for (const { address } of nodes.filter(({ nodeIds }) => nodeIds === null)) {
    const message = `The Redis server ${address}, which REDIS_URL names, does not answer.`;
    risks.push({ code: "redis_node_silent", message });
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
