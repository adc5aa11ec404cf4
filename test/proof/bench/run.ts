import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Command, InvalidArgumentError } from "commander";
import { integer } from "../../../src/cli/options.ts";
import { CASES, type Case, type CaseId } from "./cases.ts";
import {
  CONTENDERS,
  type ContenderId,
  FILLED,
  installLibraries,
  isOptional,
  LIBRARIES,
  startContender,
} from "./contenders.ts";
import { type Filling, openFilledStage } from "./filled-stage.ts";
import { type KillsVerdict, playKills, showKills } from "./kills.ts";
import { type Player, type PlayOptions, playCase } from "./play-case.ts";
import { playSoak, SOAK_MINUTES_MIN } from "./soak.ts";
import { type BenchServers, openBenchServers, openStage, type Stage } from "./stage.ts";
import { showCase } from "./table.ts";

// `npm run bench` compares the service with its alternatives on its own servers. It writes progress to standard error
// and tables to standard output. Ctrl-C stops everything.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const CASE_IDS = Object.keys(CASES) as CaseId[];
const ALL_IDS = Object.keys(CONTENDERS) as ContenderId[];
const CONTENDER_IDS = ALL_IDS.filter((id) => id !== "against");
const isScaled = (id: ContenderId) => /^\dx\d$/.test(id);

/** The small database that is compared with the larger one. */
const SMALL: Filling = { vouchers: 100_000, redeemed: 33_000 };
/** The cases of filled databases. Redeems come last, because they use up the vouchers. */
const FILLED_CASES: CaseId[] = ["look-up", "list", "day", "reserve", "claim", "sweep", "overview", "redeem"];

const program = new Command("npm run bench --")
  .option("--cases <list>", `of ${CASE_IDS}; default: all`, namesOf(CASE_IDS))
  .option(
    "--contenders <list>",
    `of ${CONTENDER_IDS}; default: all but ${LIBRARIES},i, which need more, and those like 2x4, with 4 workers`,
    namesOf(CONTENDER_IDS),
  )
  .option("--connections <n>", "concurrent requests, instead of those of each case", integer(1, 1_000))
  .option(
    "--rate <n>",
    "calls per second at even intervals, instead of the next one when one is answered",
    integer(1, 10_000),
  )
  .option("--against <folder>", "another working copy of the service to compare with", workingCopy)
  .option("--capped", "the service's key has daily limits, which it does not reach; the key of --against has none")
  .option("--rounds <n>", "turns per contender and case; default: 5", integer(1, 1_000))
  .option("--seconds <n>", "length of a turn; default: 8", integer(1, 1_000))
  .option("--warm-up <n>", "seconds of load before the first turn of each case; default: 14", integer(1, 1_000))
  .option(
    "--vouchers <n>",
    "compares databases filled with so many vouchers and with 100 000; alone, with cases of its own",
    integer(SMALL.vouchers, 100_000_000),
  )
  .option(
    "--redeemed <n>",
    "how many of --vouchers are redeemed; default: a third",
    integer(SMALL.redeemed, 35_000_000),
  )
  .option("--kills <n>", "kill -9 at random while callers redeem; alone unless --cases is given", integer(1, 1_000))
  .option("--profile <folder>", "write a CPU profile of each process there, for Chrome DevTools")
  .option(
    "--soak <minutes>",
    "steady mixed load; fails if anything grows without a bound; alone; usually 30",
    integer(SOAK_MINUTES_MIN, 1_440),
  )
  .option("--seed <n>", "of the kills; default: 1", integer(1, 1_000_000))
  .option("--quick", "one turn of 2 seconds, as a smoke test")
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

interface BenchOptions {
  cases?: CaseId[];
  contenders?: ContenderId[];
  connections?: number;
  rate?: number;
  against?: string;
  capped?: true;
  profile?: string;
  rounds?: number;
  seconds?: number;
  warmUp?: number;
  vouchers?: number;
  redeemed?: number;
  kills?: number;
  soak?: number;
  seed?: number;
  quick?: true;
}

function namesOf<Name extends string>(known: readonly Name[]): (text: string) => Name[] {
  return (text) =>
    text.split(",").map((name) => {
      const found = known.find((one) => one === name);
      if (found === undefined) throw new InvalidArgumentError(`There is no ${name}.`);
      return found;
    });
}

function workingCopy(folder: string): string {
  if (existsSync(join(folder, "node_modules"))) return resolve(folder);
  throw new InvalidArgumentError("It is not a working copy with installed packages.");
}

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interrupted.abort());
// Stops the servers even if an error is thrown outside a turn.
process.on("uncaughtException", (error) => interrupted.abort(error));
// An error means that the program that reads this output has exited.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interrupted.abort());
const say = (line: string) => void process.stderr.write(`${line}\n`);
const print = (text: string) => void process.stdout.write(`${text}\n`);

try {
  const options = program.parse().opts<BenchOptions>();
  const chosen = options.contenders ?? CONTENDER_IDS.filter((id) => !isOptional(id));
  const contenders = options.vouchers === undefined ? chosen : FILLED;
  await install(contenders);
  const isAlone = options.kills !== undefined || options.soak !== undefined;
  if (!isAlone || options.cases !== undefined) await bench(contenders, options);
  if (options.soak !== undefined) await soak(options.soak);
  if (options.kills !== undefined) await killAll(contenders, options.kills, options.seed ?? 1);
} catch (error) {
  const { aborted, reason } = interrupted.signal;
  const isInterrupted = aborted && reason.name === "AbortError";
  say(isInterrupted ? "Interrupted. All processes are stopped." : inspect(aborted ? reason : error));
  process.exitCode = isInterrupted ? 130 : 1;
}

async function install(contenders: readonly ContenderId[]): Promise<void> {
  if (!contenders.some((id) => LIBRARIES.some((library) => library === id))) return;
  say("Installing the contenders' packages");
  await installLibraries();
}

/** Kills processes of each contender that redeems. Each contender has its own servers. */
async function killAll(contenders: readonly ContenderId[], kills: number, seed: number): Promise<void> {
  const verdicts: KillsVerdict[] = [];
  for (const id of contenders.filter((id) => playsIn(CASES.redeem, id) && id !== "c" && id !== "i")) {
    say(`kills of ${id}, seed ${seed}`);
    verdicts.push(await playKills(id, { kills, seed, root: ROOT, signal: interrupted.signal, say }));
  }
  print(`\n${showKills(verdicts)}`);
}

/** Exits with status 1 if a size grows that `soak-growth.ts` does not list. */
async function soak(minutes: number): Promise<void> {
  const servers = await openBenchServers(say);
  try {
    const { table, unbounded } = await playSoak(servers, { minutes, root: ROOT, signal: interrupted.signal, say });
    print(`\n${table}`);
    for (const { name } of unbounded) say(`grows without a bound: ${name}`);
    if (unbounded.length > 0) process.exitCode = 1;
  } finally {
    await servers.close();
  }
}

async function bench(
  contenders: readonly ContenderId[],
  { quick, against, capped, profile, ...options }: BenchOptions,
): Promise<void> {
  const { signal } = interrupted;
  // Shorter turns on filled databases, because the small one must have enough vouchers for all turns.
  const isFilled = options.vouchers !== undefined;
  const {
    rounds = quick ? 1 : 5,
    seconds = quick ? 2 : isFilled ? 4 : 8,
    warmUp = quick ? 2 : isFilled ? 8 : 14,
  } = options;
  const cases = (options.cases ?? (isFilled ? FILLED_CASES : CASE_IDS)).map((id): Case => CASES[id]);
  const servers = await openBenchServers(say);
  const players: Player[] = [];
  const stages: Stage[] = [];
  try {
    const gigabytes = Math.round(totalmem() / 2 ** 30);
    const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${gigabytes} GB`;
    print(`${machine}, Node ${process.versions.node}, ${servers.versions}`);
    const open = async (name: string, root: string, filling: Filling | null = null, capped = false) => {
      const how = { signal, say, capped };
      const stage = await (filling === null
        ? openStage(servers, name, root, how)
        : openFilledStage(servers, name, root, filling, how));
      stages.push(stage);
      return stage;
    };
    const plays = (id: ContenderId) => cases.some((loadCase) => playsIn(loadCase, id));
    const stageOf: Partial<Record<ContenderId, Stage>> = {};
    if (options.vouchers !== undefined) {
      const { vouchers, redeemed = Math.floor(vouchers / 3) } = options;
      stageOf.small = await open("small", ROOT, SMALL);
      stageOf.large = await open("large", ROOT, { vouchers, redeemed });
    } else {
      // Each contender has its own database, so that the service's worker does no work for another contender.
      for (const id of contenders.filter(plays)) stageOf[id] = await open(`of_${id}`, ROOT, null, capped);
      if (against !== undefined) stageOf.against = await open("of_against", against);
    }
    const profiling = profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${resolve(profile)}` };
    for (const stage of stages) Object.assign(stage.env, profiling);
    for (const id of ALL_IDS) {
      signal.throwIfAborted();
      const own = stageOf[id];
      if (own === undefined || !plays(id)) continue;
      const running = await startContender(id, { ...own, ...servers.nextRedis() });
      players.push({ running, stage: own });
      await running.pause();
    }
    const { connections, rate } = options;
    const play = { connections, rounds, seconds, warmUpSeconds: warmUp, rate, signal, say };
    for (const loadCase of cases) await playAndShow(servers, loadCase, players, play);
  } finally {
    await Promise.allSettled(players.map(({ running }) => running.end()));
    await Promise.allSettled(stages.map((stage) => stage.close()));
    await servers.close();
  }
}

/** Runs the contenders of a case alternately, and prints a table for each number of connections. */
async function playAndShow(
  servers: BenchServers,
  loadCase: Case,
  players: readonly Player[],
  { connections, ...play }: PlayOptions & { connections: number | undefined },
): Promise<void> {
  const playing = players.filter(({ running }) => playsIn(loadCase, running.id));
  if (playing.length === 0) return;
  const { rate } = play;
  const all = connections === undefined ? loadCase.connections : [connections];
  // With a rate, only the warm-up uses `connections`, so one number is enough.
  for (const connections of rate === undefined ? all : all.slice(0, 1)) {
    const series = await playCase(servers, loadCase, connections, playing, play);
    const pace = rate === undefined ? `${connections} connections` : `${rate} a second`;
    print(`\n${showCase(`${loadCase.title}, ${pace}`, series)}`);
  }
}

/**
 * Whether a contender plays in a case. All variants of the service do if the service does: another working copy, a
 * filled database, other numbers of processes.
 */
function playsIn({ contenders }: Case, id: ContenderId): boolean {
  const isService = id === "against" || isScaled(id) || FILLED.some((filled) => filled === id);
  return contenders.includes(id) || (isService && contenders.includes("service"));
}
