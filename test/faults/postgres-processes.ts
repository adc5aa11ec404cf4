import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/until.ts";
import { listProcesses, signal } from "./process-list.ts";

/** Time for processes to end after SIGKILL: milliseconds, unless the disk is slow. */
const END_MS = 20_000;

/** The pid of the server on a data directory, or null when there is none. */
export function findPostmaster(directory: string): number | null {
  try {
    const pid = Number(readFileSync(pidFile(directory), "utf8").split("\n")[0]);
    return listProcesses().some((listed) => listed.pid === pid) ? pid : null;
  } catch {
    return null;
  }
}

/** Stops the postmaster first, so that it starts no new processes, and then its children. Returns their pids. */
export function freezePostgres(directory: string): number[] {
  const postmaster = findPostmaster(directory);
  if (postmaster === null) return [];
  signal(postmaster, "SIGSTOP");
  const children = childrenOf(postmaster);
  for (const pid of children) signal(pid, "SIGSTOP");
  return [postmaster, ...children];
}

/** Kills all processes of a server at once, as when its machine dies, and waits until they have ended. */
export async function killPostgres(directory: string): Promise<void> {
  const pids = freezePostgres(directory);
  for (const pid of pids) signal(pid, "SIGKILL");
  // Postgres refuses to start while a process still uses the shared memory.
  await until(() => {
    const running = new Set(listProcesses().map((listed) => listed.pid));
    return pids.every((pid) => !running.has(pid));
  }, END_MS);
  forgetPostmaster(directory);
}

/** After the end, the pid may belong to another process or a zombie, which pg_ctl would take for the server. */
export function forgetPostmaster(directory: string): void {
  rmSync(pidFile(directory), { force: true });
}

export function childrenOf(parent: number): number[] {
  return listProcesses()
    .filter((listed) => listed.parent === parent)
    .map((listed) => listed.pid);
}

function pidFile(directory: string): string {
  return join(directory, "postmaster.pid");
}
