import { POOL_MAX } from "../core/callers/caller-kinds.ts";
import type { openApiMetrics } from "../core/metrics/open-metrics.ts";
import { type Config, describeLocalAddress } from "../platform/config.ts";
import { nameApiConnection } from "../platform/queues/read-shards.ts";
import type { Traces } from "../platform/traces/traces.ts";
import type { WingFaults } from "../watch/facts.ts";
import { openCalls } from "./open-calls.ts";
import { openIssuer } from "./open-issuer.ts";
import { openOperators } from "./open-operators.ts";
import { openProbes } from "./open-probes.ts";
import { openQueues } from "./open-queues.ts";
import { openService } from "./open-service.ts";

/** What the optional features (wings) measure in each process, and how they find faults. */
interface Watched extends Pick<Parameters<typeof openApiMetrics>[0], "wings" | "backlogs"> {
  faultsOfWings: readonly WingFaults[];
}

/** Opens the parts of an API process that do not depend on optional features (wings). */
export function openCore(config: Config, traces: Traces, { faultsOfWings, ...measured }: Watched) {
  const redisName = nameApiConnection(config.queueShards[0]);
  const service = openService(config, { traces, role: "api", redisName, connectionsMax: POOL_MAX });
  const localAddress = describeLocalAddress(config);
  if (config.production && localAddress !== null) service.log.warn({ risk: "local_base_url" }, localAddress);
  const queues = openQueues(service, () => probes.metrics?.foreignMessages.with("reply").inc());
  const probes = openProbes(service, queues, measured);
  const calls = openCalls(service, probes.metrics);
  const operators = openOperators({ ...service, ...queues, ...probes, ...calls, faultsOfWings });
  return { ...service, ...queues, ...probes, ...calls, ...operators, issuer: openIssuer(service) };
}

export type ApiCore = ReturnType<typeof openCore>;
