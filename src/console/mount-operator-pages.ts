import express, { type RequestHandler, Router } from "express";
import { offerPage } from "../pages/error-page.ts";
import { frameErrors, OPS_PATH } from "../pages/operator-frame.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { AppError } from "../platform/api/errors.ts";
import { signalOf } from "../platform/http/middleware/caller-signal.ts";
import type { LimitingRefusals } from "../platform/http/middleware/rate-limit.ts";
import { speakEnglish } from "../platform/http/middleware/reader-language.ts";
import { refuseCrossSite } from "../platform/http/middleware/refuse-cross-site.ts";
import { sendPage } from "../platform/http/negotiate.ts";
import type { ActionDeps } from "./actions/action.ts";
import { CATALOG_ACTIONS } from "./actions/catalog-actions.ts";
import { DISMISS_PATH, type DismissDeps, runDismissal } from "./actions/dismiss-process.ts";
import { PARTNER_ACTIONS } from "./actions/partner-actions.ts";
import { QUEUE_ACTIONS } from "./actions/queue-actions.ts";
import { choosePrintSheet, sendCsv, showPrintSheet } from "./actions/send-codes.ts";
import { type Console, runAction, showForm } from "./actions/serve-action.ts";
import { authenticateOperator, refuseWrites } from "./authenticate-operator.ts";
import { callsPage } from "./calls-page.ts";
import { CATALOG_PAGES } from "./catalog-pages.ts";
import type { ConsolePart } from "./console-part.ts";
import { LIST_PAGES } from "./list-pages.ts";
import { mountOverview, type OverviewPageDeps } from "./mount-overview.ts";
import { batchPage, showOrganization } from "./organization-page.ts";
import { queuePage, queuesPage } from "./queue-pages.ts";
import { runbookPage } from "./runbook-page.ts";
import { findPage, searchPage } from "./search-page.ts";
import { type DepsOfPages, type Page, visitOf } from "./visit.ts";
import { type ReleaseDeps, releaseReservationOf, voucherPage } from "./voucher-page.ts";

/** Every page but those of wings, by its path after `/ops`. */
const PAGES = {
  ...CATALOG_PAGES,
  ...LIST_PAGES,
  "/batches/:id": batchPage,
  "/organizations/:id/calls": callsPage,
  "/queues": queuesPage,
  "/queues/:id": queuePage,
  "/runbook": runbookPage,
  "/vouchers": findPage,
  "/vouchers/:id": voucherPage,
};

type ActingDeps = ActionDeps & DismissDeps;
type OperatorDeps = ActingDeps &
  OverviewPageDeps &
  ReleaseDeps &
  LimitingRefusals &
  DepsOfPages<typeof PAGES> & { console: Console | null };

const readForm = express.urlencoded({ extended: false, limit: "16kb" });

/** Mounts the operator pages under `/ops`, with what wings add. Mounts nothing without OPS_TOKEN. */
export function mountOperatorPages<Deps extends OperatorDeps>(
  router: Router,
  ctx: Deps,
  ofWings: readonly ConsolePart<Deps>[],
): void {
  const { token } = ctx.config.ops;
  if (token === null) return;
  const pages = Router({ caseSensitive: true });
  if (ctx.console !== null) mountActions(pages, ctx, ctx.console, ofWings);
  mountOverview(pages, ctx);
  const serve =
    (path: string, render: Page<Deps>): RequestHandler =>
    async (request, response) => {
      response.locals.route = `${OPS_PATH}${path}`;
      const page = await ctx.operatorReads({ signal: signalOf(response) }, () => render(visitOf(ctx, request)));
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    };
  const sections = ofWings.flatMap(({ organizationSection }) => organizationSection ?? []);
  const organizationPage: Page<Deps> = (visit) => showOrganization(visit, sections);
  const all: Record<string, Page<Deps>>[] = [PAGES, { "/organizations/:id": organizationPage }];
  for (const [path, render] of [...all, ...ofWings.map((part) => part.pages ?? {})].flatMap(Object.entries<Page<Deps>>))
    pages.get(path, serve(path, render));
  pages.post("/vouchers", readForm, serve("/vouchers", searchPage));
  const release = "/vouchers/:id/release";
  const refuse = refuseWrites(ctx, "The operator pages are read-only.");
  pages.post(release, refuse, readForm, async (request, response) => {
    response.locals.route = OPS_PATH + release;
    response.redirect(303, await releaseReservationOf(visitOf(ctx, request), request.body?.ticket));
  });
  const guard = [
    speakEnglish,
    pageHeaders,
    offerPage(ctx.config),
    authenticateOperator(ctx, token),
    frameErrors(ctx.config),
    refuseCrossSite(ctx.config),
  ];
  router.use(OPS_PATH, ...guard, pages);
}

/** Mounts what operators can do. */
function mountActions<Deps extends ActingDeps>(
  pages: Router,
  ctx: Deps,
  console: Console,
  ofWings: readonly ConsolePart<Deps>[],
): void {
  const further = ofWings.flatMap(({ actions }) => actions ?? []);
  for (const action of [...CATALOG_ACTIONS, ...PARTNER_ACTIONS, ...QUEUE_ACTIONS, ...further]) {
    const [path] = action.is;
    pages.get(path, showForm(ctx, action));
    pages.post(path, readForm, runAction(ctx, console, action));
  }
  pages.post(DISMISS_PATH, readForm, runDismissal(ctx, console));
  // Codes are sent for a POST only, because each reading of codes leaves an audit entry.
  pages.post("/batches/:id/codes.csv", readForm, sendCsv(ctx, console));
  pages.all("/batches/:id/codes.csv", (_request, response) => {
    response.setHeader("Allow", "POST");
    throw new AppError("method_not_allowed", "Codes are sent for the button of the batch's page.");
  });
  pages.get("/batches/:id/print", choosePrintSheet(ctx));
  pages.post("/batches/:id/print", readForm, showPrintSheet(ctx, console));
}
