import { execFile } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pLimit from "p-limit";
import { installDebianPackages, onPath } from "../../../src/local/debian-packages.ts";

// Checks the models of this folder with SPIN: `npm run test:models`. Each model must have no error in any state, and
// SPIN must find an error in each of its deliberate mistakes (`#ifdef`). Exits with status 1 otherwise.

const FOLDER = import.meta.dirname;
/** The longest path that SPIN follows, in steps, and the longest search. The models need a tenth of each. */
const DEPTH_MAX = 3_000_000;
const SEARCH_MAX_MS = 300_000;
/** SPIN warns, and ends with status 0, when it has not searched everything. */
const IS_INCOMPLETE = /not completed|max search depth too small|out of memory|Search interrupted/;

const run = promisify(execFile);
const say = (line: string) => void process.stdout.write(`${line}\n`);

interface Search {
  states: number;
  hasError: boolean;
  isExhaustive: boolean;
  /** Statements that no run reaches: what they say is not checked. */
  unreached: string[];
}

/** Searches every state of a model, with a mistake or without. An error ends the search. @throws Error */
async function search(file: string, mistake: string | null): Promise<Search> {
  const cwd = mkdtempSync(join(tmpdir(), "model-"));
  try {
    copyFileSync(join(FOLDER, file), join(cwd, file));
    await run("spin", [...(mistake === null ? [] : [`-D${mistake}`]), "-a", file], { cwd });
    // Assertions and processes that wait for ever count, no infinite runs. COLLAPSE needs half the memory.
    await run("gcc", ["-O1", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], { cwd });
    const { stdout } = await run("./pan", ["-n", "-w22", `-m${DEPTH_MAX}`], { cwd, timeout: SEARCH_MAX_MS });
    const [, errors] = /errors: (\d+)/.exec(stdout) ?? [];
    const [, states] = /(\d+) states, stored/.exec(stdout) ?? [];
    if (errors === undefined || states === undefined) throw new Error(`SPIN does not say what it found: ${stdout}`);
    const unreached = [...stdout.matchAll(/pml:\d+, state \d+, "(.*)"/g)].map(([, statement]) => String(statement));
    return {
      states: Number(states),
      hasError: errors !== "0",
      isExhaustive: !IS_INCOMPLETE.test(stdout),
      // The end of a process that runs without end.
      unreached: unreached.filter((statement) => statement !== "-end-"),
    };
  } finally {
    rmSync(cwd, { recursive: true });
  }
}

/** Checks a model, with a mistake or without. Returns whether SPIN found what it should. */
async function check(file: string, mistake: string | null): Promise<boolean> {
  const { states, hasError, isExhaustive, unreached } = await search(file, mistake);
  const problems = [
    hasError ? "an error" : "no error",
    ...(hasError || isExhaustive ? [] : ["not every state was searched"]),
    ...(mistake === null && !hasError && unreached.length > 0 ? [`never reached: ${unreached.join("; ")}`] : []),
  ];
  const isRight = hasError === (mistake !== null) && problems.length === 1;
  const what = mistake === null ? file : `${file} with ${mistake}`;
  say(`${isRight ? "ok   " : "WRONG"} ${what}: ${count(states)} states, ${problems.join(", ")}`);
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
// The largest searches first, two at most: each needs a third of a gigabyte.
const limit = pLimit(Math.min(2, availableParallelism()));
const order = wanted.toSorted((one, other) => Number(one.mistake !== null) - Number(other.mistake !== null));
const results = await Promise.all(order.map(({ file, mistake }) => limit(() => check(file, mistake))));
const wrong = results.filter((isRight) => !isRight).length;
const mistakes = wanted.length - files.length;
const seconds = Math.round((performance.now() - startedAt) / 1_000);
say(`${files.length} models, ${mistakes} deliberate mistakes, ${wrong} wrong, ${seconds} s`);
process.exitCode = wrong > 0 || files.some((file) => mistakesIn(file).length === 0) ? 1 : 0;
