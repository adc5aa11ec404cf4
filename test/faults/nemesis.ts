import { setTimeout as sleep } from "node:timers/promises";
import type { Cluster } from "./cluster.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Everything that can be done to the service, by target. */
export type Fault = {
  /** From the start of the run. Milliseconds. */
  atMs: number;
  /** Until it is undone. Milliseconds. */
  forMs: number;
} & (
  | { target: "api" | "worker"; index: number; action: "kill" | "freeze" | "terminate" }
  | { target: "redis"; action: "kill" | "killAndLoseTail" | "killAndLoseEverything" | "freeze" }
  | { target: "postgres"; action: "kill" | "killOne" | "freeze" }
);

/** What was done, counted. */
export type FaultCounts = Record<string, number>;

const TARGETS = { "api 0": 3, "api 1": 3, "worker 0": 4, "worker 1": 4, redis: 4, postgres: 4 };
type TargetName = keyof typeof TARGETS;

const PROCESS_ACTIONS = { kill: 5, freeze: 4, terminate: 1 };
const REDIS_ACTIONS = { kill: 2, killAndLoseTail: 3, killAndLoseEverything: 1, freeze: 3 };
const POSTGRES_ACTIONS = { kill: 3, killOne: 2, freeze: 2 };

/**
 * How often a worker is frozen for longer than its jobs stay locked (15 s, looked at every 5 s), if there is time and the other
 * one is not.
 */
const LONG_FREEZE_CHANCE = 0.2;
const LONG_FREEZE_MS = { min: 16_000, max: 24_000 };
/** What a target gets to come back before the next fault meets it: some faults shall meet a service at work. */
const RECOVERY_MS = { min: 100, max: 3_000 };
/** Between two faults; every fifth comes together with the one before. */
const GAP_MS = { min: 100, max: 2_000 };
const TOGETHER_CHANCE = 0.2;

/**
 * The faults of a run of this length, in order. The same seed gives the same faults at the same times; what the service is doing
 * when they come is up to the machine, so a run is repeated and never replayed to the letter.
 */
export function planFaults(random: SeededRandom, runMs: number): Fault[] {
  const faults: Fault[] = [];
  const busyUntilMs = new Map<TargetName, number>();
  let longFreezeUntilMs = 0;
  for (let atMs = 1_000; ; ) {
    if (!random.chance(TOGETHER_CHANCE)) atMs += random.between(GAP_MS.min, GAP_MS.max);
    if (atMs >= runMs) return faults;
    const target = random.weigh(TARGETS);
    const fault = planFault(random, target, atMs);
    const long = fault.forMs >= LONG_FREEZE_MS.min;
    const refused = (busyUntilMs.get(target) ?? 0) > atMs || (long && longFreezeUntilMs > atMs);
    if (refused || atMs + fault.forMs > runMs) {
      // Draws that come to nothing must still move on.
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
    return { target, action, atMs, forMs: action === "freeze" ? random.between(200, 4_000) : random.between(0, 1_500) };
  }
  if (target === "postgres") {
    const action = random.weigh(POSTGRES_ACTIONS);
    const forMs = { kill: random.between(0, 1_500), killOne: 0, freeze: random.between(200, 4_500) }[action];
    return { target, action, atMs, forMs };
  }
  const [kind, index] = target.split(" ") as ["api" | "worker", string];
  const action = random.weigh(PROCESS_ACTIONS);
  const long = kind === "worker" && random.chance(LONG_FREEZE_CHANCE);
  const { min, max } = long ? LONG_FREEZE_MS : { min: 200, max: 4_000 };
  const forMs = action === "freeze" ? random.between(min, max) : random.between(0, 1_500);
  return { target: kind, index: Number(index), action, atMs, forMs };
}

/**
 * Does the planned faults, each at its time, and undoes each after its while. Resolves when the last one is undone; rejects when
 * one could not be done.
 */
export async function inflictFaults(
  cluster: Cluster,
  faults: readonly Fault[],
  random: SeededRandom,
  counts: FaultCounts,
  signal: AbortSignal,
): Promise<void> {
  const startedAt = performance.now();
  /** A target that takes longer to come back than planned is not met by two faults at once. */
  const lastOn = new Map<string, Promise<void>>();
  const pause: Pause = (ms) => sleep(ms, undefined, { signal }).catch(() => undefined);
  for (const fault of faults) {
    await pause(Math.max(0, fault.atMs - (performance.now() - startedAt)));
    if (signal.aborted) break;
    const target = "index" in fault ? `${fault.target} ${fault.index}` : fault.target;
    const done = (lastOn.get(target) ?? Promise.resolve()).then(() => inflict(cluster, fault, random, counts, pause));
    done.catch(() => undefined);
    lastOn.set(target, done);
  }
  await Promise.all(lastOn.values());
}

/** Waits, or goes on at once when the run was given up: what was done is still undone. */
type Pause = (ms: number) => Promise<void>;

async function inflict(
  cluster: Cluster,
  fault: Fault,
  random: SeededRandom,
  counts: FaultCounts,
  pause: Pause,
): Promise<void> {
  const name = `${fault.target} ${fault.action}`;
  counts[name] = (counts[name] ?? 0) + 1;
  switch (fault.target) {
    case "api":
    case "worker":
      return inflictOnProcess(cluster, fault, pause);
    case "redis":
      return inflictOnRedis(cluster, fault, pause);
    case "postgres":
      return inflictOnPostgres(cluster, fault, random, pause);
  }
}

/** Time that a process has to drain, and what starting it takes on a busy machine (README: within 15 s). Milliseconds. */
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

async function inflictOnRedis(
  { redis }: Cluster,
  fault: Extract<Fault, { target: "redis" }>,
  pause: Pause,
): Promise<void> {
  if (fault.action === "freeze") {
    redis.freeze();
    await pause(fault.forMs);
    redis.thaw();
    return;
  }
  const loss = { kill: "Nothing", killAndLoseTail: "AppendOnlyTail", killAndLoseEverything: "Everything" } as const;
  await redis.kill(loss[fault.action]);
  await pause(fault.forMs);
  await redis.start();
}

async function inflictOnPostgres(
  { postgres }: Cluster,
  fault: Extract<Fault, { target: "postgres" }>,
  random: SeededRandom,
  pause: Pause,
): Promise<void> {
  if (fault.action === "killOne") return postgres.killOne(random);
  if (fault.action === "freeze") {
    postgres.freeze();
    await pause(fault.forMs);
    postgres.thaw();
    return;
  }
  await postgres.kill();
  await pause(fault.forMs);
  await postgres.start();
}
