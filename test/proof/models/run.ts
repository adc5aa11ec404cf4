import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pLimit from "p-limit";
import { installDebianPackages, onPath } from "../../../src/local/debian-packages.ts";

// Checks the models of this folder with SPIN: `npm run test:models`. No state of a model may violate an assertion, and
// no process may wait forever. A model also has deliberate mistakes (`#ifdef`). With each of them, SPIN must find a
// violated assertion, because a mistake that only stops a process proves nothing. Exits with status 1 otherwise.

const FOLDER = import.meta.dirname;
/**
 * The maximum length of a path that SPIN follows, in steps, and the maximum time of a search, in milliseconds. The
 * models need a tenth of each.
 */
const DEPTH_MAX = 3_000_000;
const SEARCH_MAX_MS = 300_000;
/** SPIN warns, and ends with status 0, if it has not searched everything. */
const IS_INCOMPLETE = /not completed|max search depth too small|out of memory|Search interrupted/;

const run = promisify(execFile);
const say = (line: string) => void process.stdout.write(`${line}\n`);

interface Search {
  states: number;
  /** SPIN's message about the first error, or null. */
  error: string | null;
  isExhaustive: boolean;
  /** Statements that no run reaches, so that SPIN does not check them. */
  unreached: string[];
}

/**
 * Searches every state of a model, with a mistake or without, up to the first error. @throws Error if a program fails.
 */
async function search(file: string, mistake: string | null): Promise<Search> {
  const cwd = mkdtempSync(join(tmpdir(), "model-"));
  try {
    copyFileSync(join(FOLDER, file), join(cwd, file));
    await run("spin", [...(mistake === null ? [] : [`-D${mistake}`]), "-a", file], { cwd });
    // SAFETY leaves out the search for infinite runs. COLLAPSE halves the memory.
    await run("gcc", ["-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], { cwd });
    // With a mistake, the search ignores processes that wait forever (-E), and looks only for a violated assertion.
    const options = ["-n", "-w22", `-m${DEPTH_MAX}`, ...(mistake === null ? [] : ["-E"])];
    const { stdout } = await run("./pan", options, { cwd, timeout: SEARCH_MAX_MS });
    const [, errors] = /errors: (\d+)/.exec(stdout) ?? [];
    const [, states] = /(\d+) states, stored/.exec(stdout) ?? [];
    if (errors === undefined || states === undefined) throw new Error(`SPIN does not say what it found: ${stdout}`);
    const unreached = [...stdout.matchAll(/pml:\d+, state \d+, "(.*)"/g)].map(([, statement]) => String(statement));
    return {
      states: Number(states),
      error: errors === "0" ? null : (/^pan:\d+: (.*?)\s*\(at depth/m.exec(stdout)?.[1] ?? "an error without a name"),
      isExhaustive: !IS_INCOMPLETE.test(stdout),
      // A process that runs forever never reaches its end. SPIN reports this end as unreached, which is right.
      unreached: unreached.filter((statement) => statement !== "-end-"),
    };
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Checks a model, with a mistake or without. Returns whether SPIN found what it must find. */
async function check(file: string, mistake: string | null): Promise<boolean> {
  const { states, error, isExhaustive, unreached } = await search(file, mistake);
  const isIncomplete = error === null && !isExhaustive;
  const isUnreached = mistake === null && error === null && unreached.length > 0;
  const found = [
    error ?? "no error",
    ...(isIncomplete ? ["not every state was searched"] : []),
    ...(isUnreached ? [`never reached: ${unreached.join("; ")}`] : []),
  ];
  const isAsExpected = mistake === null ? error === null : error?.startsWith("assertion violated") === true;
  const isRight = isAsExpected && !isIncomplete && !isUnreached;
  const what = mistake === null ? file : `${file} with ${mistake}`;
  say(`${isRight ? "ok   " : "WRONG"} ${what}: ${count(states)} states, ${found.join(", ")}`);
  return isRight;
}

const count = (states: number) => states.toLocaleString("en").replaceAll(",", " ");

const missing = () => ["spin", "gcc"].filter((program) => onPath(program) === null);
if (missing().length > 0) installDebianPackages("SPIN", ["spin", "gcc", "libc6-dev"], say);
if (missing().length > 0) throw new Error(`The models need these programs on PATH: ${missing().join(", ")}.`);

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".pml"));
const mistakesIn = (file: string) => {
  const found = [...readFileSync(join(FOLDER, file), "utf8").matchAll(/^#ifn?def (\w+)|\bdefined\((\w+)\)/gm)];
  return [...new Set(found.map(([, one, other]) => String(one ?? other)))];
};
const wanted = files.flatMap((file) => [null, ...mistakesIn(file)].map((mistake) => ({ file, mistake })));
const startedAt = performance.now();
// The largest searches come first. At most two run at once, because each needs a third of a gigabyte.
const limit = pLimit(Math.min(2, availableParallelism()));
const order = wanted.toSorted((one, other) => Number(one.mistake !== null) - Number(other.mistake !== null));
const results = await Promise.all(order.map(({ file, mistake }) => limit(() => check(file, mistake))));
const wrong = results.filter((isRight) => !isRight).length;
const mistakes = wanted.length - files.length;
const seconds = Math.round((performance.now() - startedAt) / 1_000);
say(`${files.length} models, ${mistakes} deliberate mistakes, ${wrong} wrong, ${seconds} s`);
process.exitCode = wrong > 0 || files.some((file) => mistakesIn(file).length === 0) ? 1 : 0;
