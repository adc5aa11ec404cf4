import type { RequestHandler, Router } from "express";
import { type DepsOf, mount } from "../platform/http/endpoint.ts";
import { type Visitor, visitorOf } from "../platform/http/middleware/caller-signal.ts";
import { consumeAddressLimit, type LimitingAddresses } from "../platform/http/middleware/rate-limit.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { renderChain } from "./chain-page.ts";
import { checkVoucherRoute } from "./check-form.ts";
import { offerPage } from "./error-page.ts";
import type { Html } from "./html.ts";
import { landingRoute } from "./landing-page.ts";
import type { Site } from "./layout.ts";
import { type Locale, localeOf } from "./locale.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";
import { assetsRoute, wellKnownRoutes } from "./serve-assets.ts";

/** A page for anyone, at the path of an endpoint. */
export interface PublicPage<Deps> {
  path: string;
  /** What a caller without a preference gets; JSON by default. */
  usual?: "json" | "html";
  /** Those of most pages by default. */
  headers?: RequestHandler;
  render: (
    deps: Deps,
    visitor: Visitor,
    request: { params: Record<string, string>; query: unknown },
    locale: Locale,
  ) => Promise<Html>;
}

type PagesDeps = LimitingAddresses & { config: Site };

const chainPage: PublicPage<DepsOf<typeof renderChain>> = {
  path: "/integrity/events/:entityType/:entityId",
  headers: sealedPageHeaders,
  render: (deps, visitor, { params: { entityType = "", entityId = "" }, query }, locale) =>
    renderChain(deps, visitor, { entityType, entityId }, query, locale),
};

/**
 * Mounts the pages, and those of wings. Where a path serves both a page and JSON, the page's handler comes first and passes requests that prefer
 * JSON on to the endpoint, or to the 404 of an unknown address.
 */
export function mountPages<
  Deps extends PagesDeps &
    DepsOf<typeof landingRoute> &
    DepsOf<typeof wellKnownRoutes> &
    DepsOf<typeof chainPage.render>,
>(router: Router, deps: Deps, ofWings: readonly PublicPage<Deps>[]): void {
  for (const route of [landingRoute(deps), assetsRoute, ...wellKnownRoutes(deps), checkVoucherRoute(deps)]) {
    mount(router, deps, route);
  }
  // Only the errors of a proof are pages.
  router.get(`${chainPage.path}/:sequence/proof`, pageHeaders, offerPage(deps.config));
  for (const page of [chainPage, ...ofWings]) mountPage(router, deps, page);
}

function mountPage<Deps extends PagesDeps>(router: Router, deps: Deps, page: PublicPage<Deps>): void {
  const { path, usual, headers = pageHeaders, render } = page;
  router.get(path, headers, offerPage(deps.config, usual), async (request, response, next) => {
    if (!wantsPage(response)) return next();
    response.locals.route = path;
    await consumeAddressLimit(deps, request, response);
    const { params, query } = request;
    const asked = { params: params as Record<string, string>, query };
    sendPage(response, 200, await render(deps, visitorOf(request, response), asked, localeOf(response)));
  });
}
