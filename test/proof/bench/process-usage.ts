import { existsSync, readdirSync, readFileSync } from "node:fs";

/** Linux counts CPU time in ticks: 100 per second (getconf CLK_TCK). */
const TICKS_PER_SECOND = 100;

/** Whether this machine shows the CPU time of other processes. */
export const CAN_READ_USAGE = existsSync("/proc/self/stat");

/** Reads the CPU time of processes and of their ended children, in microseconds. NaN without /proc. */
export function readCpuMicros(pids: readonly number[]): number {
  if (!CAN_READ_USAGE) return Number.NaN;
  // utime, stime, cutime, cstime: fields 14 to 17 of proc_pid_stat(5).
  const ticks = pids.flatMap((pid) => statFields(pid).slice(11, 15));
  return ticks.reduce((sum, field) => sum + Number(field), 0) * (1_000_000 / TICKS_PER_SECOND);
}

/** Lists a process and its running children. Postgres starts one for each connection. */
export function withChildren(pid: number): number[] {
  if (!CAN_READ_USAGE) return [pid];
  const others = readdirSync("/proc").map(Number).filter(Number.isInteger);
  return [pid, ...others.filter((other) => Number(statFields(other)[1]) === pid)];
}

/** The processes of a Postgres server, without processes that serve or vacuum other databases. */
export function processesFor(postgresPid: number, database: string): number[] {
  return withChildren(postgresPid).filter((pid) => {
    const [, served, vacuumed] =
      /^postgres: (?:\S+ (\S+) \S+\(\d+\)|autovacuum worker (\w+))/.exec(readTitle(pid)) ?? [];
    return (served ?? vacuumed ?? database) === database;
  });
}

/** The title that a process has given itself. Empty if the process has ended. */
function readTitle(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}

/** Reads the fields after the name in parentheses, which may contain any character. Empty if the process has ended. */
function statFields(pid: number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.replace(/^.*\) /s, "").split(" ");
  } catch {
    return [];
  }
}
