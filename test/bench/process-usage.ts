import { existsSync, readdirSync, readFileSync } from "node:fs";

/** What /proc counts CPU time in, a second; 100 on every Linux (getconf CLK_TCK). */
const TICKS_PER_SECOND = 100;

/** Whether CPU and memory of processes can be read here. */
export const CAN_READ_USAGE = existsSync("/proc/self/stat");

/**
 * CPU time of processes so far, in microseconds: of themselves and of their children that ended. NaN where there is no /proc.
 */
export function readCpuMicros(pids: readonly number[]): number {
  if (!CAN_READ_USAGE) return Number.NaN;
  // utime, stime, cutime, cstime: fields 14 to 17 of proc_pid_stat(5).
  return pids.reduce((sum, pid) => sum + toMicros(statFields(String(pid)).slice(11, 15)), 0);
}

/** CPU time of the processes that this one has started and that have ended, in microseconds. NaN where there is no /proc. */
export function readEndedChildrenCpuMicros(): number {
  if (!CAN_READ_USAGE) return Number.NaN;
  return toMicros(statFields("self").slice(13, 15));
}

/** Memory of processes in bytes: pages that several of them share count once in proportion (PSS). NaN where there is no /proc. */
export function readMemoryBytes(pids: readonly number[]): number {
  if (!CAN_READ_USAGE) return Number.NaN;
  return pids.reduce((sum, pid) => {
    const rollup = readProc(`${pid}/smaps_rollup`);
    return sum + Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1_024;
  }, 0);
}

/** Resident memory of one process in bytes (RSS). NaN where there is no /proc. */
export function readResidentBytes(pid: number): number {
  if (!CAN_READ_USAGE) return Number.NaN;
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readProc(`${pid}/status`))?.[1] ?? Number.NaN) * 1_024;
}

/** A process and all that it has started and that still runs, as Postgres starts one for each connection. */
export function withChildren(pid: number): number[] {
  if (!CAN_READ_USAGE) return [pid];
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return [pid, ...children.map(Number)];
}

function toMicros(ticks: readonly string[]): number {
  return ticks.reduce((sum, field) => sum + Number(field), 0) * (1_000_000 / TICKS_PER_SECOND);
}

function parentOf(pid: string): number {
  return Number(statFields(pid)[1]);
}

/** The fields behind the name in brackets, which may hold anything. None when the process is gone. */
function statFields(pid: string): string[] {
  const text = readProc(`${pid}/stat`);
  return text === "" ? [] : text.replace(/^.*\) /s, "").split(" ");
}

function readProc(file: string): string {
  try {
    return readFileSync(`/proc/${file}`, "utf8");
  } catch {
    return "";
  }
}
