import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import type { SeededRandom } from "./seeded-random.ts";

/** Lists this machine's processes without zombies, from /proc if it exists, otherwise from ps. */
export function listProcesses(): { pid: number; parent: number; command: string }[] {
  const lines = existsSync("/proc/self/stat")
    ? readdirSync("/proc").map(readProcess)
    : execFileSync("ps", ["-A", "-o", "pid=,stat=,ppid=,command="], { encoding: "utf8" }).split("\n");
  return lines.flatMap((line) => {
    const [, pid, state = "Z", parent, command = ""] = /^\s*(\d+)\s+(\S+)\s+(\d+)\s+(.*)$/s.exec(line) ?? [];
    return /^[ZX]/.test(state) ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** Reads the pid, state, parent and command of a process in /proc. Empty for other entries and ended processes. */
function readProcess(name: string): string {
  if (!/^\d+$/.test(name)) return "";
  try {
    // The name in parentheses may contain any character, including parentheses.
    const stat = readFileSync(`/proc/${name}/stat`, "utf8").replace(/^.*\) /s, "");
    const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ");
    return `${name} ${stat.split(" ", 2).join(" ")} ${command}`;
  } catch {
    return "";
  }
}

/** Sends a signal. Does nothing when the process has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Finds the pid of the Postgres server on a data directory, or null when there is none. */
export function findPostmaster(directory: string): number | null {
  if (!existsSync(pidFile(directory))) return null;
  const pid = Number(readFileSync(pidFile(directory), "utf8").split("\n")[0]);
  return listProcesses().some((listed) => listed.pid === pid) ? pid : null;
}

/** Stops the postmaster, which then starts no processes, and after that its children. Returns their pids. */
export function freezePostgres(directory: string): number[] {
  const postmaster = findPostmaster(directory);
  if (postmaster === null) return [];
  signal(postmaster, "SIGSTOP");
  const children = childrenOf(postmaster);
  for (const pid of children) signal(pid, "SIGSTOP");
  return [postmaster, ...children];
}

/** Kills all processes of a server at once, like a crash of its machine, and waits until they have ended. */
export async function killPostgres(directory: string): Promise<void> {
  const pids = freezePostgres(directory);
  for (const pid of pids) signal(pid, "SIGKILL");
  // Postgres refuses to start while a process still uses the shared memory.
  await until(() => !listProcesses().some(({ pid }) => pids.includes(pid)));
  forgetPostmaster(directory);
}

/**
 * Kills a random process of a server, if it has one. Returns a function that says whether all other processes of that
 * time have ended too.
 */
export function killOneOf(directory: string, random: SeededRandom): (() => boolean) | null {
  const postmaster = findPostmaster(directory);
  const children = postmaster === null ? [] : childrenOf(postmaster);
  if (postmaster === null || children.length === 0) return null;
  signal(random.pick(children), "SIGKILL");
  return () => !childrenOf(postmaster).some((pid) => children.includes(pid));
}

/**
 * Deletes the file with the server's pid. Otherwise pg_ctl would take any process or zombie with this pid for the
 * server.
 */
export function forgetPostmaster(directory: string): void {
  rmSync(pidFile(directory), { force: true });
}

function childrenOf(parent: number): number[] {
  return listProcesses().flatMap((listed) => (listed.parent === parent ? [listed.pid] : []));
}

const pidFile = (directory: string) => join(directory, "postmaster.pid");
