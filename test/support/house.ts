import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startContender } from "../proof/bench/contenders.ts";
import { openBenchServers, openStage, type Stage } from "../proof/bench/stage.ts";
import { formatTable } from "../proof/bench/table.ts";
import {
  COMPOSITION_MAX,
  countUnchecked,
  FUNCTION_MAX,
  findClimbing,
  findHandWritten,
  findSignature,
  findWholeContexts,
  findWings,
  LINE_MAX,
  longFunctionsOf,
  longLinesOf,
  PROLOGUE_MAX,
  SIGNATURE_MAX,
  spreadLiteralsOf,
} from "./house-measures.ts";
import { countLines, countPrologue, findFiles, importsOf } from "./source-files.ts";
import { until } from "./until.ts";

// `npm run -s house` prints how readable and separable the project is, beside earlier and wanted figures. With
// `--measure` it starts the service and counts the files that a call executes and that a worker loads.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const linesOf = (files: readonly string[]) => sum(files.map(countLines));
const largest = (files: readonly { file: string; lines: number }[]) =>
  files.reduce((one, other) => (other.lines > one.lines ? other : one));
const show = (count: number) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");

/** Counts the files of files that a row of CONTRIBUTING.md names in its first sentence. */
function countNamed(change: string): number {
  const [, files = ""] = new RegExp(`^\\| ${change} \\| (.*?)(?:\\. |\\|)`, "m").exec(read("CONTRIBUTING.md")) ?? [];
  return new Set(files.match(/`[\w/-]+\.\w+`/g)).size;
}

/** The number of calls of each kind. */
const REPETITIONS = 5;

const sqlOf = (file: string) => file.replace(/\.ts$/, ".sql");

/** Functions that redeem, look up and reserve a new voucher. Each resolves only when the worker has finished too. */
function openCalls({ partner, vouchers }: Stage, port: number | undefined): (() => Promise<void>)[] {
  const headers = { "X-Api-Key": partner.key, "Content-Type": "application/json" };
  const call = async (path: string, request: RequestInit = {}) => {
    const response = await fetch(`http://127.0.0.1:${port}/partner/vouchers/${path}`, { headers, ...request });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    // The worker finishes its job only after the answer, so this waits.
    await sleep(300);
  };
  const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });
  const nextCode = () => vouchers.pop()?.code ?? "";
  return [
    () => post("redeem", { code: nextCode(), externalRef: crypto.randomUUID() }),
    () => call(nextCode()),
    () => post("reserve", { code: nextCode() }),
  ];
}

/** Counts the files that API and worker execute for one call of each kind, and the files that the worker loads. */
async function measure(): Promise<{ executed: number[]; loaded: number }> {
  const { signal } = new AbortController();
  const servers = await openBenchServers(() => undefined);
  try {
    const stage = await openStage(servers, "house", ROOT, { signal, say: () => undefined });
    const recordFiles = join(stage.directory, "files");
    const probe = `--import=${join(ROOT, "test/support/record-files.ts")}`;
    const env = { ...stage.env, WORKER_QUEUES: "redeem", NODE_OPTIONS: probe, RECORD_FILES: recordFiles };
    const running = await startContender("service", { ...stage, env, ...servers.nextRedis() });
    try {
      await stage.ensure("vouchers", 3 * (REPETITIONS + 1));
      const pids = [...running.apiPids, ...running.workerPids];
      const recorded = (pid: number): string[] =>
        existsSync(`${recordFiles}-${pid}`)
          ? readFileSync(`${recordFiles}-${pid}`, "utf8").split("\n").slice(0, -1)
          : [];
      /** Returns the files that each process has used since the previous call, each with the SQL file beside it. */
      const take = async (): Promise<string[][]> => {
        const { length } = pids.flatMap(recorded);
        for (const pid of pids) process.kill(pid, "SIGUSR2");
        await until(() => pids.flatMap(recorded).length === length + pids.length);
        const files = pids.map((pid): string[] => JSON.parse(recorded(pid).at(-1) ?? "[]"));
        return files.map((own) => [...own, ...own.map(sqlOf).filter((file) => existsSync(join(ROOT, file)))]);
      };
      const calls = openCalls(stage, running.ports[0]);
      const loaded = ((await take())[1] ?? []).filter((file) => !file.endsWith(".sql"));
      // The first call of each kind opens connections and prepares statements.
      for (const make of calls) await make();
      const executed: number[] = [];
      for (const make of calls) {
        // Timers of both processes run at the same time, so only files that run in every repetition belong to the call.
        const counts = new Map<string, number>();
        for (let repetition = 0; repetition < REPETITIONS; repetition++) {
          await take();
          await make();
          for (const file of new Set((await take()).flat())) counts.set(file, (counts.get(file) ?? 0) + 1);
        }
        executed.push([...counts.values()].filter((count) => count === REPETITIONS).length);
      }
      return { executed, loaded: loaded.length };
    } finally {
      await running.end();
      await stage.close();
    }
  } finally {
    await servers.close();
  }
}

const { executed, loaded } = process.argv.includes("--measure") ? await measure() : {};
const { sources, tests } = findHandWritten();
const signature = findSignature();
const climbing = findClimbing(sources.flatMap((file) => importsOf(file, read(file))));
const long = longLinesOf([...sources, ...tests]);
const statements = countUnchecked();
const cases = tests.filter((file) => file.endsWith(".test.ts"));
const prologues = cases.map(countPrologue);
const prologueShare = Math.round((100 * sum(prologues)) / linesOf(cases));
const composition = largest(
  findFiles("src/open")
    .filter((file) => !file.slice("src/open/".length).includes("/"))
    .map((file) => ({ file, lines: countLines(file) })),
);
const named = ["look-up answer", "redeem request"].map((change) => countNamed(`A field of the ${change}`));
const elsewhere =
  signature.elsewhere.length === 0 ? "all in core and platform" : `${signature.elsewhere.length} elsewhere`;

const words = sum(["SECURITY.md", ...globSync("docs/**/*.md")].map((file) => read(file).trim().split(/\s+/).length));
const types = sources.flatMap(
  (file) => read(file).match(/(?<=^export (?:abstract )?(?:type|interface|class) )\w+/gm) ?? [],
);

const ROWS = [
  [
    "files that the partner's redemption routes, the redeem worker and the sweeper load; their lines",
    "94, 9 736",
    `≤ ${SIGNATURE_MAX.files}, ≤ ${show(SIGNATURE_MAX.lines)}, all in core and platform`,
    `${signature.files.length}, ${show(signature.lines)}, ${elsewhere}`,
  ],
  ["imports from core or platform of a wing or a face", "6", "0", `${climbing.length}`],
  ["wings that a test takes away", "0", "3", `${findWings(tests).length}`],
  ["files that know the whole context of a process", "30", "0", `${findWholeContexts(sources).length}`],
  [
    `functions over ${FUNCTION_MAX} lines in the source, in tests`,
    "8 over 70",
    "0, 0",
    `${longFunctionsOf(sources).length}, ${longFunctionsOf(tests).length}`,
  ],
  ["places that state one rule: thresholds, times in the past, append, acts", "2 to 3 each", "1 each", "by hand"],
  ["of ten rules searched for in the code, found within a minute", "7", "10", "by hand"],
  [
    "longest prologue of a test file, and the share of all",
    "355, 31 %",
    `≤ ${PROLOGUE_MAX}, ≤ 15 %`,
    `${Math.max(...prologues)}, ${prologueShare} %`,
  ],
  [
    "object literals spread directly into another one",
    "about 12",
    "0",
    `${spreadLiteralsOf([...sources, ...tests]).length}`,
  ],
  [
    `lines over ${LINE_MAX} columns: code, comments`,
    "797 in all",
    "0, 0",
    `${show(long.code.length)}, ${show(long.comments.length)}`,
  ],
  ["words in `docs` and `SECURITY.md`", "50 012", "≤ 40 000", show(words)],
  ["exported types with the name of another one", "13", "0", `${types.length - new Set(types).size}`],
  ["comments, titles, paragraphs at which a reader stumbles, in samples", "12, 15, 10 %", "≤ 3 % each", "by hand"],
  [
    "statements whose parameters are not checked by name when they load",
    "all",
    "0",
    `${statements.unchecked} of ${statements.all}`,
  ],
  [
    "own files executed by a redeem / look-up / reserve",
    "63 / 38 / 49",
    "≤ 49 / 31 / 40",
    `${executed?.join(" / ") ?? "`--measure`"}`,
  ],
  ["own files that a worker with `WORKER_QUEUES=redeem` loads", "104", "≤ 60", `${loaded ?? "`--measure`"}`],
  [
    "largest composition of a process",
    "232",
    `≤ ${COMPOSITION_MAX}`,
    `${composition.lines} (\`${basename(composition.file)}\`)`,
  ],
  ["files for a field of a look-up's answer / a redeem request", "5 / 5", "≤ 3 / ≤ 3", `${named.join(" / ")}`],
  ["`npm test` on two idle cores", "2 min 14 s", "≤ 2 min", "by hand"],
];
process.stdout.write(`${formatTable(["Measure", "before", "wanted", "now"], ROWS)}\n`);
