import { POOL_MAX } from "../core/callers/caller-kinds.ts";
import { type Config, describeLocalAddress } from "../platform/config.ts";
import { nameApiConnection } from "../platform/queues/read-shards.ts";
import { TRACES_OFF, type Traces } from "../platform/traces/traces.ts";
import { openCalls } from "./open-calls.ts";
import { openIssuer } from "./open-issuer.ts";
import { openOperators } from "./open-operators.ts";
import { openProbes } from "./open-probes.ts";
import { openQueues } from "./open-queues.ts";
import { openService } from "./open-service.ts";
import { openWings } from "./wings/api.ts";

/** Opens an API process. Postgres and Redis need not be reachable yet. The configuration must come from learnRedis. */
export function openApi(config: Config, traces: Traces = TRACES_OFF) {
  const redisName = nameApiConnection(config.queueShards[0]);
  const service = openService(config, { traces, role: "api", redisName, connectionsMax: POOL_MAX });
  const localAddress = describeLocalAddress(config);
  if (config.production && localAddress !== null) service.log.warn({ risk: "local_base_url" }, localAddress);
  const queues = openQueues(service, () => probes.metrics?.foreignMessages.with("reply").inc());
  const probes = openProbes(service, queues);
  const calls = openCalls(service, probes.metrics);
  const operators = openOperators({ ...service, ...queues, ...probes, ...calls });
  const core = { ...service, ...queues, ...probes, ...calls, ...operators, issuer: openIssuer(service) };
  return { ...core, ...openWings(core) };
}

export type ApiContext = ReturnType<typeof openApi>;
