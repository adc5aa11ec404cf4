import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
/** Folders that are not copied: tests use node_modules through a link, and read none of the others. */
const NOT_COPIED = ["node_modules", ".git", ".data", ".ci"];

interface Place {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

/**
 * Runs test files, by default all tests except the endurance runs, up to the first failure. Returns whether one failed.
 * @throws Error if no test can run.
 */
export async function turnsRed(files: readonly string[], place: Place = {}): Promise<boolean> {
  // With `--bail`, Vitest sometimes ends at the first failure without a report. In that case, this runs the tests again
  // without it.
  let run = await runTests(["--bail", "1", ...files], place);
  if (!isTold(run)) run = await runTests(files, place);
  if (!isTold(run)) throw new Error(`the tests did not run: ${run.output.slice(-2_000)}`);
  return run.code !== 0;
}

interface Run {
  code: number | null;
  output: string;
}

const isTold = ({ code, output }: Run) => code === 0 || /\d failed/.test(output);

async function runTests(args: readonly string[], { cwd = ROOT, env = {} }: Place): Promise<Run> {
  const projects = ["--project", "guarantees", "--project", "campaigns", "--project", "timings"];
  const child = spawn(process.execPath, ["node_modules/vitest/vitest.mjs", "run", ...projects, ...args], {
    cwd,
    env: { ...process.env, NO_COLOR: "1", VITEST_POOL_ID: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  const code = await new Promise<number | null>((resolved) => child.on("close", resolved));
  return { code, output };
}

/** A guard in TypeScript, and the change that breaks it. */
export interface CodeGuard {
  rule: string;
  file: string;
  /** Text that occurs once in the file. */
  text: string;
  broken: string;
  tests: string[];
}

/** The guards in a file: for each rule, the text that enforces it, and a replacement on which the tests must fail. */
export const guardsOf = (
  file: string,
  tests: string[],
  guards: Record<string, [text: string, broken: string]>,
): CodeGuard[] => Object.entries(guards).map(([rule, [text, broken]]) => ({ rule, file, text, broken, tests }));

interface Copy {
  directory: string;
  remove(): void;
}

export function copyProject(): Copy {
  const directory = mkdtempSync(join(tmpdir(), "voucher-copy-"));
  cpSync(ROOT, directory, { recursive: true, filter: (from) => !NOT_COPIED.some((name) => from === join(ROOT, name)) });
  symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/** Creates a copy of the project in which one guard is broken. */
export function makeBrokenCopy(guard: CodeGuard): Copy {
  const copy = copyProject();
  const parts = splitAtGuard(guard, copy.directory);
  writeFileSync(join(copy.directory, guard.file), parts.join(guard.broken));
  return copy;
}

/** Returns the text of a guard's file before and after the guard. @throws Error unless the guard occurs once. */
export function splitAtGuard({ file, text }: CodeGuard, directory: string): string[] {
  const parts = readFileSync(join(directory, file), "utf8").split(text);
  if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} places with: ${text}`);
  return parts;
}
