import { startInTurns } from "../core/keys/routes/start-in-turns.ts";
import { serveMetrics } from "../core/metrics/serve-metrics.ts";
import { CONNECTION_LIMITS, listen } from "../platform/http/server.ts";
import { createApp } from "./app.ts";
import type { ApiContext } from "./open-api.ts";

/**
 * Listens on PORT and METRICS_PORT. When the context closes, the servers close first, so that calls in progress can
 * still use everything they need.
 */
export async function serveApi(ctx: ApiContext, limits = CONNECTION_LIMITS) {
  const metrics = await serveMetrics(ctx);
  if (metrics !== null) ctx.use(metrics);
  const app = startInTurns(ctx, createApp(ctx));
  const countRefusal = (code: string) => ctx.metrics?.refusals.with(code).inc();
  const server = ctx.use(await listen(app, ctx.config, ctx.log, countRefusal, limits));
  // Resources close in reverse order. The feed must first end the calls that wait for events, because the server waits
  // for all calls when it closes.
  ctx.use(ctx.eventFeed);
  return { port: server.port, metricsPort: metrics?.port };
}
