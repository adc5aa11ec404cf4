import { setMaxListeners } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import pLimit from "p-limit";
import { HOSTILE_KINDS } from "../../support/hostile-receiver.ts";
import { until, untilStarted } from "../../support/until.ts";
import { untilReady, violation } from "./checker.ts";
import { type Cluster, processesOf } from "./cluster.ts";
import { type Fault, type Scene, type Stage, type Turn, takeover, target } from "./fault-target.ts";
import { FLOOD_KINDS, flood } from "./floods.ts";
import { lockedRowsOnClusterTarget, lockedRowsTarget } from "./locked-rows.ts";
import { inflictOnPostgres, type PostgresAction } from "./postgres-faults.ts";
import { redisClusterTarget, redisTarget } from "./redis-faults.ts";
import { repeatedActsTarget } from "./repeated-acts.ts";
import type { SeededRandom } from "./seeded-random.ts";
import type { ServiceProcess } from "./service-process.ts";
import { setBackTarget } from "./set-back.ts";

/**
 * Maximum difference between the database's clock and the host's after a step. Even two such steps together are too
 * small for a process to count as a jump. Milliseconds.
 */
const CLOCK_MAX_MS = 4_500;
/** By how much a jump moves the database's clock, until the target's next fault. Milliseconds. */
const CLOCK_JUMPS_MS = [-365 * 86_400_000, 365 * 86_400_000];
/** The durations of a process's long freezes, and the share of long ones among all freezes. */
interface LongFreezes {
  chance: number;
  fromMs: number;
  toMs: number;
}

/** Freezes longer than the locks of a worker's jobs (15 s, checked every 5 s). */
const OUTLIVING_LOCKS: LongFreezes = { chance: 0.1, fromMs: 16_000, toMs: 24_000 };
/** Freezes longer than the run's reservations, and longer than callers wait before they use another API process. */
const OUTLIVING_CALLERS: LongFreezes = { chance: 0.4, fromMs: 4_000, toMs: 6_500 };
/** After SIGTERM, a process drains for at most 15 s. The rest is for a slow machine. Milliseconds. */
const DRAIN_MAX_MS = 60_000;

/** Waits until a process serves, after its last start. */
function hasStarted(process: ServiceProcess): Promise<boolean> {
  return untilStarted(() => process.hasLogged("listening") || process.hasLogged("working"));
}

const ofProcess = (
  pauseMaxMs: number,
  find: (cluster: Cluster) => ServiceProcess | undefined,
  long: LongFreezes | null = null,
) =>
  target(
    pauseMaxMs,
    (random) => {
      const action = random.weigh({ kill: 5, freeze: 4, terminate: 1 });
      const isLong = long !== null && random.chance(long.chance);
      if (action !== "freeze") return { action, forMs: random.between(0, 500) };
      return { action, forMs: isLong ? random.between(long.fromMs, long.toMs) : random.between(100, 2_500) };
    },
    async ({ cluster, pause }, { action, forMs }) => {
      const process = find(cluster);
      if (process === undefined) throw new Error("there is no such process");
      // On a busy machine, a start takes longer than the pauses between faults. Without this wait, no call would
      // succeed.
      if (!(await hasStarted(process).catch(() => false))) return false;
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

/** Makes a target of processes that share the cluster's servers. Its faults start and kill these processes. */
const ofSharing = (name: "secondDeployment" | "copyOfDatabase") =>
  target(15_000, shareFor, async (stage, { forMs }) => {
    const processes = processesOf(stage[name]);
    // A process that starts while no other process runs cannot detect that the server has older files than before.
    const started = await stage.startTurn(async () => {
      for (const process of processes) process.start();
      await untilReady(stage[name]).catch(() => undefined);
    });
    if (started === false) return false;
    await stage.pause(forMs);
    return Promise.all(processes.map((process) => process.kill()));
  });

/**
 * Starts a copy of the running server, on its timeline or a later one, with an API process, a worker or both. These
 * processes must not change any data. The original must make marks first, because the processes would rightly prefer a
 * copy to a server without marks.
 */
async function runHotCopy({ cluster, random, pause, violations }: Scene, { action, forMs }: Fault) {
  const isReady = await untilReady(cluster).then(
    () => true,
    () => false,
  );
  if (!isReady) return false;
  const copy = await cluster.startHotCopy();
  try {
    if (action === "shareLate") await pause(forMs);
    if (action === "promote" || action === "shareLate") await copy.promote();
    const processes = random.pick([[copy.worker], [copy.api.process], [copy.worker, copy.api.process]]);
    for (const process of processes) process.start();
    await pause(forMs);
    if (action === "shareThenPromote") {
      await copy.promote();
      await pause(forMs);
    }
  } finally {
    const made = await copy.stop();
    if (made > 0)
      violations.push(violation("a hot copy of the database changes nothing", `${action}: it made ${made}`));
  }
}

function shareFor(random: SeededRandom) {
  return { action: "share", forMs: random.between(5_000, 9_000) };
}

const TARGETS = {
  "api 0": ofProcess(4_000, ({ apis }) => apis[0]?.process, OUTLIVING_CALLERS),
  "api 1": ofProcess(4_000, ({ apis }) => apis[1]?.process, OUTLIVING_CALLERS),
  "worker 0": ofProcess(1_500, ({ workers }) => workers[0], OUTLIVING_LOCKS),
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
  redis: redisTarget,
  postgres: target<PostgresAction>(
    5_000,
    (random) => {
      const weights = { kill: 3, killOne: 3, freeze: 2, lockRows: 3, stallCommits: 3, crashAndPromote: 2 };
      const action = random.weigh({ ...weights, endWaitsAndPromote: 2 });
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
      const query = `SELECT pg_${action}_backend(pid) FROM pg_stat_activity
                      WHERE usename LIKE 'pva\\_%' ${busy} ORDER BY random() LIMIT 1`;
      const ended = await db.query(query).catch(() => null);
      return (ended?.rowCount ?? 0) > 0;
    },
  ),
  clock: target(
    4_000,
    // Here `forMs` is the difference between the database's clock and the host's.
    (random) => {
      const action = random.weigh({ step: 3, jump: 2 });
      return {
        action,
        forMs: action === "step" ? random.between(-CLOCK_MAX_MS, CLOCK_MAX_MS) : random.pick(CLOCK_JUMPS_MS),
      };
    },
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
  hotCopy: target(
    15_000,
    (random) => ({
      action: random.pick(["share", "promote", "shareThenPromote", "shareLate"]),
      forMs: random.between(5_000, 9_000),
    }),
    // No other fault of Postgres runs meanwhile, because a copy rightly replaces an original that makes no marks.
    (scene, fault) => scene.postgresTurn(() => runHotCopy(scene, fault)),
  ),
  redisCluster: redisClusterTarget,
  postgresNodes: target<PostgresAction>(
    15_000,
    (random) => ({ action: random.weigh({ kill: 4, killOne: 2, freeze: 3, lockRows: 1 }), forMs: takeover(random) }),
    (scene, fault) =>
      scene.postgresTurn(async () => {
        // A standby may take over now, or after the primary was thawed.
        const fromMs = performance.now();
        await inflictOnPostgres(scene, fault);
        // The next fault needs standbys.
        await scene.cluster.postgres.start();
        if (fault.action !== "lockRows") scene.onPrimaryLost(fromMs);
      }),
  ),
  setBack: setBackTarget,
  repeatedActs: repeatedActsTarget,
  lockedRows: lockedRowsTarget,
  "lockedRows on a Redis Cluster": lockedRowsOnClusterTarget,
  floods: target(
    2_500,
    (random) => ({ action: random.pick(FLOOD_KINDS), forMs: random.between(500, 2_000) }),
    async ({ cluster: { apis }, flooder, random, pause, violations }, { action, forMs }) => {
      let isOver = false;
      const flooded = flood(action, random.pick(apis), flooder, random, () => isOver);
      await pause(forMs);
      isOver = true;
      violations.push(...(await flooded));
    },
  ),
};

export type TargetName = keyof typeof TARGETS;
const ALL_TARGETS = Object.keys(TARGETS) as TargetName[];

const ON_CLUSTER: TargetName[] = ["redisCluster", "lockedRows on a Redis Cluster"];
const ON_ONE_REDIS: TargetName[] = ["redis", "lockedRows"];
const ON_EMBEDDED_POSTGRES: TargetName[] = ["postgres", "clock", "hotCopy", "setBack", "repeatedActs"];

/** The targets on one Redis and the embedded Postgres. */
export const TARGET_NAMES = ALL_TARGETS.filter((name) => !ON_CLUSTER.includes(name) && name !== "postgresNodes");

/** The targets on a Redis Cluster, with or without a Postgres that fails over. */
export function targetsOnCluster(postgresFailsOver: boolean): TargetName[] {
  const without = [...ON_ONE_REDIS, ...(postgresFailsOver ? ON_EMBEDDED_POSTGRES : ["postgresNodes"])];
  return ALL_TARGETS.filter((name) => !without.includes(name));
}

interface Length {
  forMs: number;
  /** Ends them after this number. */
  count?: number | undefined;
  /**
   * If this does not hold after `forMs`, faults continue more rarely until it does, but not longer than `LATE_MAX_MS`.
   */
  isEnough: () => boolean;
}

/** Maximum additional time for `isEnough`. Milliseconds. */
const LATE_MAX_MS = 900_000;

/**
 * Inflicts faults on all targets at once, one after another on each, until a limit is reached. Undoes every fault.
 * @throws if a fault could not be inflicted.
 */
export async function inflictFaults(
  stage: Stage,
  targets: readonly TargetName[],
  random: SeededRandom,
  { forMs, count = Number.POSITIVE_INFINITY, isEnough }: Length,
  interrupted: AbortSignal,
): Promise<void> {
  const enough = new AbortController();
  const over = AbortSignal.any([interrupted, enough.signal]);
  setMaxListeners(0, over);
  const pause = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => undefined);
  const openTurn = (): Turn => {
    const limit = pLimit(1);
    return (work) => limit(async () => (over.aborted ? false : work()));
  };
  const [postgresTurn, redisTurn, startTurn] = [openTurn(), openTurn(), openTurn()];
  void pause(forMs)
    .then(() => until(() => over.aborted || isEnough(), LATE_MAX_MS))
    .catch(() => undefined)
    .finally(() => enough.abort());
  const startedAt = performance.now();
  /** The factor by which pauses grow after `forMs`. On a slow machine, few calls succeed between frequent faults. */
  const rarity = () => Math.max(1, (performance.now() - startedAt) / forMs);
  let inflicted = 0;
  const endure = async (name: TargetName) => {
    const own = random.fork(name);
    const { pauseMaxMs, next, inflict } = TARGETS[name];
    for (let isFirst = true; ; ) {
      const fault = next(own);
      await pause(own.between(50, pauseMaxMs) * (isFirst ? 1 : rarity()));
      if (over.aborted) return;
      if ((await inflict({ ...stage, random: own, pause, postgresTurn, redisTurn, startTurn }, fault)) === false)
        continue;
      const kind = `${name.split(" ")[0]} ${fault.action}`;
      stage.counts[kind] = (stage.counts[kind] ?? 0) + 1;
      isFirst = false;
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
