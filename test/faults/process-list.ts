import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** A process of this machine that can still do something: one that ended and was not yet waited for is not listed. */
export interface ListedProcess {
  pid: number;
  parent: number;
  command: string;
}

/** The processes that run now, from /proc where there is one, else from ps. */
export function listProcesses(): ListedProcess[] {
  return existsSync("/proc/self/stat") ? listFromProc() : listFromPs();
}

/** Sends a signal, and does nothing when the process is gone. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

function listFromProc(): ListedProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name): ListedProcess[] => {
      try {
        // The name in brackets may hold anything, brackets included.
        const [state, parent] = readFileSync(`/proc/${name}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ");
        if (state === "Z" || state === "X") return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(name), parent: Number(parent), command }];
      } catch {
        return []; // It ended meanwhile.
      }
    });
}

function listFromPs(): ListedProcess[] {
  return execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,command="], { encoding: "utf8" })
    .split("\n")
    .flatMap((line): ListedProcess[] => {
      const [, pid, parent, state = "", command = ""] = /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
      return pid === undefined || state.startsWith("Z") ? [] : [{ pid: Number(pid), parent: Number(parent), command }];
    });
}
