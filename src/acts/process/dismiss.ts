import { forgetProcess, readProcesses } from "../../core/processes/read-processes.ts";
import { AppError } from "../../platform/api/errors.ts";
import type { DeploymentIdentity } from "../../platform/deployment-identity.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { act } from "../act.ts";
import { type AuditContext, withAuditEntry } from "../with-audit-entry.ts";

/** The Redis store to which processes report. */
export interface Reports {
  redis: RedisClient;
  deployment: Pick<DeploymentIdentity, "id">;
}

/** Refuses if the process has reported since. @throws AppError `not_found`; Error when Redis does not answer. */
export const dismissProcess = act({
  name: "process dismiss",
  on: "process",
  role: "admin",
  title: "Dismiss a process that is gone and will not be replaced",
  about: "The overview stops showing it, until it reports again.",
  examples: ['"host-7 4711 worker 2027-01-31T12:00:00.000Z"'],
  fields: {},
  async run(ctx: AuditContext & Reports, id) {
    const { redis, deployment } = ctx;
    const processes = await readProcesses(redis, deployment);
    if (!processes.some((one) => one.id === id && one.state === "gone")) {
      throw new AppError("not_found", "No process that is gone has this id.");
    }
    // The audit entry is committed before the dismissal, so no dismissal lacks an entry.
    const states = { before: { shown: true }, after: () => ({ shown: false }) };
    await withAuditEntry(ctx, { type: "Process", id }, async () => undefined, states);
    await forgetProcess(redis, deployment, id);
    return { id, dismissed: true };
  },
  said: () => "Dismissed.",
});
