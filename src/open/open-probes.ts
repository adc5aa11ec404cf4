import { PROBE_CONNECTIONS } from "../core/callers/caller-kinds.ts";
import { openApiMetrics } from "../core/metrics/open-metrics.ts";
import { openServerProbe } from "../core/servers/probe-servers.ts";
import { openPool } from "../platform/db/pool.ts";
import { openBacklog } from "../watch/measure-backlog.ts";
import type { openQueues } from "./open-queues.ts";
import type { ServiceContext } from "./open-service.ts";

/** Maximum wait for a server's response to a probe. Milliseconds. */
const ANSWER_TIMEOUT_MS = 1_500;

/** Opens the probes of the servers, and the metrics, which report the result. */
export function openProbes(
  service: ServiceContext,
  { redeemQueue, canary }: Pick<ReturnType<typeof openQueues>, "redeemQueue" | "canary">,
  { wings, backlogs }: Pick<Parameters<typeof openApiMetrics>[0], "wings" | "backlogs">,
) {
  const { config, deployment, log, use } = service;
  const probes = openPool({
    databaseUrl: config.databaseUrl,
    max: PROBE_CONNECTIONS,
    applicationName: "api-probe",
    use: "service",
    deployment,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    log,
  });
  use({ close: () => probes.end() });
  const probeServers = openServerProbe({ ...service, probes, redeemQueue });
  const backlog = openBacklog({ ...service, probeServers }, backlogs);
  const metrics = config.metricsPort === null ? null : openApiMetrics({ ...service, canary, wings, backlogs }, backlog);
  metrics?.callsDropped.with().inc(0);
  metrics?.signInsFailed.with().inc(0);
  return { probes, probeServers, metrics };
}
