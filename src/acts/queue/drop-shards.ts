import { AppError } from "../../platform/api/errors.ts";
import type { Division } from "../../platform/queues/read-shards.ts";
import { type AuditContext, withAuditEntry } from "../with-audit-entry.ts";
import { pluralize } from "../words.ts";

/** The shards of the queues in Redis, and how to delete them. */
export interface Shards {
  deploymentId: string;
  read(): Promise<Division[]>;
  /** Deletes the queues' Redis keys for a division into this number of shards. Returns how many keys existed. */
  drop(shards: number): Promise<number>;
}

type ShardState = "unserved" | "in_use" | "ready" | "emptying" | "unreachable" | "unused";

/** The state of a division of the queues into shards. */
export function stateOf({ apis, jobs, served, unserved }: Division): ShardState {
  if (apis > 0) return unserved.length > 0 ? "unserved" : "in_use";
  if (jobs === null) return "unreachable";
  if (jobs > 0) return served && unserved.length === 0 ? "emptying" : "unserved";
  if (!served) return "unused";
  return unserved.length > 0 ? "unserved" : "ready";
}

/** The meaning of each state, for operators. */
export const MEANING: Record<ShardState, (division: Division) => string> = {
  in_use: () => "API processes add jobs, and workers serve every shard",
  ready: () => "workers serve every shard, no API process adds jobs, and no jobs are left",
  emptying: () => "no API process adds jobs; workers process those that are left",
  unserved: ({ unserved }) => `no worker serves ${unserved.join(", ")}`,
  unreachable: () => "a Redis server does not answer",
  unused: ({ shards }) => `no process uses it; voucherctl queue drop-shards ${shards} deletes what is left`,
};

/**
 * Deletes the queues' Redis keys for a number of shards that no process uses. Returns how many keys existed.
 * @throws AppError `invalid_request` if a process uses these shards, or if they have jobs.
 */
export async function dropShards(
  ctx: AuditContext,
  { deploymentId, read, drop }: Shards,
  shards: number,
): Promise<number> {
  const division = (await read()).find((each) => each.shards === shards);
  if (division === undefined) return 0;
  const state = stateOf(division);
  if (state !== "unused") {
    throw new AppError("invalid_request", `${pluralize(shards, "shard")}: ${MEANING[state](division)}.`);
  }
  // The database does not change. An audit entry is written only if the facts before and after differ. So `queueKeys`
  // is 1 while there are keys, and 0 after they were deleted.
  const after = (dropped: number) => ({ queueKeys: dropped === 0 ? 1 : 0 });
  const unseen = { before: { queueKeys: 1 }, after };
  return withAuditEntry(ctx, { type: "Deployment", id: deploymentId }, () => drop(shards), unseen);
}
