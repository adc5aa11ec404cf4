import { forgetProcess, readProcesses } from "../core/processes/read-processes.ts";
import type { DeploymentIdentity } from "../platform/deployment-identity.ts";
import type { RedisClient } from "../platform/redis/connections.ts";
import { type AuditContext, withAuditEntry } from "./with-audit-entry.ts";

interface Deps extends Pick<AuditContext, "pool" | "audited"> {
  redis: RedisClient;
  deployment: Pick<DeploymentIdentity, "id">;
}

/**
 * Dismisses a process that vanished and will not be replaced. Returns whether there is one with this id. Commits the
 * audit entry before the act, so that there is no act without one. @throws Error when Redis does not answer.
 */
export async function dismissProcess(ctx: Deps, id: string): Promise<boolean> {
  const { redis, deployment } = ctx;
  const processes = await readProcesses(redis, deployment);
  if (!processes.some((one) => one.id === id && one.state === "gone")) return false;
  const states = { before: { shown: true }, after: () => ({ shown: false }) };
  await withAuditEntry(ctx, { type: "Process", id }, async () => undefined, states);
  await forgetProcess(redis, deployment, id);
  return true;
}
