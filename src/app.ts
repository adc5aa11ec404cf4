import express, { type Express } from "express";
import type { ApiContext } from "./context.ts";
import type { Endpoint } from "./http/endpoint.ts";
import { ERRORS } from "./http/error-map.ts";
import { errorAnswer, unknownPath } from "./http/errors.ts";
import { measureRequests } from "./http/measure-requests.ts";
import { mountDashboard } from "./http/ops/mount-dashboard.ts";
import { mountPages } from "./http/pages/mount-pages.ts";
import { requestLog } from "./http/request-log.ts";
import { requireHost } from "./http/require-host.ts";
import { mount } from "./http/route.ts";
import { buyListing } from "./http/routes/buy-listing.ts";
import { buyProduct } from "./http/routes/buy-product.ts";
import { claimByLink } from "./http/routes/claim-by-link.ts";
import { claimProduct } from "./http/routes/claim-product.ts";
import { health, readiness } from "./http/routes/health.ts";
import { listing } from "./http/routes/listing.ts";
import { listings } from "./http/routes/listings.ts";
import { lookUp } from "./http/routes/look-up.ts";
import { partnerEvents } from "./http/routes/partner-events.ts";
import { publicEvents } from "./http/routes/public-events.ts";
import { redeem } from "./http/routes/redeem.ts";
import { release } from "./http/routes/release.ts";
import { reserve } from "./http/routes/reserve.ts";
import { traceRequests } from "./http/trace-requests.ts";

/** Every endpoint of the API, in the reference's order. The fixed partner paths stand before the one with a parameter. */
const ENDPOINTS: readonly Endpoint[] = [
  reserve,
  redeem,
  release,
  lookUp,
  partnerEvents,
  publicEvents,
  listings,
  listing,
  buyListing,
  buyProduct,
  claimProduct,
  claimByLink,
  health,
  readiness,
];

/**
 * Builds the HTTP application: request log, metrics, traces, pages, dashboard, endpoints, the answer to unknown paths, the error
 * answer. Opens nothing.
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
  mountPages(app, ctx);
  mountDashboard(app, ctx);
  for (const endpoint of endpoints) mount(app, endpoint.route(ctx));
  app.use(unknownPath);
  app.use(errorAnswer);
  return app;
}
