import type { ReportedProcess } from "../core/processes/read-processes.ts";

/** How busy a process reports to be. */
export type ReportedUse = Pick<ReportedProcess, "role" | "queues" | "state" | "busy">;

/** A part of the service, and the share of the time that it worked during a load. */
export interface Part {
  name: "API" | "worker" | "Redis" | "Postgres";
  /** The share of its busiest process. Null when it is not known. */
  busy: number | null;
  processes: number;
}

/** A part that works at least this share of the time is the limit: calls wait for it. */
const LIMIT_MIN = 0.7;

/** The busiest part; null if every part has spare time. */
export function findLimit(parts: readonly Part[]): Part["name"] | null {
  const [busiest] = parts
    .filter(({ busy }) => busy !== null && busy >= LIMIT_MIN)
    .toSorted((a, b) => (b.busy ?? 0) - (a.busy ?? 0));
  return busiest?.name ?? null;
}

/** The parts whose processes report their own work: the APIs, and the workers that redeem. */
export function partsOf(processes: readonly ReportedUse[]): Part[] {
  const up = processes.filter(({ state }) => state === "up");
  const kinds = [
    { name: "API", own: up.filter(({ role }) => role === "api") },
    { name: "worker", own: up.filter(({ queues }) => queues.includes("redeem")) },
  ] as const;
  return kinds.map(({ name, own }) => {
    const known = own.flatMap(({ busy }) => busy ?? []);
    return { name, busy: known.length === 0 ? null : Math.max(...known), processes: own.length };
  });
}
