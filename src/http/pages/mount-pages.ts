import type { Request, Router } from "express";
import type { ApiContext } from "../../open-api.ts";
import { mount } from "../endpoint.ts";
import { consumeAddressLimit } from "../middleware/rate-limit.ts";
import { renderChain } from "./chain-page.ts";
import { checkVoucherRoute } from "./check-form.ts";
import type { Html } from "./html.ts";
import { landingRoute } from "./landing-page.ts";
import { renderLink } from "./link-page.ts";
import { renderListings } from "./listings-page.ts";
import { offerPage, sendPage, wantsPage } from "./offer-page.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";
import { assetsRoute, wellKnownRoutes } from "./serve-assets.ts";

/**
 * Mounts the pages. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer JSON on to
 * the endpoint, or to the 404 of an unknown address.
 */
export function mountPages(router: Router, ctx: ApiContext): void {
  for (const route of [landingRoute(ctx), assetsRoute, ...wellKnownRoutes(ctx), checkVoucherRoute(ctx)]) {
    mount(router, route);
  }
  const chain = "/integrity/events/:entityType/:entityId";
  // Only the errors of a proof are pages.
  router.get(`${chain}/:sequence/proof`, pageHeaders, offerPage(ctx.config));
  const pages: Record<string, (request: Request<Record<string, string>>) => Promise<Html>> = {
    "/r/:code": ({ params }) => renderLink(ctx, params.code),
    "/marketplace/listings": ({ query }) => renderListings(ctx, query),
    [chain]: ({ params: { entityType = "", entityId = "" }, query }) => renderChain(ctx, entityType, entityId, query),
  };
  for (const [path, render] of Object.entries(pages)) {
    const headers = path === chain ? sealedPageHeaders : pageHeaders;
    router.get(path, headers, offerPage(ctx.config), async (request, response, next) => {
      if (!wantsPage(response)) return next();
      response.locals.route = path;
      await consumeAddressLimit(ctx, request, response);
      sendPage(response, 200, await render(request as Request<Record<string, string>>));
    });
  }
}
