import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../../..");
/** Folders that are not copied: tests do not read them, or read them through a link. */
const NOT_COPIED = ["node_modules", ".git", ".data", ".ci"];

/** Runs test files, or all guarantees. Returns whether a test failed. */
export async function turnsRed(
  files: readonly string[],
  { cwd = ROOT, env = {} }: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<boolean> {
  const projects = ["--project", "guarantees", "--project", "campaigns"];
  const args = ["node_modules/vitest/vitest.mjs", "run", ...projects, "--bail", "1", ...files];
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, NO_COLOR: "1", VITEST_POOL_ID: undefined, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  const code = await new Promise((resolved) => child.on("close", resolved));
  if (code !== 0 && !/\d failed/.test(output)) throw new Error(`the tests did not run: ${output.slice(-2_000)}`);
  return code !== 0;
}

/** A guard in TypeScript, and how to break it. */
export interface CodeGuard {
  /** What the guard ensures. */
  rule: string;
  file: string;
  /** Text that occurs once in the file. */
  text: string;
  /** What replaces it. */
  broken: string;
  /** The tests that must see it. */
  tests: string[];
}

/** The guards of a file, by rule, with the tests that must see each of them. */
export const guardsOf = (
  file: string,
  tests: string[],
  guards: Record<string, [text: string, broken: string]>,
): CodeGuard[] => Object.entries(guards).map(([rule, [text, broken]]) => ({ rule, file, text, broken, tests }));

/** A copy of the project. */
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

/** Makes a copy of the project in which one guard is broken. */
export function makeBrokenCopy({ file, text, broken }: CodeGuard): Copy {
  const copy = copyProject();
  const path = join(copy.directory, file);
  const [before, ...after] = readFileSync(path, "utf8").split(text);
  if (after.length !== 1) throw new Error(`${file} has ${after.length} places with: ${text}`);
  writeFileSync(path, `${before}${broken}${after[0]}`);
  return copy;
}
