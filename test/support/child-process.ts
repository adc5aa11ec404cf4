import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Node's cache of compiled code, which saves a third of the time of each short process. */
const COMPILE_CACHE = join(ROOT, "node_modules/.cache/node");

export interface Ended {
  /** Null when a signal ended the process. */
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

export interface Started {
  child: ChildProcess;
  /** Returns the output so far, both streams in order of arrival. */
  output(): string;
  ended: Promise<Ended>;
}

/** Starts `node file …` in the project's folder, or in another one, without the tests' environment variables. */
export function startNode(args: readonly string[], env: Record<string, string>, cwd = ROOT): Started {
  return startProgram(process.execPath, args, env, cwd);
}

/** Starts `npm …` like {@link startNode}, as the leader of a process group, which gets the signals of a terminal. */
export function startNpm(args: readonly string[], env: Record<string, string>): Started {
  return startProgram("npm", args, env, ROOT, { detached: true });
}

/** Starts another program like {@link startNode}. Its standard input is empty by default. */
export function startProgram(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  cwd = ROOT,
  { detached = false, stdin = "ignore" }: { detached?: boolean; stdin?: "ignore" | "pipe" } = {},
): Started {
  const child = spawn(program, args, {
    cwd,
    detached,
    env: { PATH: process.env.PATH ?? "", NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    stdio: [stdin, "pipe", "pipe"],
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
