import { parseArgs } from "node:util";
import { runCampaign, type Totals } from "./campaign.ts";
import { describeViolation } from "./history.ts";
import { TARGET_NAMES, type TargetName, targetsOnCluster } from "./nemesis.ts";

// Runs a long campaign: `npm run test:faults -- --minutes 10 --seed 7`. Exits with status 1 after a violation.
const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "10" },
    /** Ends the faults after this many, or after the minutes. */
    faults: { type: "string" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    /** Limits the targets: `--only redis --only allWorkers`. */
    only: { type: "string", multiple: true },
    /** Uses a Redis Cluster, and, if Patroni is available, a Postgres that fails over. */
    cluster: { type: "boolean", default: false },
    logs: { type: "string" },
  },
});
const say = (line: string) => void process.stdout.write(`${line}\n`);
const seconds = (ms: number) => `${Math.round(ms / 1_000)} s`;
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const faultsMax = values.faults === undefined ? undefined : Number(values.faults);
const targets = values.only?.map((name) => name as TargetName);
const known = values.cluster ? targetsOnCluster(true) : TARGET_NAMES;
const isKnown = targets?.every((name) => known.includes(name)) ?? true;
if (!isKnown || !(minutes > 0 && minutes <= 24 * 60) || !Number.isSafeInteger(seed) || !((faultsMax ?? 1) > 0)) {
  say("usage: run.ts [--minutes N] [--faults N] [--seed WHOLE_NUMBER] [--cluster] [--only TARGET]... [--logs FOLDER]");
  say(`targets: ${known.map((name) => JSON.stringify(name)).join(", ")}`);
  process.exit(2);
}

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => interrupted.abort());

say(`Running faults for ${minutes} minutes with seed ${seed}. Press Ctrl-C to stop.`);
try {
  const totals = await runCampaign({
    seed,
    faultsMax,
    targets,
    onCluster: values.cluster,
    keepLogsIn: values.logs,
    signal: interrupted.signal,
    faultsMs: minutes * 60_000,
    onProgress({ elapsedMs, requests, faults, accidents }) {
      const trouble = accidents > 0 ? `, ${accidents} unexpected process exits` : "";
      say(`${seconds(elapsedMs)}: ${requests} requests, ${faults} faults${trouble}`);
    },
  });
  showTotals(totals);
  process.exitCode = totals.violations.length > 0 ? 1 : 0;
} catch (error) {
  if (!interrupted.signal.aborted) throw error;
  say("Interrupted. All processes are stopped; nothing was checked.");
  process.exitCode = 130;
}

function showTotals(totals: Totals): void {
  const rows: [string, string | number][] = [
    ["seed", totals.seed],
    ["duration", seconds(totals.elapsedMs)],
    ...byName("fault", totals.faults),
    ["faults", Object.values(totals.faults).reduce((total, count) => total + count, 0)],
    ...byName("answer", totals.answers),
    ["requests", totals.requests],
    ["retries", totals.retries],
    ["references confirmed", totals.confirmed],
    ["claims and purchases confirmed", totals.acquired],
    ["issues confirmed", totals.issued],
    ["voids of batches confirmed", totals.voided],
    ["erasures confirmed", totals.erased],
    ["files read", totals.files],
    ["requests of the second deployment", totals.second.requests],
    ["references confirmed by the second deployment", totals.second.confirmed],
    ["checkpoints signed", totals.checkpoints],
    ["recovery time", `${totals.answeredAgainMs} ms`],
    ["violations", totals.violations.length],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  for (const [name, value] of rows) say(`${name.padEnd(width)}  ${value}`);
  for (const violation of totals.violations) say(`\n${describeViolation(violation)}`);
}

function byName(kind: string, counts: Record<string, number>): [string, number][] {
  const sorted = Object.entries(counts).sort(([one], [other]) => one.localeCompare(other));
  return sorted.map(([name, count]) => [`${kind}: ${name}`, count]);
}
