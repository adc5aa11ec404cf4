import { CONFIG_PARTS } from "./open/config-parts.ts";
import { openApi } from "./open/open-api.ts";
import { learnRedis } from "./open/open-redis.ts";
import { serveApi } from "./open/serve-api.ts";
import { tellSignIns } from "./open/tell-sign-ins.ts";
import { readApiConfig } from "./platform/config.ts";
import { openLogger } from "./platform/logger.ts";
import { closeOnSignal, configureProcess, failStart } from "./platform/process.ts";
import { openTraces } from "./platform/traces/open-traces.ts";

// The API process: reads the configuration, opens the context, listens, and closes on a signal.
const given = configureProcess((env) => readApiConfig(env, CONFIG_PARTS));
try {
  const config = await learnRedis(given);
  const ctx = openApi(config, await openTraces(config.traces, "api", openLogger(config.logLevel, "api")));
  await tellSignIns(ctx);
  const { port } = await serveApi(ctx);
  closeOnSignal(ctx.log, ctx, ctx.redisWatch.mustEnd);
  ctx.canary.start();
  ctx.watch.start();
  ctx.log.info({ port, baseUrl: config.baseUrl }, "listening");
} catch (error) {
  failStart(error);
}
