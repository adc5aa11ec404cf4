import type { ServiceProcess } from "../core/processes/db/processes.ts";

/** How busy a process is, as it records it. */
export type RecordedUse = Pick<ServiceProcess, "role" | "queues" | "isUp" | "busy">;

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

/** The parts whose processes record their own work: the APIs, and the workers that redeem. */
export function partsOf(processes: readonly RecordedUse[]): Part[] {
  const up = processes.filter(({ isUp }) => isUp);
  const kinds = [
    { name: "API", own: up.filter(({ role }) => role === "api") },
    { name: "worker", own: up.filter(({ queues }) => queues.includes("redeem")) },
  ] as const;
  return kinds.map(({ name, own }) => {
    return { name, busy: own.length === 0 ? null : Math.max(...own.map(({ busy }) => busy)), processes: own.length };
  });
}
