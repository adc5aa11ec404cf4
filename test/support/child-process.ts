import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Spares the many short processes of a test run a third of their time. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node");

/** How a process ended and what it wrote. */
export interface Ended {
  /** Null when a signal ended it. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** A process of this project. */
export interface Started {
  child: ChildProcess;
  /** What it has written so far, both streams in the order of arrival. */
  output(): string;
  ended: Promise<Ended>;
}

/** Starts `node file …` in the project's directory with an environment of its own: nothing of the tests' gets in. */
export function startNode(args: readonly string[], env: Record<string, string>): Started {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  let output = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    output += text;
  });
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    output += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ exitCode, stdout, stderr }));
  });
  return { child, output: () => output, ended };
}

/** Runs `node file …` to its end. */
export function runNode(args: readonly string[], env: Record<string, string>): Promise<Ended> {
  return startNode(args, env).ended;
}
