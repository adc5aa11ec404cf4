import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** A running process of this machine. Zombies are not listed. */
export interface ListedProcess {
  pid: number;
  parent: number;
  command: string;
}

/** Lists the running processes, from /proc where it exists, else from ps. */
export function listProcesses(): ListedProcess[] {
  return existsSync("/proc/self/stat") ? listFromProc() : listFromPs();
}

/** Sends a signal. Does nothing when the process has ended. */
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
        // The name in parentheses may contain any character, including parentheses.
        const [state, parent] = readFileSync(`/proc/${name}/stat`, "utf8")
          .replace(/^.*\) /s, "")
          .split(" ");
        if (state === "Z" || state === "X") return [];
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(name), parent: Number(parent), command }];
      } catch {
        return []; // It has just ended.
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
