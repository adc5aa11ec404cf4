import express, { type Express } from "express";
import type { ApiContext } from "./context.ts";
import type { Endpoint } from "./http/endpoint.ts";
import { ENDPOINTS } from "./http/endpoints.ts";
import { ERRORS } from "./http/error-map.ts";
import { errorAnswer, unknownPath } from "./http/errors.ts";
import { ignoreConditions } from "./http/ignore-conditions.ts";
import { measureRequests } from "./http/measure-requests.ts";
import { mountDashboard } from "./http/ops/mount-dashboard.ts";
import { mountPages } from "./http/pages/mount-pages.ts";
import { mountReference } from "./http/reference/mount-reference.ts";
import { requestLog } from "./http/request-log.ts";
import { requireHost } from "./http/require-host.ts";
import { mount } from "./http/route.ts";
import { limitAddress } from "./http/spend-limit.ts";
import { traceRequests } from "./http/trace-requests.ts";

/**
 * Builds the HTTP application: request log, metrics, traces, pages, endpoints, dashboard, reference, the answer to unknown
 * paths, the error answer. Opens nothing.
 * @param endpoints what it serves; a benchmark puts others behind the same edge.
 */
export function createApp(ctx: ApiContext, endpoints: readonly Endpoint[] = ENDPOINTS): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("trust proxy", ctx.config.trustProxy);
  app.set("case sensitive routing", true);
  app.use(requestLog(ctx.log));
  if (ctx.metrics !== null) {
    ctx.metrics.requests.prepare(Object.keys(ERRORS));
    app.use(measureRequests(ctx.metrics.requests));
  }
  app.use(traceRequests(ctx.traces));
  app.use(requireHost);
  app.use(ignoreConditions);
  // Before the endpoints: some paths have a page for who prefers one.
  mountPages(app, ctx);
  for (const endpoint of endpoints) mount(app, endpoint.route(ctx));
  mountDashboard(app, ctx);
  mountReference(app, ctx, endpoints);
  app.use(limitAddress(ctx), unknownPath);
  app.use(errorAnswer);
  return app;
}
