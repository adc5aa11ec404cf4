import type { Request, RequestHandler } from "express";
import type { OperatorReads } from "../core/callers/bulkhead.ts";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { headersOf } from "../pages/page-headers.ts";
import { AppError } from "../platform/api/errors.ts";
import type { DepsOf } from "../platform/http/endpoint.ts";
import { sendPage } from "../platform/http/negotiate.ts";
import { type Overview, readOverview } from "../watch/read-overview.ts";
import type { OperatorRoute } from "./operator-route.ts";
import { renderOverviewPage } from "./overview-page.ts";
import { actingOf } from "./sign-in/signed-in.ts";
import { type PageDeps, visitOf } from "./visit.ts";

/** How long a process serves the same copy of the overview to all open pages. Milliseconds. */
const MAX_AGE_MS = 1_000;
/**
 * How long one audit entry covers an operator's repeated visits to the same overview, because the page reloads every
 * few seconds. Milliseconds.
 */
const VISIT_COUNTS_MS = 3_600_000;
/** Maximum number of overviews that a process keeps, and of visits that it remembers as recorded. */
const REMEMBERED_MAX = 50;

export type OverviewPageDeps = PageDeps & DepsOf<typeof readOverview> & OperatorReads;

/** The overview as a page and as JSON. */
export function overviewRoutes(ctx: OverviewPageDeps): OperatorRoute[] {
  const read = openOverview(ctx);
  const record = openVisitRecorder(ctx);
  const showPage: RequestHandler = async (request, response) => {
    const { query, site, operator } = visitOf(ctx, request);
    const overview = await read(query("organization"));
    await record(request, overview.organization);
    sendPage(response, 200, renderOverviewPage(site, operator, overview));
  };
  const sendJson: RequestHandler = async (request, response) => {
    response.setHeader("Cache-Control", "no-store");
    const { organizations: _, ...shown } = await read(visitOf(ctx, request).query("organization"));
    await record(request, shown.organization);
    response.json(shown);
  };
  return [
    { method: "get", path: "/", role: "viewer", handlers: [overviewHeaders, showPage] },
    { method: "get", path: "/overview.json", role: "viewer", handlers: [sendJson] },
  ];
}

/**
 * Returns a function that records an operator's visit to an organization's overview, at most once an hour. Visits to
 * the overview of all organizations are not recorded.
 */
function openVisitRecorder(ctx: OverviewPageDeps): (request: Request, organizationId: string | null) => Promise<void> {
  const recordedAt = new Map<string, number>();
  return async (request, organizationId) => {
    if (organizationId === null) return;
    const { user, by } = actingOf(request);
    const key = JSON.stringify([user, by, request.ip, organizationId]);
    if (performance.now() - (recordedAt.get(key) ?? Number.NEGATIVE_INFINITY) < VISIT_COUNTS_MS) return;
    const { recordVisit } = visitOf(ctx, request);
    await ctx.operatorReads({}, () => recordVisit("page overview", { type: "Organization", id: organizationId }));
    if (recordedAt.size >= REMEMBERED_MAX) recordedAt.clear();
    recordedAt.set(key, performance.now());
  };
}

/** The page's script may fetch the page's own address again. */
const overviewHeaders = headersOf({ "form-action": ["'self'"], "connect-src": ["'self'"] });

/**
 * Returns a function that reads the overview of an organization, or of all organizations if the id is empty.
 * @throws AppError `not_found`, `overloaded`.
 */
function openOverview(ctx: OverviewPageDeps): (organizationId: string) => Promise<Overview> {
  const latest = new Map<string, { overview: Promise<Overview>; readAt: number }>();
  return async (id) => {
    const known = latest.get(id);
    if (known !== undefined && performance.now() - known.readAt < MAX_AGE_MS) return known.overview;
    // The read continues if this request is aborted, because other requests may wait for the same overview.
    const overview = ctx.operatorReads({}, async () => {
      if (id !== "" && (await findOrganization(ctx.pool, id)) === null) {
        throw new AppError("not_found", "There is no organization with this id.");
      }
      return readOverview(ctx, id === "" ? null : id);
    });
    if (latest.size >= REMEMBERED_MAX) latest.clear();
    latest.set(id, { overview, readAt: performance.now() });
    overview.catch(() => latest.delete(id));
    return overview;
  };
}
