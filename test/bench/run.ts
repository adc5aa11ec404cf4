import { existsSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, InvalidArgumentError } from "commander";
import { integer } from "../../src/cli/option-parsers.ts";
import { CASES, type Case, type CaseId } from "./cases.ts";
import { CONTENDERS, type ContenderId, startContender } from "./contenders.ts";
import { DROP_COLUMNS, DROPS, playDrop } from "./drop.ts";
import { LOCKED, LOCKED_COLUMNS, playLocked } from "./locked.ts";
import { type Player, playCase } from "./play-case.ts";
import { type BenchServers, openBenchServers, openStage, type Stage } from "./stage.ts";
import { formatTable, showCase } from "./table.ts";
import { ANNOUNCED, ANNOUNCED_COLUMNS, playAnnounced } from "./webhooks.ts";

// `npm run bench` compares the service with its alternatives, on servers of its own. It writes progress to standard error and tables to
// standard output. Ctrl-C stops everything.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
type EventId = keyof typeof DROPS | keyof typeof LOCKED | keyof typeof ANNOUNCED;
const CASE_IDS = [CASES, DROPS, LOCKED, ANNOUNCED].flatMap((group) => Object.keys(group)) as (CaseId | EventId)[];
const CONTENDER_IDS = (Object.keys(CONTENDERS) as ContenderId[]).filter((id) => id !== "against");
/** Without `cluster`, which must be named: it needs redis-server on this machine. */
const DEFAULT_IDS = CONTENDER_IDS.filter((id) => id !== "cluster");

const program = new Command("npm run bench --")
  .option("--cases <list>", `of ${CASE_IDS}; default: all`, namesOf(CASE_IDS))
  .option("--contenders <list>", `of ${CONTENDER_IDS}; default: ${DEFAULT_IDS}`, namesOf(CONTENDER_IDS))
  .option("--connections <n>", "concurrent requests, instead of those of each case", integer(1, 1_000))
  .option("--against <folder>", "another working copy of the service to compare with", workingCopy)
  .option("--rounds <n>", "turns per contender and case; default: 5", integer(1, 1_000))
  .option("--seconds <n>", "length of a turn; default: 8", integer(1, 1_000))
  .option("--warm-up <n>", "seconds of load before the first turn of each case; default: 14", integer(1, 1_000))
  .option("--quick", "one turn of 2 seconds, as a smoke test")
  .showHelpAfterError()
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2));

interface BenchOptions {
  cases?: (CaseId | EventId)[];
  contenders?: ContenderId[];
  connections?: number;
  against?: string;
  rounds?: number;
  seconds?: number;
  warmUp?: number;
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
// The reader of the output has closed it.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interrupted.abort());
const say = (line: string) => void process.stderr.write(`${line}\n`);

try {
  await bench(program.parse().opts<BenchOptions>());
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
  say("Interrupted. All processes are stopped.");
  process.exitCode = 130;
}

async function bench({ quick, against, ...options }: BenchOptions): Promise<void> {
  const { signal } = interrupted;
  const { rounds = quick ? 1 : 5, seconds = quick ? 2 : 8, warmUp = quick ? 2 : 14 } = options;
  const play = { rounds, seconds, warmUpSeconds: warmUp, signal, say };
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
    for (const id of options.contenders ?? DEFAULT_IDS) stageOf[id] = stage;
    const ids = options.cases ?? CASE_IDS;
    const cases = ids.flatMap((id): Case[] => (id in CASES ? [CASES[id as CaseId]] : []));
    const events = ids.flatMap((id) => (id in CASES ? [] : [openEvent(id as EventId)]));
    for (const id of Object.keys(CONTENDERS) as ContenderId[]) {
      signal.throwIfAborted();
      const own = stageOf[id];
      const takesPart = cases.some((loadCase) => playsIn(loadCase, id)) || (events.length > 0 && isService(id));
      if (own === undefined || !takesPart) continue;
      const redis = id === "cluster" ? await servers.openRedisCluster() : servers.nextRedis();
      players.push({ running: await startContender(id, { ...own, ...redis }), stage: own });
    }
    for (const loadCase of cases) {
      const playing = players.filter(({ running }) => playsIn(loadCase, running.id));
      if (playing.length === 0) continue;
      for (const connections of options.connections ? [options.connections] : loadCase.connections) {
        const series = await playCase(servers, loadCase, connections, playing, play);
        print(`\n${showCase(`${loadCase.title}, ${connections} connections`, series)}`);
      }
    }
    for (const { title, play, tabulate } of events) {
      const series = players.flatMap((player) =>
        isService(player.running.id) ? [{ player, rounds: [] as unknown[] }] : [],
      );
      for (let round = 1; round <= rounds; round++) {
        for (const { player, rounds } of series) {
          rounds.push(await play(player, signal, servers));
          say(`${title}, round ${round}, ${player.running.id}`);
        }
      }
      print(
        `\n${tabulate(series.map(({ player, rounds }) => ({ name: CONTENDERS[player.running.id].title, rounds })))}`,
      );
    }
  } finally {
    await Promise.all(players.map(({ running }) => running.end()));
    await Promise.all(stages.map((stage) => stage.close()));
    await servers.close();
  }
}

/** What happens once a round, besides the cases of steady load. */
function openEvent(id: EventId) {
  if (id in DROPS) return eventOf(DROPS[id as keyof typeof DROPS], playDrop, DROP_COLUMNS);
  if (id in LOCKED) return eventOf(LOCKED[id as keyof typeof LOCKED], playLocked, LOCKED_COLUMNS);
  return eventOf(ANNOUNCED[id as keyof typeof ANNOUNCED], playAnnounced, ANNOUNCED_COLUMNS);
}

function eventOf<Event extends { title: string }, Round>(
  event: Event,
  play: (event: Event, player: Player, signal: AbortSignal, servers: BenchServers) => Promise<Round>,
  columns: Record<string, (rounds: readonly Round[]) => string>,
) {
  return {
    title: event.title,
    play: (player: Player, signal: AbortSignal, servers: BenchServers): Promise<unknown> =>
      play(event, player, signal, servers),
    tabulate: (series: readonly { name: string; rounds: readonly unknown[] }[]) =>
      formatTable(
        [event.title, ...Object.keys(columns)],
        series.map(({ name, rounds }) => [name, ...Object.values(columns).map((show) => show(rounds as Round[]))]),
      ),
  };
}

/** Another working copy takes part wherever the service does. */
function playsIn({ contenders }: Case, id: ContenderId): boolean {
  return contenders.includes(id === "against" ? "service" : id);
}

/** Whether a contender takes part in the events. The baselines lack what these use, such as claims. */
function isService(id: ContenderId): boolean {
  return id === "service" || id === "against";
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
