import { setTimeout as sleep } from "node:timers/promises";
import { besideTransaction } from "../support/outside-transaction.ts";
import type { ClusterNode } from "../support/redis-cluster.ts";
import { until } from "../support/until.ts";
import { type Cluster, type Deployment, processesOf } from "./cluster.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** A planned fault. */
export type Fault = {
  /** From the start of the run. Milliseconds. */
  atMs: number;
  /** Duration. Milliseconds. */
  forMs: number;
} & (
  | { target: "api" | "worker"; index: number; action: "kill" | "freeze" | "terminate" }
  | { target: "allWorkers"; action: "kill" }
  | { target: "redis"; action: "kill" | "killAndLoseTail" | "killAndLoseEverything" | "freeze" | "failOver" }
  | { target: "postgres"; action: "kill" | "killOne" | "freeze" | "lockRows" | "stallCommits" }
  | { target: "redisCluster"; action: "killMaster" | "killReplyMaster" | "freezeMaster" | "promoteStale" | "moveSlots" }
  | { target: "postgresNodes"; action: "kill" | "killOne" | "freeze" | "lockRows" }
  | { target: "secondDeployment" | "copyOfDatabase"; action: "share" }
);

/** The targets of the faults. */
export interface Stage {
  cluster: Cluster;
  secondDeployment: Deployment;
  copyOfDatabase: Deployment;
  /** Vouchers that partners will use next. */
  upcomingVouchers: () => string[];
}

/** Number of faults by kind. */
export type FaultCounts = Record<string, number>;

const TARGETS = {
  "api 0": 3,
  "api 1": 3,
  "worker 0": 4,
  "worker 1": 4,
  allWorkers: 2,
  redis: 5,
  postgres: 6,
  secondDeployment: 2,
  copyOfDatabase: 2,
};
/** Targets of a deployment whose servers fail over. */
const CLUSTER_TARGETS = { redisCluster: 6, postgresNodes: 6 };
const WEIGHTS = { ...TARGETS, ...CLUSTER_TARGETS };
export type TargetName = keyof typeof WEIGHTS;
export const TARGET_NAMES = Object.keys(TARGETS) as TargetName[];

/** The targets on a Redis Cluster, with or without a Postgres that fails over. */
export function targetsOnCluster(postgresFailsOver: boolean): TargetName[] {
  const replaced = { redis: "redisCluster", postgres: postgresFailsOver ? "postgresNodes" : "postgres" } as const;
  return TARGET_NAMES.map((name) => (name === "redis" || name === "postgres" ? replaced[name] : name));
}

const PROCESS_ACTIONS = { kill: 5, freeze: 4, terminate: 1 };
const REDIS_ACTIONS = { kill: 2, killAndLoseTail: 3, killAndLoseEverything: 1, freeze: 3, failOver: 3 };
const REDIS_CLUSTER_ACTIONS = { killMaster: 3, killReplyMaster: 2, freezeMaster: 2, promoteStale: 3, moveSlots: 2 };
const POSTGRES_NODES_ACTIONS = { kill: 4, killOne: 2, freeze: 3, lockRows: 1 };
/** Long enough that a replica or a standby takes over: they notice the loss after two or three seconds. Milliseconds. */
const TAKEOVER_MS = { min: 4_000, max: 7_000 };
const POSTGRES_ACTIONS = { kill: 3, killOne: 2, freeze: 2, lockRows: 3, stallCommits: 3 };

/**
 * Probability that a worker is frozen for longer than its jobs stay locked (15 s, checked every 5 s), if the run is long enough and the
 * other worker is not frozen like that.
 */
const LONG_FREEZE_CHANCE = 0.2;
const LONG_FREEZE_MS = { min: 16_000, max: 24_000 };
/** Pause between two faults of one target, so that some faults hit a working service. */
const RECOVERY_MS = { min: 100, max: 3_000 };
/** Pause between two faults; every fifth starts together with the one before. */
const GAP_MS = { min: 100, max: 2_600 };
const TOGETHER_CHANCE = 0.2;

/**
 * Plans the faults of a run, in order. The same seed gives the same faults at the same times. What the service does at those times
 * depends on the machine, so a repeated run is never identical.
 */
export function planFaults(
  random: SeededRandom,
  runMs: number,
  targets: readonly TargetName[] = TARGET_NAMES,
): Fault[] {
  const faults: Fault[] = [];
  const busyUntilMs = new Map<TargetName, number>();
  let longFreezeUntilMs = 0;
  const weights = Object.fromEntries(targets.map((name) => [name, WEIGHTS[name]])) as Record<TargetName, number>;
  for (let atMs = 1_000; ; ) {
    if (!random.chance(TOGETHER_CHANCE)) atMs += random.between(GAP_MS.min, GAP_MS.max);
    if (atMs >= runMs) return faults;
    const target = random.weigh(weights);
    const fault = planFault(random, target, atMs);
    const long = fault.forMs >= LONG_FREEZE_MS.min;
    const refused = (busyUntilMs.get(target) ?? 0) > atMs || (long && longFreezeUntilMs > atMs);
    if (refused || atMs + fault.forMs > runMs) {
      // Rejected draws must advance the time as well.
      atMs += 10;
      continue;
    }
    busyUntilMs.set(target, atMs + fault.forMs + random.between(RECOVERY_MS.min, RECOVERY_MS.max));
    if (long) longFreezeUntilMs = atMs + fault.forMs;
    faults.push(fault);
  }
}

function planFault(random: SeededRandom, target: TargetName, atMs: number): Fault {
  if (target === "redis") {
    const action = random.weigh(REDIS_ACTIONS);
    const down = random.between(0, 1_500);
    // Long enough for callers to get their answers before the failover ends.
    const forMs =
      { freeze: random.between(200, 4_000), failOver: random.between(3_500, 5_000) }[action as string] ?? down;
    return { target, action, atMs, forMs };
  }
  if (target === "postgres") {
    const action = random.weigh(POSTGRES_ACTIONS);
    const forMs = {
      kill: random.between(0, 1_500),
      killOne: 0,
      freeze: random.between(200, 4_500),
      lockRows: random.between(500, 4_500),
      stallCommits: random.between(500, 4_500),
    }[action];
    return { target, action, atMs, forMs };
  }
  if (target === "redisCluster" || target === "postgresNodes") {
    const forMs = random.between(TAKEOVER_MS.min, TAKEOVER_MS.max);
    return target === "redisCluster"
      ? { target, action: random.weigh(REDIS_CLUSTER_ACTIONS), atMs, forMs }
      : { target, action: random.weigh(POSTGRES_NODES_ACTIONS), atMs, forMs };
  }
  if (target === "allWorkers") return { target, action: "kill", atMs, forMs: random.between(1_000, 4_000) };
  if (target === "secondDeployment" || target === "copyOfDatabase")
    return { target, action: "share", atMs, forMs: random.between(6_000, 11_000) };
  const [kind, index] = target.split(" ") as ["api" | "worker", string];
  const action = random.weigh(PROCESS_ACTIONS);
  const long = kind === "worker" && random.chance(LONG_FREEZE_CHANCE);
  const { min, max } = long ? LONG_FREEZE_MS : { min: 200, max: 4_000 };
  const forMs = action === "freeze" ? random.between(min, max) : random.between(0, 1_500);
  return { target: kind, index: Number(index), action, atMs, forMs };
}

/**
 * Starts each planned fault at its time and ends it after its duration. Resolves when the last one has ended.
 * @throws when a fault could not be inflicted.
 */
export async function inflictFaults(
  stage: Stage,
  faults: readonly Fault[],
  random: SeededRandom,
  counts: FaultCounts,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  /** Faults of one target run one after another, even when a recovery takes longer than planned. */
  const lastOn = new Map<string, Promise<void>>();
  const pause: Pause = (ms) => sleep(ms, undefined, { signal }).catch(() => undefined);
  for (const fault of faults) {
    await pause(Math.max(0, fault.atMs - (performance.now() - startedAt)));
    if (signal.aborted) break;
    const target = "index" in fault ? `${fault.target} ${fault.index}` : fault.target;
    const done = (lastOn.get(target) ?? Promise.resolve()).then(() => inflict(stage, fault, random, counts, pause));
    done.catch(() => undefined);
    lastOn.set(target, done);
  }
  await Promise.all(lastOn.values());
}

/** Waits, or returns at once when the run was aborted, so that faults are still undone. */
type Pause = (ms: number) => Promise<void>;

async function inflict(
  stage: Stage,
  fault: Fault,
  random: SeededRandom,
  counts: FaultCounts,
  pause: Pause,
): Promise<void> {
  const { cluster } = stage;
  const name = `${fault.target} ${fault.action}`;
  counts[name] = (counts[name] ?? 0) + 1;
  switch (fault.target) {
    case "api":
    case "worker":
      return inflictOnProcess(cluster, fault, pause);
    case "redis":
      return inflictOnRedis(cluster, fault, pause);
    case "redisCluster":
      return inflictOnRedisCluster(cluster, fault, random, pause);
    case "postgres":
      return inflictOnPostgres(stage, fault, random, pause);
    case "postgresNodes":
      await inflictOnPostgres(stage, fault, random, pause);
      // The next fault needs standbys.
      return cluster.postgres.start();
    case "allWorkers":
      await Promise.all(cluster.workers.map((worker) => worker.kill()));
      await pause(fault.forMs);
      for (const worker of cluster.workers) worker.start();
      return;
    case "secondDeployment":
    case "copyOfDatabase": {
      const processes = processesOf(stage[fault.target]);
      for (const process of processes) process.start();
      await pause(fault.forMs);
      await Promise.all(processes.map((process) => process.kill()));
    }
  }
}

/** Time for a process to drain after SIGTERM: 15 s, and some more on a busy machine. Milliseconds. */
const DRAIN_MAX_MS = 17_000;

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

async function inflictOnRedisCluster(
  { redisCluster }: Cluster,
  fault: Extract<Fault, { target: "redisCluster" }>,
  random: SeededRandom,
  pause: Pause,
): Promise<void> {
  if (redisCluster === null) throw new Error("there is no Redis Cluster");
  const masters = await redisCluster.masters();
  const anyMaster = random.pick(masters);
  if (fault.action === "moveSlots") {
    // Most keys are those of queues.
    const key = await anyMaster.client.randomkey();
    const slot = key === null ? 0 : await anyMaster.client.cluster("KEYSLOT", key);
    return redisCluster.moveSlots([slot], random.pick(masters.filter((master) => master !== anyMaster)));
  }
  if (fault.action === "freezeMaster") {
    anyMaster.freeze();
    await pause(fault.forMs);
    return redisCluster.heal();
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
  return redisCluster.heal();
}

/** The master that carries the replies to an API process. */
async function findReplyMaster(masters: readonly ClusterNode[]): Promise<ClusterNode | undefined> {
  const channels = await Promise.all(
    masters.map(({ client }) => client.call("PUBSUB", "SHARDCHANNELS", "vouchers:replies:*")),
  );
  return masters.find((_, index) => (channels[index] as string[]).length > 0);
}

/** Time for Postgres to recover before a fault that needs it. Milliseconds. */
const RECOVERED_MS = 30_000;

async function inflictOnPostgres(
  { cluster: { postgres, db }, upcomingVouchers }: Stage,
  fault: Extract<Fault, { target: "postgres" | "postgresNodes" }>,
  random: SeededRandom,
  pause: Pause,
): Promise<void> {
  if (fault.action === "killOne") return postgres.killOne(random);
  if (fault.action === "freeze") {
    await postgres.freeze();
    await pause(fault.forMs);
    postgres.thaw();
    return;
  }
  if (fault.action === "lockRows" || fault.action === "stallCommits") {
    if (fault.action === "lockRows") {
      await until(() => db.query("SELECT 1").catch(() => null), RECOVERED_MS);
      return besideTransaction(db, async (outside) => {
        const lock = "SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED";
        await outside.query(lock, [upcomingVouchers()]);
        await pause(fault.forMs);
      });
    }
    // Commits wait for a standby that does not exist and keep their rows locked; reads go on.
    await waitForStandby(db, "nowhere");
    await pause(fault.forMs);
    return waitForStandby(db, "");
  }
  await postgres.kill();
  await pause(fault.forMs);
  await postgres.start();
}

async function waitForStandby(db: Cluster["db"], name: string): Promise<void> {
  for (const statement of [`ALTER SYSTEM SET synchronous_standby_names = '${name}'`, "SELECT pg_reload_conf()"])
    await until(() => db.query(statement).catch(() => null), RECOVERED_MS);
}
