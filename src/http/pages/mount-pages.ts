import type { Router } from "express";
import type { ApiContext } from "../../context.ts";
import { mount } from "../route.ts";
import { assetsRoute } from "../routes/assets.ts";
import { showChainPage } from "../routes/chain-page.ts";
import { landingRoute } from "../routes/landing.ts";
import { offerPage } from "./offer-page.ts";
import { pageHeaders } from "./page-headers.ts";

/**
 * Mounts the pages. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer JSON on to
 * the endpoint.
 */
export function mountPages(router: Router, ctx: ApiContext): void {
  mount(router, landingRoute(ctx));
  mount(router, assetsRoute);
  router.get("/integrity/events/:entityType/:entityId", pageHeaders, offerPage(ctx.config), showChainPage(ctx));
}
