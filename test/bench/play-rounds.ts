import { setTimeout as sleep } from "node:timers/promises";
import type { LoadCase } from "./cases.ts";
import { CONTENDERS, type ContenderId, type RunningContender, startContender } from "./contenders.ts";
import { type LoadOutcome, runLoad } from "./load/run-load.ts";
import {
  readCpuMicros,
  readEndedChildrenCpuMicros,
  readMemoryBytes,
  readResidentBytes,
  withChildren,
} from "./process-usage.ts";
import type { Stage } from "./stage.ts";

/** CPU time per unit, in microseconds, by who spent it. */
export interface CpuSplit {
  api: number;
  worker: number;
  redis: number;
  postgres: number;
  /** The load generator, which takes its share of the same processors. */
  client: number;
}

/** Memory in bytes when the load ends. */
export interface MemorySplit {
  /** Resident memory of all API processes together. */
  api: number;
  worker: number;
  redis: number;
  /** All its processes; what they share counts once. */
  postgres: number;
}

/** One round of one contender. */
export interface Round {
  rate: number;
  p50Ms: number;
  p99Ms: number;
  cpu: CpuSplit;
  memory: MemorySplit;
}

/** All rounds of one contender in one case at one number of connections. */
export interface Series {
  caseId: string;
  connections: number;
  contender: ContenderId;
  title: string;
  rounds: Round[];
}

/** A contender and what it plays on. */
export interface Entrant {
  contender: ContenderId;
  stage: Stage;
  /** Its name in the table; the contender's own when left out. */
  title?: string;
}

export interface PlayOptions {
  rounds: number;
  seconds: number;
  /** Vouchers or users that are made at once when there are too few. */
  supply: number;
}

/** Load before what is measured: the first time until the code is compiled, later until connections are open. Seconds. */
const FIRST_LEAD_SECONDS = 14;
const LEAD_SECONDS = 1;
/** Nothing is under way any more when this long nothing came of it. Milliseconds. */
const SETTLE_MS = 500;
/** Contenders that do nothing. */
const CONSTANTS: readonly ContenderId[] = ["c", "c-edge"];
/** Supply for a round above what the last one used. */
const RESERVE_FACTOR = 1.6;

/**
 * Lets contenders take turns, round after round, so that whatever else the machine does hits all alike. All of them run all the
 * time; those whose turn it is not are idle.
 * @throws Error when an answer was a refusal, a connection broke, or an answer left no row behind.
 */
export async function playRounds(
  loadCase: LoadCase,
  entrants: readonly Entrant[],
  connections: number,
  options: PlayOptions,
): Promise<Series[]> {
  const players: Player[] = [];
  try {
    for (const { contender, stage, title = CONTENDERS[contender].title } of entrants) {
      const running = await startContender(contender, stage.surroundings);
      const series = { caseId: loadCase.id, connections, contender, title, rounds: [] };
      players.push({ stage, running, series, rate: loadCase.rateGuess });
    }
    for (let round = 1; round <= options.rounds; round++) {
      for (const player of players) {
        const play = (seconds: number) => playRound(loadCase, player, connections, seconds, options.supply);
        // A round this short is only to see that everything works.
        if (options.seconds > LEAD_SECONDS) await play(round === 1 ? FIRST_LEAD_SECONDS : LEAD_SECONDS);
        const played = await play(options.seconds);
        const { series, stage } = player;
        series.rounds.push(played);
        stage.say(
          `${loadCase.id} at ${connections}, round ${round}, ${series.title}: ${Math.round(played.rate)} ${loadCase.unit}/s`,
        );
      }
    }
    return players.map(({ series }) => series);
  } finally {
    await Promise.all(players.map(({ running }) => running.end()));
  }
}

/** An entrant that runs. */
interface Player {
  stage: Stage;
  running: RunningContender;
  series: Series;
  /** Units a second the last time. */
  rate: number;
}

let stretches = 0;

async function playRound(
  loadCase: LoadCase,
  player: Player,
  connections: number,
  seconds: number,
  supply: number,
): Promise<Round> {
  const { stage, running } = player;
  const pool = stage[loadCase.subject];
  for (;;) {
    stage.signal.throwIfAborted();
    const subjects = await draw(stage, loadCase, player.rate * seconds * RESERVE_FACTOR + 2 * connections, supply);
    stretches += 1;
    const name = `r${stretches}`;
    const rowsBefore = await countRows(stage, loadCase);
    const spentBefore = readSpent(stage, running);
    const result = await runLoad(stage.client, {
      ports: running.ports,
      connections,
      seconds,
      mode: loadCase.mode,
      lines: subjects.map((subject, index) => loadCase.line(subject, `${name}-${index}`, stage.partner)),
      header: `X-Api-Key: ${stage.partner.key}`,
      directory: stage.directory,
      name,
      signal: stage.signal,
    });
    const spentAfter = readSpent(stage, running);
    const memory = readMemory(stage, running);
    const rowsAfter = await countRowsAtRest(stage, loadCase);
    running.check();
    if (loadCase.mode !== "again") pool.add(result.unused.map((index) => subjects[index] as string));
    if (result.exhausted) {
      stage.say(`${loadCase.id}, ${running.id}: there was too little supply for a round; it is played again`);
      player.rate *= 2;
      continue;
    }
    const units = loadCase.unit === "checkouts" ? result.checkouts : result.requests;
    player.rate = (units * 1_000_000) / result.micros;
    checkAnswers(loadCase, running, connections, result, units, rowsAfter - rowsBefore);
    await loadCase.afterwards?.(stage);
    const spent = (who: keyof CpuSplit) => (spentAfter[who] - spentBefore[who]) / units;
    return {
      rate: player.rate,
      p50Ms: result.p50Micros / 1_000,
      p99Ms: result.p99Micros / 1_000,
      cpu: {
        api: spent("api"),
        worker: spent("worker"),
        redis: spent("redis"),
        postgres: spent("postgres"),
        client: spent("client"),
      },
      memory,
    };
  }
}

function checkAnswers(
  loadCase: LoadCase,
  contender: RunningContender,
  connections: number,
  { refused, broken }: LoadOutcome,
  units: number,
  rowsLeft: number,
): void {
  const where = `${loadCase.id}, ${contender.id}`;
  if (refused + broken > 0) throw new Error(`${where}: ${refused} answers were refusals, ${broken} failed`);
  if (loadCase.leaves === null || CONSTANTS.includes(contender.id)) return;
  // What the client no longer waited for in the end may have been done all the same.
  if (rowsLeft < units || rowsLeft > units + connections) {
    throw new Error(`${where}: ${units} answers left ${rowsLeft} ${loadCase.leaves}`);
  }
}

async function draw(stage: Stage, loadCase: LoadCase, atLeast: number, supply: number): Promise<string[]> {
  const pool = stage[loadCase.subject];
  if (loadCase.mode === "again") return pool.peek(pool.left);
  const wanted = Math.ceil(atLeast);
  const missing = wanted - pool.left;
  if (missing > 0) {
    const count = Math.max(supply, missing);
    await (loadCase.subject === "users" ? stage.addUsers(count) : stage.addVouchers(count));
  }
  return pool.take(wanted);
}

/** What the client did not wait for in the end goes on for a while. */
async function countRowsAtRest(stage: Stage, loadCase: LoadCase): Promise<number> {
  for (let before = await countRows(stage, loadCase); ; ) {
    await sleep(SETTLE_MS);
    const after = await countRows(stage, loadCase);
    if (after === before) return after;
    before = after;
  }
}

async function countRows(stage: Stage, { leaves }: LoadCase): Promise<number> {
  if (leaves === null) return 0;
  const { rows } = await stage.db.query(`SELECT count(*)::int AS n FROM ${leaves}`);
  return rows[0].n;
}

function readSpent({ servers }: Stage, contender: RunningContender): CpuSplit {
  return {
    api: readCpuMicros(contender.apiPids),
    worker: readCpuMicros(contender.workerPids),
    redis: servers.redisPid === null ? Number.NaN : readCpuMicros([servers.redisPid]),
    postgres: readCpuMicros(withChildren(servers.postgresPid)),
    client: readEndedChildrenCpuMicros(),
  };
}

function readMemory({ servers }: Stage, contender: RunningContender): MemorySplit {
  const resident = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + readResidentBytes(pid), 0);
  return {
    api: resident(contender.apiPids),
    worker: resident(contender.workerPids),
    redis: servers.redisPid === null ? Number.NaN : readResidentBytes(servers.redisPid),
    postgres: readMemoryBytes(withChildren(servers.postgresPid)),
  };
}
