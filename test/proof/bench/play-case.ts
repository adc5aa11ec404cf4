import type { Case } from "./cases.ts";
import { EXTRA_SECONDS, runCeiling } from "./ceiling.ts";
import type { ContenderId, RunningContender } from "./contenders.ts";
import { type Pace, runLoad, runQuietly, type Unit } from "./load.ts";
import { processesFor, readCpuMicros, withChildren } from "./process-usage.ts";
import { type BenchServers, type Stage, type Subject, tidy } from "./stage.ts";
import { quantile, type Round, type Series } from "./table.ts";

/** A running contender with its database and test data. */
export interface Player {
  running: RunningContender;
  stage: Stage;
}

export interface PlayOptions {
  rounds: number;
  seconds: number;
  /**
   * Load before the first turn of each case, until the JIT has compiled the code. Uncompiled code needs a third more
   * CPU time for a redeem. Seconds.
   */
  warmUpSeconds: number;
  /** Passes through the case's steps per second, in each turn. The warm-up sends as fast as `connections` allow. */
  rate?: number | undefined;
  signal: AbortSignal;
  say: (line: string) => void;
}

/** Load right before each measured turn, until connections are open and caches are filled. Seconds. */
const LEAD_SECONDS = 1;
/** Length of a part of the warm-up. Each part gets as many vouchers as the previous part's rate needs. Seconds. */
const PART_SECONDS = 2;
/** Length of the warm-up's first part, for which `FIRST_RATE` is assumed. Seconds. */
const FIRST_PART_SECONDS = 0.5;
/** Passes per second that are assumed for the warm-up's first part. */
const FIRST_RATE = 1_000;
/** A turn gets this many times the vouchers that it needs at the contender's last rate. */
const SUPPLY_FACTOR = 2;

interface Game extends Omit<PlayOptions, "rounds"> {
  servers: BenchServers;
  loadCase: Case;
  connections: number;
}

interface Entrant {
  player: Player;
  rounds: Round[];
  /** The contender's units per second in its last turn with `connections`. */
  rate: number;
}

/** One turn. If `isLead`, its responses are not measured, and may be 503 because of a pause before it. */
interface Turn {
  seconds: number;
  pace: Pace;
  isLead: boolean;
}

let turns = 0;
/** The number of reads in all turns so far, so that each turn continues with subjects that its lead-in has not read. */
let reads = 0;

/**
 * Runs the contenders alternately in several rounds, so that other load on the machine affects all alike. A contender
 * is paused except in its own turns. The caller pauses all of them first.
 * @throws Error on a wrong answer.
 */
export async function playCase(
  servers: BenchServers,
  loadCase: Case,
  connections: number,
  players: readonly Player[],
  { rounds, ...options }: PlayOptions,
): Promise<Series[]> {
  const game: Game = { servers, loadCase, connections, ...options };
  const entrants = players.map((player): Entrant => ({ player, rounds: [], rate: FIRST_RATE }));
  for (let round = 1; round <= rounds; round++) {
    // Every second round in reverse, so that a machine that becomes slower affects all alike.
    for (const entrant of round % 2 === 1 ? entrants : entrants.toReversed()) {
      const { running, stage } = entrant.player;
      await running.resume();
      const played = await playRound(game, entrant, round === 1);
      entrant.rounds.push(played);
      // Vacuums now, so that autovacuum leaves this database alone while others are measured.
      if (loadCase.proof !== null) await tidy(stage);
      await running.pause();
      options.say(`${loadCase.title}, ${connections}, round ${round}, ${running.id}: ${Math.round(played.rate)}/s`);
    }
  }
  return entrants.map(({ player, rounds }) => ({ contender: player.running.id, rounds }));
}

/** Runs a contender's part of a round: the warm-up if it is the first round, the lead-in and the measured turn. */
async function playRound(game: Game, entrant: Entrant, isFirst: boolean): Promise<Round> {
  const { loadCase, connections, seconds, warmUpSeconds, rate } = game;
  const lead = (leadSeconds: number): Turn => ({ seconds: leadSeconds, pace: { connections }, isLead: true });
  const measured: Turn = { seconds, pace: rate === undefined ? { connections } : { rate }, isLead: false };
  if (loadCase.everyMs !== undefined) return playTurn(game, entrant.player, measured);
  if (isFirst) {
    const parts = Math.max(0, Math.ceil((warmUpSeconds - FIRST_PART_SECONDS) / PART_SECONDS));
    await playInSupply(game, entrant, [lead(FIRST_PART_SECONDS)]);
    for (let part = 0; part < parts; part++) await playInSupply(game, entrant, [lead(PART_SECONDS)]);
  }
  return playInSupply(game, entrant, [lead(LEAD_SECONDS), measured]);
}

/**
 * Runs turns one after another, with vouchers that exist before the first turn. If a contender became faster and the
 * vouchers run out, all turns are repeated with twice as many.
 */
async function playInSupply(game: Game, entrant: Entrant, wanted: readonly Turn[]): Promise<Round> {
  const { loadCase, connections } = game;
  const { running, stage } = entrant.player;
  const extra = running.id === "i" ? EXTRA_SECONDS : 0;
  const seconds = wanted.reduce((sum, turn) => sum + turn.seconds + extra, 0);
  for (;;) {
    const { rate } = entrant;
    // (c) uses no vouchers.
    const count = running.id === "c" ? 1 : rate * seconds * SUPPLY_FACTOR + 2 * connections;
    await stage.ensure(loadCase.supply, Math.ceil(count));
    let played: (Round & { isCut: boolean }) | undefined;
    for (const turn of wanted) {
      played = await playTurn(game, entrant.player, turn);
      if ("connections" in turn.pace) entrant.rate = played.rate;
      if (played.isCut) break;
    }
    if (played !== undefined && !played.isCut) return played;
    entrant.rate = Math.max(entrant.rate, rate * SUPPLY_FACTOR);
  }
}

async function playTurn(game: Game, player: Player, turn: Turn): Promise<Round & { isCut: boolean }> {
  const { servers, loadCase, signal } = game;
  const { running, stage } = player;
  const name = `turn-${++turns}`;
  const pool = stage[loadCase.supply];
  const isUsedUp = loadCase.proof !== null && running.id !== "c";
  const asked: Subject[] = [];
  const nextUnit = () => {
    const subject = isUsedUp ? pool.pop() : pool[reads++ % pool.length];
    if (subject === undefined) return undefined;
    asked.push(subject);
    return { subject, reference: `${name}-${asked.length}` };
  };
  const { seconds, pace } = turn;
  const load = { ports: running.ports, pace, seconds, steps: loadCase.steps(stage), nextUnit, signal };
  const read = async (): Promise<Meters> => ({ walBytes: await readWalBytes(stage), cpu: readUsage(servers, player) });
  const play = async () => {
    if (running.id === "i") return runCeiling(stage, { ...load, calls: pool.length }, read);
    const before = await read();
    const played =
      loadCase.everyMs === undefined
        ? await runLoad({ ...load, mayBeBusy: turn.isLead })
        : await runQuietly(load, loadCase.everyMs);
    return { ...played, before, after: await read() };
  };
  const { units, isCut, before, after, ...played } = await play().catch((cause) => {
    throw new Error(`${loadCase.title}, ${running.id}: ${cause.message}`, { cause });
  });
  running.check();
  // (c) answers a constant.
  if (running.id !== "c") await checkAnswers(loadCase, running, stage, asked, units);
  await loadCase.afterwards?.(stage, running.redisUrl);
  const latencies = units.map(({ latencyMs }) => latencyMs);
  const spent = (who: keyof Round["cpu"]) => (after.cpu[who] - before.cpu[who]) / units.length;
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
    walBytes: (after.walBytes - before.walBytes) / units.length,
  };
}

/** The CPU time and write-ahead log that the processes have used so far. */
export interface Meters {
  walBytes: number;
  cpu: Round["cpu"];
}

/** Contenders that do not use Redis. Redis's CPU time does not count for them. */
const WITHOUT_REDIS: readonly ContenderId[] = ["c", "i"];

/** Reads the CPU time used so far, in microseconds. NaN for a Redis in a container. */
function readUsage({ postgresPid }: BenchServers, { running, stage }: Player): Round["cpu"] {
  const { user, system } = process.cpuUsage();
  const redisPids = WITHOUT_REDIS.includes(running.id) ? null : running.redisPids;
  return {
    api: readCpuMicros(running.apiPids),
    // Some contenders' workers start a server as a child process.
    worker: readCpuMicros(running.workerPids.flatMap(withChildren)),
    redis: redisPids?.length === 0 ? Number.NaN : readCpuMicros(redisPids ?? []),
    postgres: readCpuMicros(processesFor(postgresPid, new URL(stage.databaseUrl).pathname.slice(1))),
    client: user + system,
  };
}

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
  // Without fresh statistics, Postgres would take the tables for empty, and this join would take minutes.
  await db.query("ANALYZE");
  const { rows } = await db.query<Receipt>(proof.sql, [asked.map((subject) => subject.id)]);
  const answered = units.map((unit) => ({ subject: unit.subject.id, receipt: proof.receipt(unit) }));
  const contradiction = findContradiction(answered, rows);
  if (contradiction !== null) throw new Error(`${title}, ${id}: ${contradiction}`);
}

/** A subject and its unique result: a redeem code, a ticket or a voucher. */
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
