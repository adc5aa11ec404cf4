import type { Router } from "express";
import type { ApiContext } from "../../open-api.ts";
import { mount } from "../endpoint.ts";
import { offerPage } from "./offer-page.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";
import { assetsRoute, wellKnownRoutes } from "./serve-assets.ts";
import { showChainPage } from "./serve-chain-page.ts";
import { checkVoucherRoute } from "./serve-check-form.ts";
import { landingRoute } from "./serve-landing-page.ts";
import { showLinkPage } from "./serve-link-page.ts";
import { showListingsPage } from "./serve-listings-page.ts";

/**
 * Mounts the pages. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer JSON on to
 * the endpoint, or to the 404 of an unknown address.
 */
export function mountPages(router: Router, ctx: ApiContext): void {
  mount(router, landingRoute(ctx));
  mount(router, assetsRoute);
  for (const route of wellKnownRoutes(ctx)) mount(router, route);
  mount(router, checkVoucherRoute(ctx));
  router.get("/r/:code", pageHeaders, offerPage(ctx.config), showLinkPage(ctx));
  router.get("/marketplace/listings", pageHeaders, offerPage(ctx.config), showListingsPage(ctx));
  router.get("/integrity/events/:entityType/:entityId", sealedPageHeaders, offerPage(ctx.config), showChainPage(ctx));
  // Only the errors of a proof are pages.
  router.get("/integrity/events/:entityType/:entityId/:sequence/proof", pageHeaders, offerPage(ctx.config));
}
