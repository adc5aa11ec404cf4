import type { Case } from "./cases.ts";
import { runCeiling } from "./ceiling.ts";
import type { RunningContender } from "./contenders.ts";
import { runLoad, runQuietly, type Unit } from "./load.ts";
import { processesFor, readCpuMicros, withChildren } from "./process-usage.ts";
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
   * Load before the first turn of each case, so that the JIT compiles the code. Before that, a redeem takes a third
   * more CPU time. Seconds.
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
const FIRST_RATE = 1_000;
/** Supply for a turn as a multiple of what the previous one used. */
const SUPPLY_FACTOR = 2;

let turns = 0;

/**
 * Lets contenders take turns, round after round, so that other load on the machine affects all of them alike. The
 * others are idle.
 * @throws Error on a wrong answer.
 */
export async function playCase(
  servers: BenchServers,
  loadCase: Case,
  connections: number,
  players: readonly Player[],
  { rounds, seconds, warmUpSeconds, signal, say }: PlayOptions,
): Promise<Series[]> {
  const warmUps = Math.max(0, Math.ceil((warmUpSeconds - FIRST_PART_SECONDS) / PART_SECONDS));
  const warmUp = [FIRST_PART_SECONDS, ...Array<number>(warmUps).fill(PART_SECONDS)];
  const series = players.map(({ running }): Series => ({ contender: running.id, rounds: [] }));
  const rates = players.map(() => FIRST_RATE);
  for (let round = 1; round <= rounds; round++) {
    for (const [index, player] of players.entries()) {
      const play = async (turnSeconds: number): Promise<Round> => {
        const rate = rates[index] as number;
        const wanted = rate * turnSeconds * SUPPLY_FACTOR + 2 * connections;
        if (loadCase.everyMs === undefined) await player.stage.ensure(loadCase.supply, Math.ceil(wanted));
        const played = await playTurn(servers, loadCase, connections, player, turnSeconds, signal);
        rates[index] = played.isCut ? Math.max(played.rate, rate * SUPPLY_FACTOR) : played.rate;
        // The supply did not last, because the contender got faster: the turn does not count.
        return played.isCut ? play(turnSeconds) : played;
      };
      const lead = round === 1 ? warmUp : [LEAD_SECONDS];
      for (const part of loadCase.everyMs === undefined ? lead : []) await play(part);
      const played = await play(seconds);
      series[index]?.rounds.push(played);
      say(`${loadCase.title}, ${connections}, round ${round}, ${player.running.id}: ${Math.round(played.rate)}/s`);
    }
  }
  return series;
}

async function playTurn(
  servers: BenchServers,
  loadCase: Case,
  connections: number,
  player: Player,
  seconds: number,
  signal: AbortSignal,
): Promise<Round & { isCut: boolean }> {
  const { running, stage } = player;
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
  const walBefore = await readWalBytes(stage);
  const before = readUsage(servers, player);
  const load = { ports: running.ports, connections, seconds, steps: loadCase.steps(stage), nextUnit, signal };
  const play = () => {
    if (loadCase.everyMs !== undefined) return runQuietly(load, loadCase.everyMs);
    return running.id === "i" ? runCeiling(stage, { ...load, calls: pool.length }) : runLoad(load);
  };
  const played = await play().catch((cause) => {
    throw new Error(`${loadCase.title}, ${running.id}: ${cause.message}`, { cause });
  });
  const { units, isCut } = played;
  const after = readUsage(servers, player);
  const walAfter = await readWalBytes(stage);
  running.check();
  // (c) answers a constant.
  if (running.id !== "c") await checkAnswers(loadCase, running, stage, asked, units);
  await loadCase.afterwards?.(stage, running.redisUrl);
  const latencies = units.map(({ latencyMs }) => latencyMs);
  const spent = (who: keyof Round["cpu"]) => (after[who] - before[who]) / units.length;
  return {
    isCut,
    rate: units.length / played.seconds,
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    cpu: {
      api: spent("api"),
      worker: spent("worker"),
      redis: spent("redis"),
      postgres: spent("postgres"),
      client: spent("client"),
    },
    walBytes: (walAfter - walBefore) / units.length,
  };
}

/** The CPU time used so far, in microseconds. NaN for a Redis in a container. */
function readUsage({ postgresPid }: BenchServers, { running, stage }: Player): Round["cpu"] {
  const { user, system } = process.cpuUsage();
  return {
    api: readCpuMicros(running.apiPids),
    // Some contenders start a server of their own.
    worker: readCpuMicros(running.workerPids.flatMap(withChildren)),
    redis: running.redisPids.length === 0 ? Number.NaN : readCpuMicros(running.redisPids),
    postgres: readCpuMicros(processesFor(postgresPid, new URL(stage.databaseUrl).pathname.slice(1))),
    client: user + system,
  };
}

/** The write-ahead log that the server has written so far, in bytes. */
async function readWalBytes({ db }: Stage): Promise<number> {
  const { rows } = await db.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS bytes");
  return Number(rows[0]?.bytes);
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

/** A subject and what it received, which only one subject may have: a redeem code, a ticket or a voucher. */
interface Receipt {
  subject: string;
  receipt: string;
}

/**
 * Compares answers with the database. The database may contain results whose answers the client did not wait for.
 * @returns the first contradiction, or null.
 */
export function findContradiction(answered: readonly Receipt[], stored: readonly Receipt[]): string | null {
  const receiptOf = new Map<string, string>();
  const issued = new Set<string>();
  for (const { subject, receipt } of stored) {
    if (receiptOf.has(subject)) return `${subject} is in the database twice`;
    if (issued.has(receipt)) return `${receipt} was issued twice`;
    receiptOf.set(subject, receipt);
    issued.add(receipt);
  }
  const seen = new Set<string>();
  for (const { subject, receipt } of answered) {
    if (seen.has(subject)) return `${subject} was answered twice`;
    seen.add(subject);
    const found = receiptOf.get(subject) ?? "nothing";
    if (found !== receipt) return `${subject} was answered ${receipt}, the database contains ${found}`;
  }
  return null;
}
