import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pLimit, { type LimitFunction } from "p-limit";
import { HOSTILE_KINDS, type HostileKind } from "../support/hostile-receiver.ts";
import { besideTransaction } from "../support/outside-transaction.ts";
import { until } from "../support/until.ts";
import { violation } from "./checker.ts";
import { type Cluster, type Deployment, embedded, processesOf } from "./cluster.ts";
import type { Violation } from "./history.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { ServiceProcess } from "./service-process.ts";

/** What faults are inflicted on. */
export interface Stage {
  cluster: Cluster;
  secondDeployment: Deployment;
  copyOfDatabase: Deployment;
  /** Vouchers that partners will use next. */
  upcomingVouchers: () => string[];
  /** Turns an organization's hostile receivers of one kind on or off. */
  enableReceivers: (kind: HostileKind, enabled: boolean) => Promise<unknown>;
  /** Number of faults by kind. */
  counts: Record<string, number>;
  violations: Violation[];
}

interface Scene extends Stage {
  random: SeededRandom;
  /** Waits, or returns at once when the run is over, so that faults are still undone. */
  pause: (ms: number) => Promise<void>;
  /** Copies of the server's files are made while nothing else happens to it. */
  postgresTurn: LimitFunction;
}

interface Fault<Action extends string = string> {
  action: Action;
  /** Duration. Milliseconds. */
  forMs: number;
}

/** A target and the endless sequence of its faults. The same seed gives the same sequence; its timing depends on the machine. */
interface Target {
  /** Longest pause between two faults. Targets are independent of each other. Milliseconds. */
  pauseMaxMs: number;
  next(random: SeededRandom): Fault;
  /** Inflicts a fault and undoes it. Returns false if there was nothing to inflict it on. */
  inflict(scene: Scene, fault: Fault): Promise<unknown>;
}

function target<Action extends string>(
  pauseMaxMs: number,
  next: (random: SeededRandom) => Fault<Action>,
  inflict: (scene: Scene, fault: Fault<Action>) => Promise<unknown>,
): Target {
  return { pauseMaxMs, next, inflict } as Target;
}

/** How far the database's clock may be from the host's. Milliseconds. */
const CLOCK_MAX_MS = 8_000;
/** Probability that a freeze of the first worker outlives the locks of its jobs (15 s, checked every 5 s). */
const LONG_FREEZE_CHANCE = 0.1;
/** How long docs/operations.md tells operators to wait after SIGTERM. A process drains for 15 s, and needs more on a busy machine. Milliseconds. */
const DRAIN_MAX_MS = 20_000;
/** Time for jobs to gather before a failover, so that the replica has some that no worker has started. Milliseconds. */
const GATHER_MS = 500;
/** Time for a restarted Postgres to recover and for callers to repeat their requests. Milliseconds. */
const RETRIED_MS = 2_500;
/** Time for Postgres to recover before a fault that needs it. Milliseconds. */
export const RECOVERED_MS = 120_000;
/** Long enough that a replica or a standby takes over: they notice the loss after two or three seconds. Milliseconds. */
const takeover = (random: SeededRandom) => random.between(4_000, 7_000);

const ofProcess = (pauseMaxMs: number, find: (cluster: Cluster) => ServiceProcess | undefined, longChance = 0) =>
  target(
    pauseMaxMs,
    (random) => {
      const action = random.weigh({ kill: 5, freeze: 4, terminate: 1 });
      const isLong = longChance > 0 && random.chance(longChance);
      if (action !== "freeze") return { action, forMs: random.between(0, 500) };
      return { action, forMs: isLong ? random.between(16_000, 24_000) : random.between(100, 2_500) };
    },
    async ({ cluster, pause }, { action, forMs }) => {
      const process = find(cluster);
      if (process === undefined) throw new Error("there is no such process");
      if (action === "freeze") process.freeze();
      else if (action === "kill") await process.kill();
      else {
        const startedAt = performance.now();
        await process.terminate();
        const tookMs = performance.now() - startedAt;
        if (tookMs > DRAIN_MAX_MS) cluster.accidents.push(`${process.name} took ${tookMs} ms to end after SIGTERM`);
      }
      await pause(forMs);
      process.thaw();
      process.start();
    },
  );

/** Starts processes that share the servers, and kills them. */
const ofSharing = (name: "secondDeployment" | "copyOfDatabase") =>
  target(15_000, shareFor, async (stage, { forMs }) => {
    const processes = processesOf(stage[name]);
    for (const process of processes) process.start();
    await stage.pause(forMs);
    await Promise.all(processes.map((process) => process.kill()));
  });

function shareFor(random: SeededRandom) {
  return { action: "share", forMs: random.between(5_000, 9_000) };
}

type PostgresAction = "kill" | "killOne" | "freeze" | "lockRows" | "stallCommits" | "crashAndPromote";

const TARGETS = {
  "api 0": ofProcess(4_000, ({ apis }) => apis[0]?.process),
  "api 1": ofProcess(4_000, ({ apis }) => apis[1]?.process),
  "worker 0": ofProcess(1_500, ({ workers }) => workers[0], LONG_FREEZE_CHANCE),
  "worker 1": ofProcess(1_500, ({ workers }) => workers[1]),
  allWorkers: target(
    10_000,
    (random) =>
      random.chance(0.5)
        ? { action: "kill", forMs: random.between(500, 3_000) }
        : // Longer than the wait of a redeem, so that frozen jobs outlive their deadlines.
          { action: "freeze", forMs: random.between(3_500, 5_500) },
    async ({ cluster: { workers }, pause }, { action, forMs }) => {
      if (action === "kill") await Promise.all(workers.map((worker) => worker.kill()));
      else for (const worker of workers) worker.freeze();
      await pause(forMs);
      for (const worker of workers) {
        worker.thaw();
        worker.start();
      }
    },
  ),
  redis: target(
    4_000,
    (random) => {
      const weights = { kill: 2, killAndLoseTail: 3, killAndLoseEverything: 1, freeze: 3, failOver: 1 };
      const action = random.weigh(weights);
      // Long enough for callers to get their answers before the failover ends.
      return { action, forMs: action === "failOver" ? random.between(3_500, 5_000) : random.between(0, 1_200) };
    },
    async ({ cluster: { redis, replica, workerWire }, pause }, { action, forMs }) => {
      if (action === "failOver") {
        // The workers follow the new primary; the API processes stay with the old one.
        await replica.start();
        await replica.follow(redis);
        workerWire.jam();
        await pause(GATHER_MS);
        await replica.promote();
        workerWire.lead(replica.url);
        await pause(forMs);
        workerWire.lead(redis.url);
        return replica.kill("Everything");
      }
      if (action === "freeze") redis.freeze();
      if (action === "kill") await redis.kill("Nothing");
      if (action === "killAndLoseTail") await redis.kill("AppendOnlyTail");
      if (action === "killAndLoseEverything") await redis.kill("Everything");
      await pause(forMs);
      redis.thaw();
      return redis.start();
    },
  ),
  postgres: target<PostgresAction>(
    5_000,
    (random) => {
      const weights = { kill: 3, killOne: 3, freeze: 2, lockRows: 3, stallCommits: 3, crashAndPromote: 2 };
      const action = random.weigh(weights);
      return { action, forMs: action === "killOne" ? 0 : random.between(100, 2_500) };
    },
    (scene, fault) => scene.postgresTurn(() => inflictOnPostgres(scene, fault)),
  ),
  sessions: target(
    130,
    (random) => ({ action: random.pick(["cancel", "terminate"]), forMs: 0 }),
    // Cancels a statement of the service, or ends one of its connections.
    async ({ cluster: { db } }, { action }) => {
      const busy = action === "cancel" ? "AND state <> 'idle'" : "";
      const query = `SELECT pg_${action}_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'pva\\_%' ${busy} ORDER BY random() LIMIT 1`;
      const ended = await db.query(query).catch(() => null);
      return (ended?.rowCount ?? 0) > 0;
    },
  ),
  clock: target(
    4_000,
    // The time by which the clock is stepped.
    (random) => ({ action: "step", forMs: random.between(-CLOCK_MAX_MS, CLOCK_MAX_MS) }),
    ({ cluster }, { forMs }) => cluster.postgres.clock.set(forMs),
  ),
  receivers: target(
    600,
    (random) => ({ action: random.pick(HOSTILE_KINDS), forMs: random.between(0, 2_000) }),
    async ({ enableReceivers, pause }, { action, forMs }) => {
      await enableReceivers(action, true);
      await pause(forMs);
      await enableReceivers(action, false);
    },
  ),
  secondDeployment: ofSharing("secondDeployment"),
  copyOfDatabase: ofSharing("copyOfDatabase"),
  hotCopy: target(15_000, shareFor, async ({ cluster, postgresTurn, pause, violations }, { forMs }) => {
    const copy = await postgresTurn(() => cluster.startHotCopy());
    await pause(forMs);
    const made = await copy.stop();
    if (made > 0) violations.push(violation("a hot copy of the database redeems nothing", `it made ${made}`));
  }),
  redisCluster: target(
    6_000,
    (random) => {
      const weights = { killMaster: 3, killReplyMaster: 2, freezeMaster: 2, promoteStale: 3, moveSlots: 2 };
      return { action: random.weigh(weights), forMs: takeover(random) };
    },
    async ({ cluster: { redisCluster }, random, pause }, { action, forMs }) => {
      if (redisCluster === null) throw new Error("there is no Redis Cluster");
      const masters = await redisCluster.masters();
      const anyMaster = random.pick(masters);
      if (action === "moveSlots") {
        // Most keys are those of queues.
        const key = await anyMaster.client.randomkey();
        if (key === null) return false;
        const slot = await anyMaster.client.cluster("KEYSLOT", key);
        return redisCluster.moveSlots([slot], random.pick(masters.filter((master) => master !== anyMaster)));
      }
      if (action === "freezeMaster") anyMaster.freeze();
      if (action === "killMaster") await anyMaster.kill();
      if (action === "killReplyMaster") {
        // The master that carries the replies to an API process.
        const list = ["SHARDCHANNELS", "vouchers:replies:*"];
        const channels = await Promise.all(masters.map(({ client }) => client.call("PUBSUB", ...list)));
        await (masters.find((_, index) => (channels[index] as string[]).length > 0) ?? anyMaster).kill();
      }
      if (action === "promoteStale") {
        // The replica misses what the master does until it dies.
        const replica = await redisCluster.replicaOf(anyMaster);
        replica.freeze();
        await anyMaster.client.call("CLIENT", "KILL", "TYPE", "replica");
        await pause(GATHER_MS);
        await anyMaster.kill();
        replica.thaw();
      }
      await pause(forMs);
      return redisCluster.heal();
    },
  ),
  postgresNodes: target<PostgresAction>(
    15_000,
    (random) => ({ action: random.weigh({ kill: 4, killOne: 2, freeze: 3, lockRows: 1 }), forMs: takeover(random) }),
    async (scene, fault) => {
      await inflictOnPostgres(scene, fault);
      // The next fault needs standbys.
      await scene.cluster.postgres.start();
    },
  ),
};

export type TargetName = keyof typeof TARGETS;
const ALL_TARGETS = Object.keys(TARGETS) as TargetName[];

/** The targets on one Redis and the embedded Postgres. */
export const TARGET_NAMES = ALL_TARGETS.filter((name) => name !== "redisCluster" && name !== "postgresNodes");

/** The targets on a Redis Cluster, with or without a Postgres that fails over. */
export function targetsOnCluster(postgresFailsOver: boolean): TargetName[] {
  const without = postgresFailsOver ? ["redis", "postgres", "clock", "hotCopy"] : ["redis", "postgresNodes"];
  return ALL_TARGETS.filter((name) => !without.includes(name));
}

/**
 * Inflicts each target's faults one after another, all targets at once, until a limit is met. Undoes every fault.
 * @throws when a fault could not be inflicted.
 */
export async function inflictFaults(
  stage: Stage,
  targets: readonly TargetName[],
  random: SeededRandom,
  { forMs, count = Number.POSITIVE_INFINITY }: { forMs: number; count?: number | undefined },
  interrupted: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  const over = AbortSignal.any([interrupted, enough.signal, AbortSignal.timeout(forMs)]);
  setMaxListeners(0, over);
  const pause = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => undefined);
  const postgresTurn = pLimit(1);
  let inflicted = 0;
  const endure = async (name: TargetName) => {
    const own = random.fork(name);
    const { pauseMaxMs, next, inflict } = TARGETS[name];
    for (;;) {
      const fault = next(own);
      await pause(own.between(50, pauseMaxMs));
      if (over.aborted) return;
      if ((await inflict({ ...stage, random: own, pause, postgresTurn }, fault)) === false) continue;
      const kind = `${name.split(" ")[0]} ${fault.action}`;
      stage.counts[kind] = (stage.counts[kind] ?? 0) + 1;
      inflicted += 1;
      if (inflicted >= count) enough.abort();
    }
  };
  const endAll = (error: unknown) => {
    enough.abort();
    throw error;
  };
  const ends = await Promise.allSettled(targets.map((name) => endure(name).catch(endAll)));
  if (stage.cluster.postgres.clock.hasStepped) await stage.cluster.postgres.clock.set(0);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

async function inflictOnPostgres(
  { cluster: { postgres, db }, upcomingVouchers, random, pause }: Scene,
  { action, forMs }: Fault<PostgresAction>,
): Promise<void> {
  switch (action) {
    case "killOne":
      return postgres.killOne(random);
    case "freeze":
      await postgres.freeze();
      await pause(forMs);
      return postgres.thaw();
    case "lockRows":
      await until(() => db.query("SELECT 1").catch(() => null), RECOVERED_MS);
      return besideTransaction(db, async (outside) => {
        const lock = "SELECT id FROM vouchers WHERE id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED";
        await outside.query(lock, [upcomingVouchers()]);
        await pause(forMs);
      });
    case "stallCommits": {
      // Commits wait for a standby that does not exist and keep their rows locked; reads go on.
      const waitFor = async (name: string) => {
        for (const statement of [`ALTER SYSTEM SET synchronous_standby_names = '${name}'`, "SELECT pg_reload_conf()"])
          await until(() => db.query(statement).catch(() => null), RECOVERED_MS);
      };
      await waitFor("nowhere");
      await pause(forMs);
      return waitFor(embedded(postgres).standbyNames);
    }
    case "crashAndPromote": {
      // It crashes while commits wait for a standby that is cut off, answers again, and then is lost: the standby takes over.
      const own = embedded(postgres);
      own.cutOffStandby();
      await pause(forMs);
      if (random.chance(0.5)) await own.killOne(random);
      else {
        await own.kill();
        await own.start();
      }
      // Callers repeat what was not answered.
      await pause(RETRIED_MS);
      await own.promoteStandby();
      return own.start();
    }
    case "kill":
      await postgres.kill();
      await pause(forMs);
      return postgres.start();
  }
}
