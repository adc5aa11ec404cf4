import { startInTurns } from "./core/keys/routes/start-in-turns.ts";
import { serveMetrics } from "./core/metrics/serve-metrics.ts";
import { createApp } from "./open/app.ts";
import { openApi } from "./open/open-api.ts";
import { learnRedis } from "./open/open-redis.ts";
import { readApiConfig } from "./platform/config.ts";
import { listen } from "./platform/http/server.ts";
import { openLogger } from "./platform/logger.ts";
import { configureProcess, drainOnSignal, failStart } from "./platform/process.ts";
import { openTraces } from "./platform/traces/open-traces.ts";

// The API process: reads the configuration, opens the context, listens, and drains on a signal.
const given = configureProcess(readApiConfig);
try {
  const config = await learnRedis(given);
  const ctx = openApi(config, await openTraces(config.traces, "api", openLogger(config.logLevel, "api")));
  const metrics = await serveMetrics(ctx);
  const server = await listen(startInTurns(ctx, createApp(ctx)), config, ctx.log, (code) =>
    ctx.metrics?.refusals.with(code).inc(),
  );
  const drain = async () => {
    ctx.webhookSender.stop();
    ctx.console?.stop();
    await server.close();
    await metrics?.close();
    await ctx.close();
  };
  drainOnSignal(ctx.log, drain, ctx.redisWatch.mustEnd);
  ctx.log.info({ port: server.port, baseUrl: config.baseUrl }, "listening");
} catch (error) {
  failStart(error);
}
