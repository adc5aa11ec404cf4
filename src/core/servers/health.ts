import { AppError } from "../../platform/api/errors.ts";
import { probe } from "../../platform/http/access.ts";
import { endpoint } from "../../platform/http/endpoint.ts";
import { healthResponse, readinessError, readinessResponse } from "./health-api.ts";
import { type Probed, readinessOf } from "./probe-servers.ts";

export const health = endpoint({
  path: "/healthz",
  operationId: "health",
  summary: "Is the process up?",
  description: "For liveness probes. Contacts no other server.",
  access: probe,
  reportedAs: "probe",
  response: healthResponse,
  responseDescription: "The process is up.",
  handler: async () => ({ status: "ok" as const }),
});

interface Deps {
  redeemQueue: { readonly hasOpened: boolean };
  probeServers: () => Promise<Probed>;
  deployment: { readonly clock: { readonly aheadMs: number } };
}

export const readiness = endpoint({
  path: "/readyz",
  operationId: "readiness",
  summary: "Can the process serve requests?",
  description:
    "For readiness probes. Checks within 1.5 seconds that Postgres has the schema of this release, and that both " +
    "servers answer and take writes.",
  access: probe,
  reportedAs: "probe",
  response: readinessResponse,
  responseDescription: "The process can serve requests.",
  errorDetails: {
    schema: readinessError,
    example: { error: "No answer from Redis.", postgres: "ok", redis: "unavailable" },
  },
  async handler(deps: Deps) {
    // Reads this first, because the queue may open during the probe.
    const isStarting = !deps.redeemQueue.hasOpened;
    const probed = await deps.probeServers();
    const { unusable, shards } = probed;
    const { redis: problem } = readinessOf(probed, deps.redeemQueue.hasOpened);
    const silentShards = shards.map(({ shard }) => shard.name);
    if (unusable === null && problem === null) {
      const clockAheadSeconds = Math.round(deps.deployment.clock.aheadMs / 1_000);
      return {
        status: "ok",
        postgres: "ok",
        redis: "ok",
        ...(silentShards.length > 0 && { silentShards }),
        ...(clockAheadSeconds > 0 && { clockAheadSeconds }),
      } as const;
    }
    throw new AppError("unavailable", [unusable?.message, problem].filter(Boolean).join(" "), {
      cause: unusable?.cause,
      retryAfterSeconds: 1,
      isExpected: isStarting && unusable === null,
      details: { postgres: unusable?.state ?? "ok", redis: problem === null ? "ok" : "unavailable" },
    });
  },
});
