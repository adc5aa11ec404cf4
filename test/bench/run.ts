import { LOAD_CASES, type LoadCase } from "./cases.ts";
import { canPlay } from "./contenders.ts";
import { describeMachine } from "./describe-machine.ts";
import { findLackOfRoom, measureGrowth, showGrowth } from "./growth.ts";
import { measureHotVoucher, showHotVoucher } from "./hot-voucher.ts";
import { chooseClient } from "./load/run-load.ts";
import { type BenchOptions, readOptions, UsageError } from "./options.ts";
import { measureOracle, ORACLE_ENVIRONMENT, showOracle } from "./oracle.ts";
import { playRounds, type Series } from "./play-rounds.ts";
import { openBenchServers } from "./servers.ts";
import { showSeries } from "./show-series.ts";
import { measureSoak, showSoak } from "./soak.ts";
import { openStage, type Stage, type StageOptions } from "./stage.ts";
import { showTargets } from "./targets.ts";

// `npm run bench`: measures the service against what one could have instead, on servers of its own. Progress goes to standard error,
// tables to standard output. Ctrl-C ends everything.

/** Look-ups of each kind in the comparison of foreign and unknown vouchers, for each second of a turn. */
const ORACLE_LOOK_UPS_PER_SECOND = 1_000;

const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => interrupted.abort());
// Whoever read the output is gone.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => interrupted.abort());

try {
  await bench(readOptions(process.argv.slice(2)));
} catch (error) {
  if (error instanceof UsageError) {
    say(error.message);
    process.exitCode = 2;
  } else if (interrupted.signal.aborted) {
    say("Interrupted; everything is stopped.");
    process.exitCode = 130;
  } else {
    throw error;
  }
}

async function bench(options: BenchOptions): Promise<void> {
  const lack = options.scale === null ? null : findLackOfRoom(options.scale);
  if (lack !== null) throw new UsageError(lack);
  const servers = await openBenchServers(say);
  try {
    const client = chooseClient(options.client, say);
    const { signal } = interrupted;
    const stageOptions: StageOptions = { servers, client, profileDirectory: options.profile, say, signal };
    const wants = (id: BenchOptions["cases"][number]) => options.cases.includes(id);
    const show = (text: string | null) => {
      if (!options.json && text !== null) print(text);
    };

    const machine = describeMachine(servers, client);
    show(machine);
    const series: Series[] = [];
    for (const loadCase of Object.values(LOAD_CASES).filter(({ id }) => wants(id))) {
      for (const connections of options.connections ?? loadCase.connections) {
        const played = await playCase(stageOptions, loadCase, connections, options);
        show(showSeries(loadCase.title, loadCase.unit, connections, played));
        series.push(...played);
      }
    }
    const hot = wants("hot") ? await onStage(stageOptions, {}, (stage) => measureHotVoucher(stage, options)) : null;
    show(hot && showHotVoucher(hot));
    const lookUps = options.seconds * ORACLE_LOOK_UPS_PER_SECOND;
    const oracle = wants("oracle")
      ? await onStage(stageOptions, ORACLE_ENVIRONMENT, (stage) => measureOracle(stage, lookUps))
      : null;
    show(oracle && showOracle(oracle));
    const growth = options.scale === null ? null : await measureGrowth(stageOptions, options.scale, options);
    show(growth && showGrowth(growth));
    const minutes = options.minutes;
    const soak = minutes === null ? null : await onStage(stageOptions, {}, (stage) => measureSoak(stage, minutes));
    show(soak && showSoak(soak));
    show(showTargets({ series, hot, growth, soak }));
    if (options.json) print(JSON.stringify({ machine, series, hot, oracle, growth, soak }, null, 2));
  } finally {
    await servers.close();
  }
}

function playCase(
  stageOptions: StageOptions,
  loadCase: LoadCase,
  connections: number,
  options: BenchOptions,
): Promise<Series[]> {
  return onStage(stageOptions, {}, async (stage) => {
    await (loadCase.subject === "users" ? stage.addUsers(options.supply) : stage.addVouchers(options.supply));
    const contenders = (options.contenders ?? loadCase.contenders).filter((id) => canPlay(id, loadCase.id));
    const entrants = contenders.map((contender) => ({ contender, stage }));
    return playRounds(loadCase, entrants, connections, options);
  });
}

async function onStage<T>(
  options: StageOptions,
  env: Record<string, string>,
  work: (stage: Stage) => Promise<T>,
): Promise<T> {
  const stage = await openStage(options, env);
  return await work(stage).finally(() => stage.close());
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
