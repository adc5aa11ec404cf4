import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { Command, InvalidArgumentError } from "commander";
import { integer } from "../../../src/cli/options.ts";
import { CASES, type Case, type CaseId } from "./cases.ts";
import { CONTENDERS, type ContenderId, installLibraries, isOptional, LIBRARIES, startContender } from "./contenders.ts";
import { type KillsVerdict, playKills, showKills } from "./kills.ts";
import { type Player, playCase } from "./play-case.ts";
import { profileOptions, showProfiles } from "./profile.ts";
import { openBenchServers, openStage, type Stage } from "./stage.ts";
import { showCase } from "./table.ts";

// `npm run bench` compares the service with its alternatives, on servers of its own. It writes progress to standard
// error and tables to standard output. Ctrl-C stops everything.

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const CASE_IDS = Object.keys(CASES) as CaseId[];
const ALL_IDS = Object.keys(CONTENDERS) as ContenderId[];
const CONTENDER_IDS = ALL_IDS.filter((id) => id !== "against");
const isScaled = (id: ContenderId) => /^\dx\d$/.test(id);

const program = new Command("npm run bench --")
  .option("--cases <list>", `of ${CASE_IDS}; default: all`, namesOf(CASE_IDS))
  .option(
    "--contenders <list>",
    `of ${CONTENDER_IDS}; default: all but ${LIBRARIES},i, which need more, and those like 2x4, with 4 workers`,
    namesOf(CONTENDER_IDS),
  )
  .option("--connections <n>", "concurrent requests, instead of those of each case", integer(1, 1_000))
  .option("--against <folder>", "another working copy of the service to compare with", workingCopy)
  .option("--rounds <n>", "turns per contender and case; default: 5", integer(1, 1_000))
  .option("--seconds <n>", "length of a turn; default: 8", integer(1, 1_000))
  .option("--warm-up <n>", "seconds of load before the first turn of each case; default: 14", integer(1, 1_000))
  .option("--kills <n>", "kill -9 at random while callers redeem; alone unless --cases is given", integer(1, 1_000))
  .option("--profile <folder>", "write CPU profiles of the service there, and show where its time goes")
  .option("--seed <n>", "of the kills; default: 1", integer(1, 1_000_000))
  .option("--quick", "one turn of 2 seconds, as a smoke test")
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

interface BenchOptions {
  cases?: CaseId[];
  contenders?: ContenderId[];
  connections?: number;
  against?: string;
  profile?: string;
  rounds?: number;
  seconds?: number;
  warmUp?: number;
  kills?: number;
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
// Outside a turn, too, a failure must not leave the servers running.
process.on("uncaughtException", (error) => interrupted.abort(error));
// The reader of the output has closed it.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interrupted.abort());
const say = (line: string) => void process.stderr.write(`${line}\n`);
const print = (text: string) => void process.stdout.write(`${text}\n`);

try {
  const options = program.parse().opts<BenchOptions>();
  const contenders = options.contenders ?? CONTENDER_IDS.filter((id) => !isOptional(id));
  await install(contenders);
  if (options.kills === undefined || options.cases !== undefined) await bench(contenders, options);
  if (options.kills !== undefined) await killAll(contenders, options.kills, options.seed ?? 1);
} catch (error) {
  const { aborted, reason } = interrupted.signal;
  const isInterrupted = aborted && reason.name === "AbortError";
  say(isInterrupted ? "Interrupted. All processes are stopped." : inspect(aborted ? reason : error));
  process.exitCode = isInterrupted ? 130 : 1;
}

/** Installs what these contenders need. */
async function install(contenders: readonly ContenderId[]): Promise<void> {
  if (!contenders.some((id) => LIBRARIES.some((library) => library === id))) return;
  say("Installing the contenders' packages");
  await installLibraries();
}

/** Kills each contender that redeems, one after another, on servers of its own. */
async function killAll(contenders: readonly ContenderId[], kills: number, seed: number): Promise<void> {
  const verdicts: KillsVerdict[] = [];
  for (const id of contenders.filter((id) => playsIn(CASES.redeem, id) && id !== "c" && id !== "i")) {
    say(`kills of ${id}, seed ${seed}`);
    verdicts.push(await playKills(id, { kills, seed, root: ROOT, signal: interrupted.signal, say }));
  }
  print(`\n${showKills(verdicts)}`);
}

async function bench(
  contenders: readonly ContenderId[],
  { quick, against, profile, ...options }: BenchOptions,
): Promise<void> {
  const { signal } = interrupted;
  const { rounds = quick ? 1 : 5, seconds = quick ? 2 : 8, warmUp = quick ? 2 : 14 } = options;
  const cases = (options.cases ?? CASE_IDS).map((id): Case => CASES[id]);
  const servers = await openBenchServers(say);
  const players: Player[] = [];
  const stages: Stage[] = [];
  try {
    const gigabytes = Math.round(totalmem() / 2 ** 30);
    const machine = `${cpus().length} cores (${cpus()[0]?.model.trim()}), ${gigabytes} GB`;
    print(`${machine}, Node ${process.versions.node}, ${servers.versions}`);
    const open = async (name: string, root: string) => {
      const stage = await openStage(servers, name, root, { signal, say });
      stages.push(stage);
      return stage;
    };
    const stage = await open("this_copy", ROOT);
    const stageOf: Partial<Record<ContenderId, Stage>> = against ? { against: await open("against", against) } : {};
    for (const id of contenders) stageOf[id] = stage;
    if (profile !== undefined) stage.env.NODE_OPTIONS = profileOptions(resolve(profile));
    for (const id of ALL_IDS) {
      signal.throwIfAborted();
      const own = stageOf[id];
      if (own === undefined || !cases.some((loadCase) => playsIn(loadCase, id))) continue;
      players.push({ running: await startContender(id, { ...own, ...servers.nextRedis() }), stage: own });
    }
    for (const loadCase of cases) {
      const playing = players.filter(({ running }) => playsIn(loadCase, running.id));
      if (playing.length === 0) continue;
      for (const connections of options.connections ? [options.connections] : loadCase.connections) {
        const play = { rounds, seconds, warmUpSeconds: warmUp, signal, say };
        const series = await playCase(servers, loadCase, connections, playing, play);
        print(`\n${showCase(`${loadCase.title}, ${connections} connections`, series)}`);
      }
    }
  } finally {
    await Promise.allSettled(players.map(({ running }) => running.end()));
    await Promise.allSettled(stages.map((stage) => stage.close()));
    await servers.close();
  }
  if (profile !== undefined) print(`\n${showProfiles(resolve(profile), namesOfProcesses(players))}`);
}

function namesOfProcesses(players: readonly Player[]): Map<number, string> {
  return new Map(
    players.flatMap(({ running: { id, apiPids, workerPids } }) => [
      ...apiPids.map((pid): [number, string] => [pid, `API of ${id}`]),
      ...workerPids.map((pid): [number, string] => [pid, `worker of ${id}`]),
    ]),
  );
}

/** Another working copy, and other numbers of processes, take part wherever the service does. */
function playsIn({ contenders }: Case, id: ContenderId): boolean {
  return contenders.includes(id === "against" || isScaled(id) ? "service" : id);
}
