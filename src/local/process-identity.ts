import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * A text that distinguishes a running process from all others with the same id, earlier or later: its start time and,
 * on Linux, the boot of the machine. Null if no running process has the id.
 */
export function identify(pid: number): string | null {
  return process.platform === "linux" ? identifyByProc(pid) : identifyByPs(pid);
}

/**
 * Whether the process with this id and identity still runs. Without an identity, only the id counts: earlier releases
 * recorded no identity.
 */
export function isRunning(pid: number, identity: string | undefined): boolean {
  const found = identify(pid);
  return found !== null && (!identity || found === identity);
}

function identifyByProc(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`);
  // Reads the fields after the process's name, because the name may contain spaces and brackets. Field 22 is the start
  // time, in ticks since the boot of the machine.
  const [state, ...fields] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie process has ended: its parent has only not read its status yet.
  if (stat === "" || state === "Z") return null;
  return `${fields[18]} ${readText("/proc/sys/kernel/random/boot_id").trim()}`;
}

/** Empty if the file cannot be read. */
function readText(file: string): string {
  try {
    return readFileSync(file, { encoding: "utf8" });
  } catch {
    return "";
  }
}

function identifyByPs(pid: number): string | null {
  const env = { ...process.env, TZ: "UTC", LC_ALL: "C" };
  const { error, stdout } = spawnSync("ps", ["-o", "lstart=", "-p", String(pid)], { env, encoding: "utf8" });
  if (error === undefined) return stdout.trim() || null;
  // Windows has no `ps`.
  return isAlive(pid) ? "running" : null;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
