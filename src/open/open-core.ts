import { POOL_MAX } from "../core/callers/caller-kinds.ts";
import { type Config, describeLocalAddress } from "../platform/config.ts";
import { nameApiConnection } from "../platform/queues/read-shards.ts";
import type { Traces } from "../platform/traces/traces.ts";
import type { ReadFindings } from "../watch/facts.ts";
import type { BacklogMeasures } from "../watch/measure-backlog.ts";
import { openCalls } from "./open-calls.ts";
import { openIssuer } from "./open-issuer.ts";
import { openOperators } from "./open-operators.ts";
import { openProbes } from "./open-probes.ts";
import { openQueues } from "./open-queues.ts";
import { openService } from "./open-service.ts";

/** What wings measure and judge for all processes. */
interface Watched {
  backlog: BacklogMeasures;
  readFindings: readonly ReadFindings[];
}

/** Opens what an API process has without its wings. */
export function openCore(config: Config, traces: Traces, { backlog, readFindings }: Watched) {
  const redisName = nameApiConnection(config.queueShards[0]);
  const service = openService(config, { traces, role: "api", redisName, connectionsMax: POOL_MAX });
  const localAddress = describeLocalAddress(config);
  if (config.production && localAddress !== null) service.log.warn({ risk: "local_base_url" }, localAddress);
  const queues = openQueues(service, () => probes.metrics?.foreignMessages.with("reply").inc());
  const probes = openProbes(service, queues, backlog);
  const calls = openCalls(service, probes.metrics);
  const operators = openOperators({ ...service, ...queues, ...probes, ...calls, readFindings });
  return { ...service, ...queues, ...probes, ...calls, ...operators, issuer: openIssuer(service) };
}

export type ApiCore = ReturnType<typeof openCore>;
