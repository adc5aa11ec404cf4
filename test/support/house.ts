import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startContender } from "../proof/bench/contenders.ts";
import { openBenchServers, openStage } from "../proof/bench/stage.ts";
import { formatTable } from "../proof/bench/table.ts";
import {
  countLines,
  countPrologue,
  findFiles,
  findFolderCircles,
  findLongFiles,
  findSources,
  findTests,
  importsOf,
} from "./source-files.ts";
import { until } from "./until.ts";

// `npm run -s house` prints how large the project is, beside the sizes before and after the work of halving it. With `--measure` it starts the
// service and counts the files that a call executes, and those that a worker loads. The table is in CONTRIBUTING.md.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
const linesOf = (files: readonly string[]) => sum(files.map(countLines));
const largest = (files: readonly { file: string; lines: number }[]) =>
  files.reduce((one, other) => (other.lines > one.lines ? other : one));
const show = (count: number) => String(count).replace(/\B(?=(\d{3})+$)/g, " ");

/** How many files a row of CONTRIBUTING.md names in its first sentence. */
function countNamed(change: string): number {
  const [, files = ""] = new RegExp(`^\\| ${change} \\| (.*?)(?:\\. |\\|)`, "m").exec(read("CONTRIBUTING.md")) ?? [];
  return new Set(files.match(/`[\w/-]+\.\w+`/g)).size;
}

const sqlOf = (file: string) => file.replace(/\.ts$/, ".sql");

/** Counts the own files that API and worker execute together for one call of each kind, and those that the worker has loaded. */
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
      await stage.ensure("vouchers", 8);
      const pids = [...running.apiPids, ...running.workerPids];
      const recorded = (pid: number): string[] =>
        existsSync(`${recordFiles}-${pid}`)
          ? readFileSync(`${recordFiles}-${pid}`, "utf8").split("\n").slice(0, -1)
          : [];
      /** The files that each process has used since the last time, with the SQL file next to each. */
      const take = async (): Promise<string[][]> => {
        const { length } = pids.flatMap(recorded);
        for (const pid of pids) process.kill(pid, "SIGUSR2");
        await until(() => pids.flatMap(recorded).length === length + pids.length);
        const files = pids.map((pid): string[] => JSON.parse(recorded(pid).at(-1) ?? "[]"));
        return files.map((own) => [...own, ...own.map(sqlOf).filter((file) => existsSync(join(ROOT, file)))]);
      };
      const headers = { "X-Api-Key": stage.partner.key, "Content-Type": "application/json" };
      const call = async (path: string, request: RequestInit = {}) => {
        const response = await fetch(`http://127.0.0.1:${running.ports[0]}/partner/vouchers/${path}`, {
          headers,
          ...request,
        });
        if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
        // The worker finishes its job after the answer.
        await sleep(300);
      };
      const post = (path: string, body: object) => call(path, { method: "POST", body: JSON.stringify(body) });
      const nextCode = () => stage.vouchers.pop()?.code ?? "";
      const calls = [
        () => post("redeem", { code: nextCode(), externalRef: crypto.randomUUID() }),
        () => call(nextCode()),
        () => post("reserve", { code: nextCode() }),
      ];
      const loaded = ((await take())[1] ?? []).filter((file) => !file.endsWith(".sql"));
      // The first call of each kind opens connections and prepares statements.
      for (const make of calls) await make();
      const executed: number[] = [];
      for (const make of calls) {
        await take();
        await make();
        executed.push(new Set((await take()).flat()).size);
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
const sources = findSources(/\.ts$/);
const imports = sources.flatMap((file) => importsOf(file, read(file)));
const rooms = ["src", "src/platform", "src/core", "src/pages", "src/console"];
const circles = rooms.flatMap((parent) => findFolderCircles(parent, imports));
const tests = findTests();
const documents = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...["docs", "packages"].flatMap(findFiles).filter((file) => file.endsWith(".md") && !file.includes("node_modules")),
];
const longest = largest(findLongFiles(0));
const composition = largest(
  readdirSync(join(ROOT, "src"))
    .filter((name) => /^(open-.*|app|main)\.ts$/.test(name))
    .map((name) => ({ file: name, lines: countLines(`src/${name}`) })),
);
const helpers = linesOf(tests.filter((file) => !file.endsWith(".test.ts")));
const prologues = sum(tests.filter((file) => file.endsWith(".test.ts")).map(countPrologue));
const migrations = findFiles("migrations");

const named = ["look-up answer", "redeem request"].map((change) => countNamed(`A field of the ${change}`));
const words = sum(documents.map((file) => read(file).split(/\s+/).filter(Boolean).length));

const ROWS = `
lines in \`src\` and \`workers\` | 31 799 | ≤ 24 000 | ${show(linesOf(["src", "workers"].flatMap(findFiles)))}
own files executed by a redeem / look-up / reserve | 63 / 38 / 49 | ≤ 50 / 32 / 42 | ${executed?.join(" / ") ?? "`--measure`"}
own files that a worker with \`WORKER_QUEUES=redeem\` loads | 104 | ≤ 65 | ${loaded ?? "`--measure`"}
largest hand-written file | 433; 447 with \`.js\` | ≤ 300 | ${longest.lines} (\`${basename(longest.file)}\`)
largest composition of a process | 232 | ≤ 100 | ${composition.lines} (\`${composition.file}\`)
files for a field of a look-up's answer / a redeem request | 5 / 5 | ≤ 3 / ≤ 3 | ${named.join(" / ")}
circles between folders | 2 | 0 | ${circles.length}
migrations, and their lines | 24, 1 108 | ≤ 14, ≤ 800 | ${migrations.length}, ${show(linesOf(migrations))}
lines of tests | 51 846 | ≤ 36 000 | ${show(linesOf(tests))}
of them helpers + before the first test | 12 353 + 11 486 | ≤ 12 000 | ${show(helpers)} + ${show(prologues)}
test titles not understood at first reading, of 100 | 26 | ≤ 5 | by hand
comments not understood at first reading, of 100 | 12 | ≤ 3 | by hand
words in documents | 46 553 | ≤ 32 000 | ${show(words)}
\`npm test\` on two idle cores | 2 min 14 s | ≤ 2 min | by hand`;
const rows = ROWS.trim().split("\n");
process.stdout.write(
  `${formatTable(
    ["Size", "before", "wanted", "now"],
    rows.map((row) => row.split(" | ")),
  )}\n`,
);
