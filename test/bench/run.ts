import { LOAD_CASES, type LoadCase } from "./cases.ts";
import { canPlay } from "./contenders.ts";
import { chooseClient } from "./load/run-load.ts";
import { type BenchOptions, readOptions, UsageError } from "./options.ts";
import { playRounds, type Series } from "./play-rounds.ts";
import { openBenchServers } from "./servers.ts";
import { showSeries } from "./show-series.ts";
import { openStage, type StageOptions } from "./stage.ts";

// `npm run bench`: measures the service against what one could have instead, on servers of its own. Progress goes to standard error,
// tables to standard output. Ctrl-C ends everything.

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
  const servers = await openBenchServers(say);
  try {
    const client = chooseClient(say);
    const { signal } = interrupted;
    const stageOptions: StageOptions = { servers, client, profileDirectory: options.profile, say, signal };
    const all: Series[] = [];
    for (const loadCase of LOAD_CASES.filter(({ id }) => options.cases.includes(id))) {
      for (const connections of options.connections ?? loadCase.connections) {
        const series = await playCase(stageOptions, loadCase, connections, options);
        if (!options.json) print(showSeries(loadCase, connections, series));
        all.push(...series);
      }
    }
    if (options.json) print(JSON.stringify({ versions: servers.versions, client: client.name, series: all }, null, 2));
  } finally {
    await servers.close();
  }
}

async function playCase(
  stageOptions: StageOptions,
  loadCase: LoadCase,
  connections: number,
  options: BenchOptions,
): Promise<Series[]> {
  const stage = await openStage(stageOptions);
  try {
    await stage.supply.issue(stage.partner, options.vouchers);
    const contenders = (options.contenders ?? loadCase.contenders).filter((id) => canPlay(id, loadCase.id));
    return await playRounds(stage, loadCase, contenders, connections, options);
  } finally {
    await stage.close();
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}
