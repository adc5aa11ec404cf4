import type { Request, Router } from "express";
import { type DepsOf, mount } from "../platform/http/endpoint.ts";
import { type Visitor, visitorOf } from "../platform/http/middleware/caller-signal.ts";
import { consumeAddressLimit, type LimitingAddresses } from "../platform/http/middleware/rate-limit.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { renderChain } from "./chain-page.ts";
import { checkVoucherRoute } from "./check-form.ts";
import { offerPage } from "./error-page.ts";
import type { Html } from "./html.ts";
import { landingRoute } from "./landing-page.ts";
import { renderLink } from "./link-page.ts";
import { renderListings } from "./listings-page.ts";
import { type Locale, localeOf } from "./locale.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";
import { assetsRoute, wellKnownRoutes } from "./serve-assets.ts";

type PagesDeps = LimitingAddresses &
  DepsOf<typeof landingRoute> &
  DepsOf<typeof wellKnownRoutes> &
  DepsOf<typeof renderLink> &
  DepsOf<typeof renderListings> &
  DepsOf<typeof renderChain>;

/**
 * Mounts the pages. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer JSON on to
 * the endpoint, or to the 404 of an unknown address.
 */
export function mountPages(router: Router, deps: PagesDeps): void {
  for (const route of [landingRoute(deps), assetsRoute, ...wellKnownRoutes(deps), checkVoucherRoute(deps)]) {
    mount(router, deps, route);
  }
  const chain = "/integrity/events/:entityType/:entityId";
  // Only the errors of a proof are pages.
  router.get(`${chain}/:sequence/proof`, pageHeaders, offerPage(deps.config));
  type Render = (visitor: Visitor, request: Request<Record<string, string>>, locale: Locale) => Promise<Html>;
  const pages: Record<string, Render> = {
    "/r/:code": (visitor, { params }, locale) => renderLink(deps, visitor, params.code, locale),
    "/marketplace/listings": (visitor, { query }, locale) => renderListings(deps, visitor, query, locale),
    [chain]: (visitor, { params: { entityType = "", entityId = "" }, query }, locale) =>
      renderChain(deps, visitor, { entityType, entityId }, query, locale),
  };
  for (const [path, render] of Object.entries(pages)) {
    const headers = path === chain ? sealedPageHeaders : pageHeaders;
    // People send links to each other, and programs that preview them accept anything.
    const usual = path === "/r/:code" ? "html" : "json";
    router.get(path, headers, offerPage(deps.config, usual), async (request, response, next) => {
      if (!wantsPage(response)) return next();
      response.locals.route = path;
      await consumeAddressLimit(deps, request, response);
      const visitor = visitorOf(request, response);
      const page = await render(visitor, request as Request<Record<string, string>>, localeOf(response));
      sendPage(response, 200, page);
    });
  }
}
