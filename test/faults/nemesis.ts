import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import { HOSTILE_KINDS, type HostileKind } from "../support/hostile-receiver.ts";
import { besideTransaction } from "../support/outside-transaction.ts";
import type { ClusterNode } from "../support/redis-cluster.ts";
import { until } from "../support/until.ts";
import { type Cluster, type Deployment, processesOf } from "./cluster.ts";
import { FaultPostgres, type FaultyDatabase } from "./fault-postgres.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { Violation } from "./violation.ts";

/** A fault of a target's sequence. */
export type Fault = {
  /** Duration. Milliseconds. */
  forMs: number;
} & (
  | { target: "api" | "worker"; index: number; action: "kill" | "freeze" | "terminate" }
  | { target: "allWorkers"; action: "kill" | "freeze" }
  | { target: "redis"; action: "kill" | "killAndLoseTail" | "killAndLoseEverything" | "freeze" | "failOver" }
  | { target: "postgres"; action: keyof typeof POSTGRES_ACTIONS }
  | { target: "sessions"; action: "cancel" | "terminate" }
  | { target: "clock"; action: "step"; toMs: number }
  | { target: "receivers"; action: HostileKind }
  | { target: "redisCluster"; action: "killMaster" | "killReplyMaster" | "freezeMaster" | "promoteStale" | "moveSlots" }
  | { target: "postgresNodes"; action: "kill" | "killOne" | "freeze" | "lockRows" }
  | { target: "secondDeployment" | "copyOfDatabase" | "hotCopy"; action: "share" }
);

/** The targets of the faults. */
export interface Stage {
  cluster: Cluster;
  secondDeployment: Deployment;
  copyOfDatabase: Deployment;
  /** Vouchers that partners will use next. */
  upcomingVouchers: () => string[];
  /** Turns an organization's hostile receivers of one kind on or off. */
  enableReceivers: (kind: HostileKind, enabled: boolean) => Promise<unknown>;
  counts: FaultCounts;
  violations: Violation[];
}

/** Number of faults by kind. */
export type FaultCounts = Record<string, number>;

/** Longest pause between two faults of one target. Targets are independent of each other. Milliseconds. */
const PAUSE_MAX_MS = {
  "api 0": 4_000,
  "api 1": 4_000,
  "worker 0": 1_500,
  "worker 1": 1_500,
  allWorkers: 10_000,
  redis: 4_000,
  postgres: 5_000,
  sessions: 130,
  clock: 4_000,
  receivers: 600,
  secondDeployment: 15_000,
  copyOfDatabase: 15_000,
  hotCopy: 15_000,
  redisCluster: 6_000,
  postgresNodes: 15_000,
};
export type TargetName = keyof typeof PAUSE_MAX_MS;
const ALL_TARGETS = Object.keys(PAUSE_MAX_MS) as TargetName[];
/** Targets of a deployment whose servers fail over. */
const CLUSTER_TARGETS: TargetName[] = ["redisCluster", "postgresNodes"];
/** Targets that need the embedded Postgres. */
const EMBEDDED_TARGETS: TargetName[] = ["postgres", "clock", "hotCopy"];
export const TARGET_NAMES = ALL_TARGETS.filter((name) => !CLUSTER_TARGETS.includes(name));

/** The targets on a Redis Cluster, with or without a Postgres that fails over. */
export function targetsOnCluster(postgresFailsOver: boolean): TargetName[] {
  const without: TargetName[] = ["redis", ...(postgresFailsOver ? EMBEDDED_TARGETS : CLUSTER_TARGETS.slice(1))];
  return ALL_TARGETS.filter((name) => !without.includes(name));
}

const PROCESS_ACTIONS = { kill: 5, freeze: 4, terminate: 1 };
const REDIS_ACTIONS = { kill: 2, killAndLoseTail: 3, killAndLoseEverything: 1, freeze: 3, failOver: 1 };
const REDIS_CLUSTER_ACTIONS = { killMaster: 3, killReplyMaster: 2, freezeMaster: 2, promoteStale: 3, moveSlots: 2 };
const POSTGRES_NODES_ACTIONS = { kill: 4, killOne: 2, freeze: 3, lockRows: 1 };
/** Long enough that a replica or a standby takes over: they notice the loss after two or three seconds. Milliseconds. */
const TAKEOVER_MS = { min: 4_000, max: 7_000 };
const POSTGRES_ACTIONS = { kill: 3, killOne: 3, freeze: 2, lockRows: 3, stallCommits: 3, crashAndPromote: 2 };
/** How far the database's clock may be from the host's. Milliseconds. */
const CLOCK_MAX_MS = 8_000;

/** Probability that a freeze of the first worker outlives the locks of its jobs (15 s, checked every 5 s). */
const LONG_FREEZE_CHANCE = 0.1;
const LONG_FREEZE_MS = { min: 16_000, max: 24_000 };
/** Longer than the wait of a redeem, so that frozen jobs outlive their deadlines. Milliseconds. */
const PAST_DEADLINE_MS = { min: 3_500, max: 5_500 };

/** The endless sequence of a target's faults. The same seed gives the same sequence; its timing depends on the machine. */
export function* faultsOf(target: TargetName, random: SeededRandom): Generator<Fault, never> {
  for (;;) yield nextFault(target, random);
}

function nextFault(target: TargetName, random: SeededRandom): Fault {
  switch (target) {
    case "redis": {
      const action = random.weigh(REDIS_ACTIONS);
      // Long enough for callers to get their answers before the failover ends.
      const forMs = action === "failOver" ? random.between(3_500, 5_000) : random.between(0, 1_200);
      return { target, action, forMs };
    }
    case "postgres": {
      const action = random.weigh(POSTGRES_ACTIONS);
      return { target, action, forMs: action === "killOne" ? 0 : random.between(100, 2_500) };
    }
    case "redisCluster":
      return {
        target,
        action: random.weigh(REDIS_CLUSTER_ACTIONS),
        forMs: random.between(TAKEOVER_MS.min, TAKEOVER_MS.max),
      };
    case "postgresNodes":
      return {
        target,
        action: random.weigh(POSTGRES_NODES_ACTIONS),
        forMs: random.between(TAKEOVER_MS.min, TAKEOVER_MS.max),
      };
    case "sessions":
      return { target, action: random.pick(["cancel", "terminate"] as const), forMs: 0 };
    case "clock":
      return { target, action: "step", toMs: random.between(-CLOCK_MAX_MS, CLOCK_MAX_MS), forMs: 0 };
    case "receivers":
      return { target, action: random.pick(HOSTILE_KINDS), forMs: random.between(0, 2_000) };
    case "secondDeployment":
    case "copyOfDatabase":
    case "hotCopy":
      return { target, action: "share", forMs: random.between(5_000, 9_000) };
    case "allWorkers":
      return random.chance(0.5)
        ? { target, action: "kill", forMs: random.between(500, 3_000) }
        : { target, action: "freeze", forMs: random.between(PAST_DEADLINE_MS.min, PAST_DEADLINE_MS.max) };
    default: {
      const [kind, index] = target.split(" ") as ["api" | "worker", string];
      const action = random.weigh(PROCESS_ACTIONS);
      const long = target === "worker 0" && random.chance(LONG_FREEZE_CHANCE);
      const { min, max } = long ? LONG_FREEZE_MS : { min: 100, max: 2_500 };
      const forMs = action === "freeze" ? random.between(min, max) : random.between(0, 500);
      return { target: kind, index: Number(index), action, forMs };
    }
  }
}

/** When the faults end. */
export interface FaultLimits {
  forMs: number;
  count?: number | undefined;
}

/**
 * Inflicts each target's faults one after another, all targets at once, until a limit is met. Undoes every fault.
 * @throws when a fault could not be inflicted.
 */
export async function inflictFaults(
  stage: Stage,
  targets: readonly TargetName[],
  random: SeededRandom,
  { forMs, count = Number.POSITIVE_INFINITY }: FaultLimits,
  interrupted: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  const over = AbortSignal.any([interrupted, enough.signal, AbortSignal.timeout(forMs)]);
  setMaxListeners(0, over);
  const pause: Pause = (ms) => sleep(ms, undefined, { signal: over }).catch(() => undefined);
  const postgresTurn = pLimit(1);
  let inflicted = 0;
  const endure = async (target: TargetName) => {
    const own = random.fork(target);
    for (const fault of faultsOf(target, own)) {
      await pause(own.between(50, PAUSE_MAX_MS[target]));
      if (over.aborted) return;
      if (!(await inflict(stage, fault, own, { pause, postgresTurn }))) continue;
      const name = `${fault.target} ${fault.action}`;
      stage.counts[name] = (stage.counts[name] ?? 0) + 1;
      inflicted += 1;
      if (inflicted >= count) enough.abort();
    }
  };
  const endAll = (error: unknown) => {
    enough.abort();
    throw error;
  };
  const ends = await Promise.allSettled(targets.map((target) => endure(target).catch(endAll)));
  if (stage.cluster.postgres.clock.hasStepped) await stage.cluster.postgres.clock.set(0);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

interface Timing {
  /** Waits, or returns at once when the run is over, so that faults are still undone. */
  pause: Pause;
  /** Copies of the server's files are made while nothing else happens to it. */
  postgresTurn: LimitFunction;
}
type Pause = (ms: number) => Promise<void>;

/** Returns false if there was nothing to inflict the fault on. */
async function inflict(stage: Stage, fault: Fault, random: SeededRandom, timing: Timing): Promise<boolean> {
  const { cluster } = stage;
  const { pause, postgresTurn } = timing;
  switch (fault.target) {
    case "api":
    case "worker":
      await inflictOnProcess(cluster, fault, pause);
      break;
    case "redis":
      await inflictOnRedis(cluster, fault, pause);
      break;
    case "redisCluster":
      return inflictOnRedisCluster(cluster, fault, random, pause);
    case "postgres":
      await postgresTurn(() => inflictOnPostgres(stage, fault, random, pause));
      break;
    case "postgresNodes":
      await inflictOnPostgres(stage, fault, random, pause);
      // The next fault needs standbys.
      await cluster.postgres.start();
      break;
    case "sessions":
      return interruptSession(cluster, fault.action);
    case "clock":
      await cluster.postgres.clock.set(fault.toMs);
      break;
    case "receivers":
      await stage.enableReceivers(fault.action, true);
      await pause(fault.forMs);
      await stage.enableReceivers(fault.action, false);
      break;
    case "allWorkers":
      await inflictOnAllWorkers(cluster, fault, pause);
      break;
    case "hotCopy": {
      const copy = await postgresTurn(() => cluster.startHotCopy());
      await pause(fault.forMs);
      stage.violations.push(...(await copy.stop()));
      break;
    }
    case "secondDeployment":
    case "copyOfDatabase": {
      const processes = processesOf(stage[fault.target]);
      for (const process of processes) process.start();
      await pause(fault.forMs);
      await Promise.all(processes.map((process) => process.kill()));
    }
  }
  return true;
}

async function inflictOnAllWorkers(
  { workers }: Cluster,
  { action, forMs }: Extract<Fault, { target: "allWorkers" }>,
  pause: Pause,
): Promise<void> {
  if (action === "kill") await Promise.all(workers.map((worker) => worker.kill()));
  else for (const worker of workers) worker.freeze();
  await pause(forMs);
  for (const worker of workers) {
    worker.thaw();
    worker.start();
  }
}

/** Cancels a statement of the service, or ends one of its connections. Returns false if it has none. */
async function interruptSession({ db }: Cluster, action: "cancel" | "terminate"): Promise<boolean> {
  const busy = action === "cancel" ? "AND state <> 'idle'" : "";
  const ended = await db
    .query(
      `SELECT pg_${action}_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'pva\\_%' ${busy} ORDER BY random() LIMIT 1`,
    )
    .catch(() => null);
  return (ended?.rowCount ?? 0) > 0;
}

/** How long docs/operations.md tells operators to wait after SIGTERM. A process drains for 15 s, and needs more on a busy machine. Milliseconds. */
const DRAIN_MAX_MS = 20_000;

async function inflictOnProcess(
  cluster: Cluster,
  fault: Extract<Fault, { index: number }>,
  pause: Pause,
): Promise<void> {
  const process = fault.target === "api" ? cluster.apis[fault.index]?.process : cluster.workers[fault.index];
  if (process === undefined) throw new Error(`there is no ${fault.target} ${fault.index}`);
  if (fault.action === "freeze") {
    process.freeze();
    await pause(fault.forMs);
    process.thaw();
    return;
  }
  if (fault.action === "kill") await process.kill();
  else {
    const startedAt = performance.now();
    await process.terminate();
    const tookMs = performance.now() - startedAt;
    if (tookMs > DRAIN_MAX_MS) cluster.accidents.push(`${process.name} took ${tookMs} ms to end after SIGTERM`);
  }
  await pause(fault.forMs);
  process.start();
}

/** Time for jobs to gather before a failover, so that the replica has some that no worker has started. Milliseconds. */
const GATHER_MS = 500;

async function inflictOnRedis(
  { redis, replica, workerWire }: Cluster,
  fault: Extract<Fault, { target: "redis" }>,
  pause: Pause,
): Promise<void> {
  if (fault.action === "freeze") {
    redis.freeze();
    await pause(fault.forMs);
    redis.thaw();
    return;
  }
  if (fault.action === "failOver") {
    // The workers follow the new primary; the API processes stay with the old one.
    await replica.start();
    await replica.follow(redis);
    workerWire.jam();
    await pause(GATHER_MS);
    await replica.promote();
    workerWire.lead(replica.url);
    await pause(fault.forMs);
    workerWire.lead(redis.url);
    await replica.kill("Everything");
    return;
  }
  const loss = { kill: "Nothing", killAndLoseTail: "AppendOnlyTail", killAndLoseEverything: "Everything" } as const;
  await redis.kill(loss[fault.action]);
  await pause(fault.forMs);
  await redis.start();
}

/** Returns false if there was no slot to move. */
async function inflictOnRedisCluster(
  { redisCluster }: Cluster,
  fault: Extract<Fault, { target: "redisCluster" }>,
  random: SeededRandom,
  pause: Pause,
): Promise<boolean> {
  if (redisCluster === null) throw new Error("there is no Redis Cluster");
  const masters = await redisCluster.masters();
  const anyMaster = random.pick(masters);
  if (fault.action === "moveSlots") {
    // Most keys are those of queues.
    const key = await anyMaster.client.randomkey();
    if (key === null) return false;
    const slot = await anyMaster.client.cluster("KEYSLOT", key);
    await redisCluster.moveSlots([slot], random.pick(masters.filter((master) => master !== anyMaster)));
    return true;
  }
  if (fault.action === "freezeMaster") {
    anyMaster.freeze();
    await pause(fault.forMs);
    await redisCluster.heal();
    return true;
  }
  const master = fault.action === "killReplyMaster" ? ((await findReplyMaster(masters)) ?? anyMaster) : anyMaster;
  if (fault.action === "promoteStale") {
    // The replica misses what the master does until it dies.
    const replica = await redisCluster.replicaOf(master);
    replica.freeze();
    await master.client.call("CLIENT", "KILL", "TYPE", "replica");
    await pause(GATHER_MS);
    await master.kill();
    replica.thaw();
  } else await master.kill();
  await pause(fault.forMs);
  await redisCluster.heal();
  return true;
}

/** The master that carries the replies to an API process. */
async function findReplyMaster(masters: readonly ClusterNode[]): Promise<ClusterNode | undefined> {
  const channels = await Promise.all(
    masters.map(({ client }) => client.call("PUBSUB", "SHARDCHANNELS", "vouchers:replies:*")),
  );
  return masters.find((_, index) => (channels[index] as string[]).length > 0);
}

/** Time for a restarted Postgres to recover and for callers to repeat their requests. Milliseconds. */
const RETRIED_MS = 2_500;
/** Time for Postgres to recover before a fault that needs it. Milliseconds. */
export const RECOVERED_MS = 120_000;

async function inflictOnPostgres(
  { cluster: { postgres, db }, upcomingVouchers }: Stage,
  fault: Extract<Fault, { target: "postgres" | "postgresNodes" }>,
  random: SeededRandom,
  pause: Pause,
): Promise<void> {
  switch (fault.action) {
    case "killOne":
      return postgres.killOne(random);
    case "freeze":
      await postgres.freeze();
      await pause(fault.forMs);
      return postgres.thaw();
    case "lockRows":
      await until(() => db.query("SELECT 1").catch(() => null), RECOVERED_MS);
      return besideTransaction(db, async (outside) => {
        const lock = "SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED";
        await outside.query(lock, [upcomingVouchers()]);
        await pause(fault.forMs);
      });
    case "stallCommits":
      // Commits wait for a standby that does not exist and keep their rows locked; reads go on.
      await waitForStandby(db, "nowhere");
      await pause(fault.forMs);
      return waitForStandby(db, embedded(postgres).standbyNames);
    case "crashAndPromote":
      return crashAndPromote(embedded(postgres), random, fault.forMs, pause);
    case "kill":
      await postgres.kill();
      await pause(fault.forMs);
      await postgres.start();
  }
}

/** The primary crashes while commits wait for a standby that is cut off. It answers again, and then is lost: the standby takes over. */
async function crashAndPromote(
  postgres: FaultPostgres,
  random: SeededRandom,
  forMs: number,
  pause: Pause,
): Promise<void> {
  postgres.cutOffStandby();
  await pause(forMs);
  if (random.chance(0.5)) await postgres.killOne(random);
  else {
    await postgres.kill();
    await postgres.start();
  }
  // Callers repeat what was not answered.
  await pause(RETRIED_MS);
  await postgres.promoteStandby();
  await postgres.start();
}

function embedded(postgres: FaultyDatabase): FaultPostgres {
  if (postgres instanceof FaultPostgres) return postgres;
  throw new Error("this needs the embedded Postgres");
}

async function waitForStandby(db: Cluster["db"], name: string): Promise<void> {
  for (const statement of [`ALTER SYSTEM SET synchronous_standby_names = '${name}'`, "SELECT pg_reload_conf()"])
    await until(() => db.query(statement).catch(() => null), RECOVERED_MS);
}
