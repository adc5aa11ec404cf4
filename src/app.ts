import express, { type Express } from "express";
import type { ApiContext } from "./context.ts";
import { errorAnswer, unknownPath } from "./http/errors.ts";
import { requestLog } from "./http/request-log.ts";
import { requireHost } from "./http/require-host.ts";
import { mount, type Route } from "./http/route.ts";
import { buyListingRoute } from "./http/routes/buy-listing.ts";
import { buyProductRoute } from "./http/routes/buy-product.ts";
import { claimByLinkRoute } from "./http/routes/claim-by-link.ts";
import { claimProductRoute } from "./http/routes/claim-product.ts";
import { healthRoute, readyRoute } from "./http/routes/health.ts";
import { listingRoute } from "./http/routes/listing.ts";
import { listingsRoute } from "./http/routes/listings.ts";
import { lookUpRoute } from "./http/routes/look-up.ts";
import { partnerEventsRoute } from "./http/routes/partner-events.ts";
import { publicEventsRoute } from "./http/routes/public-events.ts";
import { redeemRoute } from "./http/routes/redeem.ts";
import { releaseRoute } from "./http/routes/release.ts";
import { reserveRoute } from "./http/routes/reserve.ts";

/** Every address the service answers at. The fixed partner paths stand before the one with a parameter. */
function routes(ctx: ApiContext): Route[] {
  return [
    reserveRoute(ctx),
    redeemRoute(ctx),
    releaseRoute(ctx),
    lookUpRoute(ctx),
    partnerEventsRoute(ctx),
    publicEventsRoute(ctx),
    listingsRoute(ctx),
    listingRoute(ctx),
    buyListingRoute(ctx),
    buyProductRoute(ctx),
    claimProductRoute(ctx),
    claimByLinkRoute(ctx),
    healthRoute,
    readyRoute(ctx),
  ];
}

/** Builds the HTTP application: request log, routes, the answer to unknown paths, the error answer. Opens nothing. */
export function createApp(ctx: ApiContext): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("trust proxy", ctx.config.trustProxy);
  app.set("case sensitive routing", true);
  app.use(requestLog(ctx.log));
  app.use(requireHost);
  for (const route of routes(ctx)) mount(app, route);
  app.use(unknownPath);
  app.use(errorAnswer);
  return app;
}
