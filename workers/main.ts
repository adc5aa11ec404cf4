import { CONFIG_PARTS } from "../src/open/config-parts.ts";
import { learnRedis } from "../src/open/open-redis.ts";
import { openWorkerService } from "../src/open/open-worker-service.ts";
import { WINGS } from "../src/open/wings.ts";
import { readWorkerConfig } from "../src/platform/config.ts";
import { openLogger } from "../src/platform/logger.ts";
import { closeOnSignal, configureProcess, failStart } from "../src/platform/process.ts";
import { openTraces } from "../src/platform/traces/open-traces.ts";
import { prepareWorkers } from "./prepare-workers.ts";

// Runs a worker process for the queues in WORKER_QUEUES. Any number of such processes may run.
const given = configureProcess((env) => readWorkerConfig(env, CONFIG_PARTS));
try {
  const config = await learnRedis(given);
  const service = openWorkerService(
    config,
    WINGS,
    await openTraces(config.traces, "worker", openLogger(config.logLevel, "worker")),
  );
  const workers = await prepareWorkers(service);
  // Signals are handled from here on, even while the process waits for the database.
  closeOnSignal(service.log, service, service.redisWatch.mustEnd);
  await workers.start();
  service.log.info({ queues: workers.queues }, "working");
} catch (error) {
  failStart(error);
}
