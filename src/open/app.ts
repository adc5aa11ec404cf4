import express, { type Express } from "express";
import { mountDashboard } from "../console/mount-dashboard.ts";
import { mountOperatorPages } from "../console/mount-operator-pages.ts";
import { observeRequests, traceRequests } from "../core/processes/observe-requests.ts";
import { allDocuments, runbookEntries } from "../pages/documents.ts";
import { offerPage } from "../pages/error-page.ts";
import { mountPages } from "../pages/mount-pages.ts";
import { mountReference } from "../pages/openapi/mount-reference.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { codesOf, type Endpoint, joinRoutes, mount } from "../platform/http/endpoint.ts";
import { errorHandler, unknownPath } from "../platform/http/errors.ts";
import { limitAddress } from "../platform/http/middleware/rate-limit.ts";
import {
  boundPreferences,
  dropForwardedPorts,
  ignoreConditions,
  requireHost,
} from "../platform/http/middleware/request-headers.ts";
import { mountPortal } from "../portal/mount-portal.ts";
import { each } from "./api-parts.ts";
import { ENDPOINTS, REFERENCE } from "./endpoints.ts";
import type { ApiContext } from "./open-api.ts";
import { WING_ACTS } from "./wing-acts.ts";

/**
 * Builds the HTTP application without opening a connection or port. Benchmarks pass endpoints of their own, to measure
 * them with the same middleware.
 */
export function createApp(ctx: ApiContext, endpoints: readonly Endpoint<ApiContext>[] = ENDPOINTS): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("trust proxy", ctx.config.trustProxy);
  app.set("case sensitive routing", true);
  app.use(observeRequests(ctx, codesOf(endpoints)));
  app.use(boundPreferences);
  app.use(dropForwardedPorts);
  app.use(traceRequests(ctx.traces));
  app.use(requireHost);
  app.use(ignoreConditions);
  // Mounts the pages before the endpoints, because some endpoints have a page for browsers at the same path.
  mountPages(app, ctx, each("pages"));
  // If the issuer API is off, its addresses get the same 404 as unknown addresses.
  const served = ctx.issuer === null ? endpoints.filter(({ tag }) => tag !== "Issuer") : endpoints;
  for (const route of joinRoutes(served.map((endpoint) => endpoint.route(ctx)))) mount(app, ctx, route);
  for (const route of each("routes").flatMap((routes) => routes(ctx))) mount(app, ctx, route);
  const operatorPages = each("operatorPages");
  const sections = operatorPages.flatMap(({ sections = [] }) => sections);
  const runbook = runbookEntries(allDocuments(REFERENCE.documents));
  const operated = { ...ctx, runbook, config: { ...ctx.config, sections } };
  mountDashboard(app, operated);
  mountOperatorPages(app, operated, operatorPages, WING_ACTS);
  mountPortal(app, ctx, each("portal"));
  mountReference(app, ctx, { ...REFERENCE, endpoints });
  app.use(pageHeaders, offerPage(ctx.config), limitAddress(ctx), unknownPath);
  app.use(errorHandler);
  return app;
}
