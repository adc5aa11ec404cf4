import { cpus, release, totalmem, type } from "node:os";
import type { LoadClient } from "./load/run-load.ts";
import type { BenchServers } from "./servers.ts";

/** On what a run was measured, in one line. */
export function describeMachine({ versions }: BenchServers, client: LoadClient): string {
  const [first] = cpus();
  const gigabytes = Math.round(totalmem() / 2 ** 30);
  return [
    `${cpus().length} cores (${first?.model.trim() || "unknown"}), ${gigabytes} GB`,
    `${type()} ${release().split("-")[0]}`,
    `Node ${process.versions.node}`,
    `PostgreSQL ${versions.postgres}`,
    `Redis ${versions.redis}`,
    `load by ${client.name}`,
  ].join(", ");
}
