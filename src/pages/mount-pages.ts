import type { RequestHandler, Router } from "express";
import type { readPublicChain } from "../core/chain/read-chain.ts";
import { type DepsOf, mount } from "../platform/http/endpoint.ts";
import { type Visitor, visitorOf } from "../platform/http/middleware/caller-signal.ts";
import { consumeAddressLimit, type LimitingAddresses } from "../platform/http/middleware/rate-limit.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { brandRoutes } from "./brand-files.ts";
import { EXPERTS, type ReadChainNotes, renderChain } from "./chain-page.ts";
import { checkVoucherRoute } from "./check-form.ts";
import { offerPage } from "./error-page.ts";
import type { Html } from "./html.ts";
import { landingRoute } from "./landing-page.ts";
import type { Site } from "./layout.ts";
import { type Locale, localeOf } from "./locale.ts";
import { pageHeaders, sealedPageHeaders } from "./page-headers.ts";
import { assetsRoute, wellKnownRoutes } from "./serve-assets.ts";
import { renderVoucher } from "./voucher-page.ts";

/** A page for anyone, at the path of an endpoint that serves JSON. */
export interface PublicPage<Deps> {
  path: string;
  /** The format for a caller without a preference. By default, JSON. */
  usual?: "json" | "html";
  headers?: RequestHandler;
  /** Null if the endpoint has no page, only error pages. */
  render:
    | null
    | ((
        deps: Deps,
        visitor: Visitor,
        request: { params: Record<string, string>; query: unknown },
        locale: Locale,
      ) => Promise<Html>);
}

/** What an optional feature (wing) adds to the public pages. */
export interface PagesPart<Deps = never> {
  pages?: readonly PublicPage<Deps>[];
  readChainNotes?: ReadChainNotes<Deps>;
}

type PagesDeps = LimitingAddresses & { config: Site };

/** The path of a voucher's history. */
export const CHAIN_PATH = "/integrity/events/:entityType/:entityId";

/**
 * Mounts the pages, including those of optional features (wings). If a path serves both a page and JSON, the page's
 * handler comes first, and passes requests that prefer JSON to the endpoint.
 */
export function mountPages<
  Deps extends PagesDeps &
    DepsOf<typeof landingRoute> &
    DepsOf<typeof wellKnownRoutes> &
    DepsOf<typeof brandRoutes> &
    DepsOf<typeof readPublicChain>,
>(router: Router, deps: Deps, ofWings: readonly PagesPart<Deps>[]): void {
  for (const route of [
    landingRoute(deps),
    assetsRoute,
    ...brandRoutes(deps),
    ...wellKnownRoutes(deps),
    checkVoucherRoute(deps),
  ]) {
    mount(router, deps, route);
  }
  const notes = ofWings.flatMap((part) => part.readChainNotes ?? []);
  const ofVoucher: PublicPage<Deps>[] = [
    {
      path: CHAIN_PATH,
      headers: sealedPageHeaders,
      render: (_, visitor, { params: { entityType = "", entityId = "" } }, locale) =>
        renderVoucher(deps, visitor, { entityType, entityId }, locale),
    },
    {
      path: CHAIN_PATH + EXPERTS,
      usual: "html",
      headers: sealedPageHeaders,
      render: (_, visitor, { params: { entityType = "", entityId = "" }, query }, locale) =>
        renderChain(deps, notes, visitor, { entityType, entityId }, query, locale),
    },
  ];
  for (const page of [...ofVoucher, ...ofWings.flatMap(({ pages }) => pages ?? [])]) mountPage(router, deps, page);
}

function mountPage<Deps extends PagesDeps>(router: Router, deps: Deps, page: PublicPage<Deps>): void {
  const { path, usual, headers = pageHeaders, render } = page;
  const before = [headers, offerPage(deps.config, usual, false)];
  if (render === null) return void router.get(path, ...before);
  router.get(path, ...before, async (request, response, next) => {
    if (!wantsPage(response)) return next();
    response.locals.route = path;
    await consumeAddressLimit(deps, request, response);
    const { params, query } = request;
    const asked = { params: params as Record<string, string>, query };
    // This page is meant only for people who have its address. Without the header, search engines that find a link
    // would list it.
    response.setHeader("X-Robots-Tag", "noindex");
    sendPage(response, 200, await render(deps, visitorOf(request, response), asked, localeOf(response)));
  });
}
