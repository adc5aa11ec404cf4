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

export interface PlayOptions {
  rounds: number;
  seconds: number;
  /** Vouchers at the start. */
  vouchers: number;
}

/** Load before what is measured: the first time until the code is compiled, later until connections are open. Seconds. */
const FIRST_LEAD_SECONDS = 4;
const LEAD_SECONDS = 1;
/** Nothing is under way any more when this long nothing came of it. Milliseconds. */
const SETTLE_MS = 500;
/** Contenders that do nothing. */
const CONSTANTS: readonly ContenderId[] = ["c", "c-edge"];
/** Vouchers for a round above what the last one used. */
const RESERVE_FACTOR = 1.6;

/**
 * Lets contenders take turns, round after round, so that whatever else the machine does hits all alike. All of them run all the
 * time; those whose turn it is not are idle.
 * @throws Error when an answer was a refusal, a connection broke, or an answer left no row behind.
 */
export async function playRounds(
  stage: Stage,
  loadCase: LoadCase,
  contenderIds: readonly ContenderId[],
  connections: number,
  options: PlayOptions,
): Promise<Series[]> {
  const running: RunningContender[] = [];
  try {
    for (const id of contenderIds) running.push(await startContender(id, stage.surroundings));
    const series = running.map(
      (contender): Series => ({
        caseId: loadCase.id,
        connections,
        contender: contender.id,
        title: CONTENDERS[contender.id].title,
        rounds: [],
      }),
    );
    const rates = new Map<ContenderId, number>();
    for (let round = 1; round <= options.rounds; round++) {
      for (const [index, contender] of running.entries()) {
        const play = (seconds: number) =>
          applyLoad(stage, loadCase, contender, { connections, seconds, vouchers: options.vouchers, rates });
        // A round this short is only to see that everything works.
        if (options.seconds > LEAD_SECONDS) await play(round === 1 ? FIRST_LEAD_SECONDS : LEAD_SECONDS);
        const played = await play(options.seconds);
        series[index]?.rounds.push(played);
        stage.say(
          `${loadCase.id} at ${connections}, round ${round}, ${contender.id}: ${Math.round(played.rate)} ${loadCase.unit}/s`,
        );
      }
    }
    return series;
  } finally {
    await Promise.all(running.map((contender) => contender.end()));
  }
}

interface Stretch {
  connections: number;
  seconds: number;
  /** Vouchers that are issued at once when there are too few. */
  vouchers: number;
  /** Units a second of each contender the last time. */
  rates: Map<ContenderId, number>;
}

let stretches = 0;

async function applyLoad(
  stage: Stage,
  loadCase: LoadCase,
  contender: RunningContender,
  { connections, seconds, vouchers, rates }: Stretch,
): Promise<Round> {
  for (;;) {
    stage.signal.throwIfAborted();
    const rate = rates.get(contender.id) ?? loadCase.rateGuess;
    const wanted = Math.ceil(rate * seconds * RESERVE_FACTOR) + 2 * connections;
    const codes = await drawCodes(stage, loadCase, wanted, vouchers);
    stretches += 1;
    const prefix = `r${stretches}`;
    const rowsBefore = await countRows(stage, loadCase);
    const spentBefore = readSpent(stage, contender);
    const result = await runLoad(stage.client, {
      ports: contender.ports,
      connections,
      seconds,
      mode: loadCase.mode,
      lines: codes.map((code, index) => loadCase.line(code, `${prefix}-${index}`)),
      header: `X-Api-Key: ${stage.partner.key}`,
      directory: stage.directory,
      name: prefix,
      signal: stage.signal,
    });
    const spentAfter = readSpent(stage, contender);
    const memory = readMemory(stage, contender);
    const rowsAfter = await countRowsAtRest(stage, loadCase);
    contender.check();
    if (loadCase.mode !== "again") stage.supply.giveBack(result.unused.map((index) => codes[index] as string));
    if (result.exhausted) {
      stage.say(`${loadCase.id}, ${contender.id}: there were too few vouchers for a round; it is played again`);
      rates.set(contender.id, rate * 2);
      continue;
    }
    const units = loadCase.unit === "checkouts" ? result.checkouts : result.requests;
    rates.set(contender.id, (units * 1_000_000) / result.micros);
    checkAnswers(loadCase, contender, connections, result, units, rowsAfter - rowsBefore);
    await loadCase.afterwards?.(stage);
    const spent = (who: keyof CpuSplit) => (spentAfter[who] - spentBefore[who]) / units;
    return {
      rate: (units * 1_000_000) / result.micros,
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
    throw new Error(`${where}: ${units} answers left ${rowsLeft} ${loadCase.leaves.table}`);
  }
}

async function drawCodes(stage: Stage, loadCase: LoadCase, wanted: number, vouchers: number): Promise<string[]> {
  const { supply, partner } = stage;
  if (loadCase.mode === "again") return supply.peek(supply.left);
  if (supply.left < wanted) {
    const count = Math.max(vouchers, wanted - supply.left);
    const { seconds } = await supply.issue(partner, count);
    stage.say(`${count} vouchers issued in ${seconds.toFixed(1)} s`);
  }
  return supply.take(wanted);
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
  const { rows } = await stage.db.query(`SELECT count(*)::int AS n FROM ${leaves.table}`);
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
