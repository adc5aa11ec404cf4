import type { Case } from "./cases.ts";
import { findContradiction, type Receipt } from "./check-answers.ts";
import type { RunningContender } from "./contenders.ts";
import { runLoad, type Unit } from "./load.ts";
import { readCpuMicros, readProcessorTime, withChildren } from "./process-usage.ts";
import type { BenchServers, Stage, Subject } from "./stage.ts";
import { quantile, type Round, type Series } from "./table.ts";

/** A running contender and its stage. */
export interface Player {
  running: RunningContender;
  stage: Stage;
}

export interface PlayOptions {
  rounds: number;
  /** Length of a turn. */
  seconds: number;
  /**
   * Seconds of warm-up load before the first turn of each case, so that the JIT compiles the code. Before that, a redeem takes a third
   * more CPU time.
   */
  warmUpSeconds: number;
  signal: AbortSignal;
  say: (line: string) => void;
}

/** Load before each later turn, until the connections are open. */
const LEAD_SECONDS = 1;
/** The warm-up load is played in parts of this length, each of which gets its supply at the rate of the last one. */
const PART_SECONDS = 2;
/** Length of the first part, whose rate is only assumed. */
const FIRST_PART_SECONDS = 0.5;
/** Assumed units per second of a first part. */
export const FIRST_RATE = 1_000;
/** Supply for a turn as a multiple of what the previous one used. */
const SUPPLY_FACTOR = 2;

let turns = 0;

/**
 * Lets contenders take turns, round after round, so that other load on the machine affects all of them alike. The others are idle.
 * @throws Error on a wrong answer.
 */
export async function playCase(
  servers: BenchServers,
  loadCase: Case,
  connections: number,
  players: readonly Player[],
  { rounds, seconds, warmUpSeconds, signal, say }: PlayOptions,
): Promise<Series[]> {
  const series = players.map(({ running }): Series => ({ contender: running.id, rounds: [] }));
  const rates = players.map(() => FIRST_RATE);
  for (let round = 1; round <= rounds; round++) {
    for (const [index, player] of players.entries()) {
      const play = async (turnSeconds: number): Promise<Round> => {
        const rate = rates[index] as number;
        const wanted = rate * turnSeconds * SUPPLY_FACTOR + 2 * connections;
        await player.stage.ensure(loadCase.supply, Math.ceil(wanted));
        const played = await playTurn(servers, loadCase, connections, player, turnSeconds, signal);
        rates[index] = played.isCut ? Math.max(played.rate, rate * SUPPLY_FACTOR) : played.rate;
        // The supply did not last, because the contender got faster: the turn does not count.
        return played.isCut ? play(turnSeconds) : played;
      };
      for (const part of round === 1 ? warmUpParts(warmUpSeconds) : [LEAD_SECONDS]) await play(part);
      const played = await play(seconds);
      series[index]?.rounds.push(played);
      say(`${loadCase.title}, ${connections}, round ${round}, ${player.running.id}: ${Math.round(played.rate)}/s`);
    }
  }
  return series;
}

/** NaN without values. */
function sum(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : values.reduce((total, value) => total + value, 0);
}

function warmUpParts(seconds: number): number[] {
  const parts = Math.max(0, Math.ceil((seconds - FIRST_PART_SECONDS) / PART_SECONDS));
  return [FIRST_PART_SECONDS, ...Array<number>(parts).fill(PART_SECONDS)];
}

async function playTurn(
  servers: BenchServers,
  loadCase: Case,
  connections: number,
  { running, stage }: Player,
  seconds: number,
  signal: AbortSignal,
): Promise<Round & { isCut: boolean }> {
  const turn = `turn-${++turns}`;
  const pool = stage[loadCase.supply];
  const isUsedUp = loadCase.proof !== null && running.id !== "c";
  const asked: Subject[] = [];
  const nextUnit = () => {
    const subject = isUsedUp ? pool.pop() : pool[asked.length % pool.length];
    if (subject === undefined) return undefined;
    asked.push(subject);
    return { subject, reference: `${turn}-${asked.length}` };
  };
  const before = await readUsage(servers, running, stage);
  const load = { ports: running.ports, connections, seconds, steps: loadCase.steps(stage), nextUnit, signal };
  const {
    units,
    seconds: elapsed,
    isCut,
  } = await runLoad(load).catch((cause) => {
    throw new Error(`${loadCase.title}, ${running.id}: ${cause.message}`, { cause });
  });
  const after = await readUsage(servers, running, stage);
  running.check();
  // (c) answers a constant.
  if (running.id !== "c") await checkAnswers(loadCase, running, stage, asked, units);
  await loadCase.afterwards?.(stage, running.redisUrl);
  const latencies = units.map(({ latencyMs }) => latencyMs).sort((one, other) => one - other);
  const spent = (who: keyof typeof after.cpu) => (after.cpu[who] - before.cpu[who]) / units.length;
  const redisServers = after.redisServers.map((cpu, n) => (cpu - (before.redisServers[n] as number)) / units.length);
  const { idle, all } = { idle: after.idle - before.idle, all: after.all - before.all };
  return {
    isCut,
    rate: units.length / elapsed,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    cpu: {
      ...{ api: spent("api"), worker: spent("worker"), redis: spent("redis"), postgres: spent("postgres") },
      client: spent("client"),
    },
    redisServers,
    walBytes: (after.walBytes - before.walBytes) / units.length,
    commits: (after.transactions - before.transactions) / units.length,
    idleShare: idle / all,
  };
}

async function checkAnswers(
  { title, isRight, proof }: Case,
  { id }: RunningContender,
  { db }: Stage,
  asked: readonly Subject[],
  units: readonly Unit[],
): Promise<void> {
  const wrong = units.find((unit) => !isRight(unit));
  if (wrong !== undefined) throw new Error(`${title}, ${id}: about ${wrong.subject.id}: ${wrong.body}`);
  if (proof === null) return;
  const { rows } = await db.query<Receipt>(proof.sql, [asked.map((subject) => subject.id)]);
  const answered = units.map((unit) => ({ subject: unit.subject.id, receipt: proof.receipt(unit) }));
  const contradiction = findContradiction(answered, rows);
  if (contradiction !== null) throw new Error(`${title}, ${id}: ${contradiction}`);
}

/** What was used so far. CPU times are in microseconds. */
async function readUsage({ postgresPid }: BenchServers, running: RunningContender, { db }: Stage) {
  const { rows } = await db.query<{ walBytes: string; transactions: string }>(
    `SELECT pg_current_wal_insert_lsn() - '0/0' AS "walBytes", pg_snapshot_xmax(pg_current_snapshot())::text AS transactions`,
  );
  const { user, system } = process.cpuUsage();
  const redisServers = running.redisPids.map((pid) => readCpuMicros([pid]));
  return {
    cpu: {
      api: readCpuMicros(running.apiPids),
      worker: readCpuMicros(running.workerPids),
      redis: sum(redisServers),
      postgres: readCpuMicros(withChildren(postgresPid)),
      client: user + system,
    },
    redisServers,
    walBytes: Number(rows[0]?.walBytes),
    /** Those that wrote. */
    transactions: Number(rows[0]?.transactions),
    ...readProcessorTime(),
  };
}
