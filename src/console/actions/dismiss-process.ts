import type { RequestHandler } from "express";
import { auditedCommand, withAuditEntry } from "../../acts/with-audit-entry.ts";
import { forgetProcess, readProcesses } from "../../core/processes/read-processes.ts";
import type { Site } from "../../pages/layout.ts";
import { OPS_PATH, opsPath } from "../../pages/operator-frame.ts";
import type { Deployment } from "../../platform/db/deployment.ts";
import type { RedisClient } from "../../platform/redis/connections.ts";
import { nameOf } from "../authenticate-operator.ts";
import type { Console } from "./serve-action.ts";

/** The path of the form after `/ops`. */
export const DISMISS_PATH = "/processes/dismiss";

export interface DismissDeps {
  config: Site;
  redis: RedisClient;
  deployment: Deployment;
}

/** Dismisses a process that vanished and will not be replaced. Commits the audit entry before the act, so that there is no act without one. */
export function dismissProcess({ config, redis, deployment }: DismissDeps, { pool }: Console): RequestHandler {
  return async (request, response) => {
    response.locals.route = OPS_PATH + DISMISS_PATH;
    const { process } = Object(request.body) as { process?: unknown };
    const gone = (await readProcesses(redis, deployment)).find(({ id }) => id === process);
    if (gone?.state === "gone") {
      const by = { user: nameOf(request.get("authorization")), host: "console" };
      const audited = auditedCommand("process dismiss", {}, by);
      const states = { before: { shown: true }, after: () => ({ shown: false }) };
      await withAuditEntry({ pool, audited }, { type: "Process", id: gone.id }, async () => undefined, states);
      await forgetProcess(redis, deployment, gone.id);
    }
    response.redirect(303, opsPath(config));
  };
}
