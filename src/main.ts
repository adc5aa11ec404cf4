import { createApp } from "./app.ts";
import { readApiConfig } from "./config.ts";
import { listen } from "./http/server.ts";
import { openLog } from "./log.ts";
import { serveMetrics } from "./metrics/serve-metrics.ts";
import { openApi } from "./open-api.ts";
import { configureProcess, drainOnSignal } from "./process.ts";
import { openTraces } from "./traces/open-traces.ts";

// The API process: reads the configuration, opens the context, listens, and drains on a signal.
const config = configureProcess(readApiConfig);
try {
  const ctx = openApi(config, await openTraces(config.traces, "api", openLog(config.logLevel, "api")));
  const metrics = await serveMetrics(ctx);
  const server = await listen(createApp(ctx), config.port, ctx.log, (code) => ctx.metrics?.refusals.with(code).inc());
  drainOnSignal(ctx.log, async () => {
    ctx.webhookSender.stop();
    ctx.console?.stop();
    await server.close();
    await metrics?.close();
    await ctx.close();
  });
  ctx.log.info({ port: server.port, baseUrl: config.baseUrl }, "listening");
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
