import type { Router } from "express";
import type { ApiContext } from "../../context.ts";
import { mount } from "../route.ts";
import { assetsRoute } from "../routes/assets.ts";
import { showChainPage } from "../routes/chain-page.ts";
import { checkVoucherRoute } from "../routes/check-voucher.ts";
import { landingRoute } from "../routes/landing.ts";
import { showLinkPage } from "../routes/link-page.ts";
import { offerPage } from "./offer-page.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";

/**
 * Mounts the pages. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer JSON on to
 * the endpoint, or to the 404 of an unknown address.
 */
export function mountPages(router: Router, ctx: ApiContext): void {
  mount(router, landingRoute(ctx));
  mount(router, assetsRoute);
  mount(router, checkVoucherRoute(ctx));
  router.get("/r/:code", pageHeaders, offerPage(ctx.config), showLinkPage(ctx));
  router.get("/integrity/events/:entityType/:entityId", sealedPageHeaders, offerPage(ctx.config), showChainPage(ctx));
}
