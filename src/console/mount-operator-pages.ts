import { type RequestHandler, Router } from "express";
import type { AnyAct } from "../acts/acts.ts";
import { offerPage } from "../pages/error-page.ts";
import { frameErrors, OPS_PATH } from "../pages/operator-frame.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { AppError } from "../platform/api/errors.ts";
import { signalOf } from "../platform/http/middleware/caller-signal.ts";
import { readForm, readFormWithFiles } from "../platform/http/middleware/form-body.ts";
import { speakEnglish } from "../platform/http/middleware/reader-language.ts";
import { refuseCrossSite } from "../platform/http/middleware/refuse-cross-site.ts";
import { sendPage } from "../platform/http/negotiate.ts";
import { respondText } from "../platform/http/respond.ts";
import type { Action, ActionDeps } from "./actions/action.ts";
import { formsOf } from "./actions/forms.ts";
import { sendsFiles } from "./actions/render-form.ts";
import { choosePrintSheet, sendCsv, showPrintSheet } from "./actions/send-codes.ts";
import { type Console, runAction, showForm } from "./actions/serve-action.ts";
import { callsPage, unknownCallsPage } from "./calls-page.ts";
import { brandPage, productPage } from "./catalog-pages.ts";
import type { ConsolePart } from "./console-part.ts";
import { LIST_PAGES, readAuditFile, showAudit } from "./list-pages.ts";
import { type OverviewPageDeps, overviewRoutes } from "./mount-overview.ts";
import { mountOperatorRoutes, type OperatorRoute } from "./operator-route.ts";
import { showBatch, showOrganization } from "./organization-page.ts";
import { queuePage, queuesPage } from "./queue-pages.ts";
import { CREDENTIALS_ROLE, openRoles } from "./roles.ts";
import { runbookPage } from "./runbook-page.ts";
import { type FindingCalls, findPage, searchPage } from "./search-page.ts";
import {
  type AuthenticatingDeps,
  authenticateOperator,
  refuseWrites,
  signOut,
  skipUnlessOpen,
} from "./sign-in/authenticate-operator.ts";
import { type DepsOfPages, type Page, type Pages, visitOf } from "./visit.ts";
import { type ReleaseDeps, releaseReservationOf, voucherPage } from "./voucher-page.ts";

/** The pages by path after `/ops`, without those that optional features (wings) add. */
const PAGES = {
  ...LIST_PAGES,
  "/calls": ["viewer", unknownCallsPage],
  "/organizations/:id/calls": ["viewer", callsPage],
  "/products/:id": ["viewer", productPage],
  "/queues": ["viewer", queuesPage],
  "/queues/:id": ["viewer", queuePage],
  "/runbook": ["viewer", runbookPage],
  "/vouchers": ["viewer", findPage],
  "/vouchers/:id": ["viewer", voucherPage],
} as const;

type OperatorDeps = Omit<
  ActionDeps & OverviewPageDeps & ReleaseDeps & AuthenticatingDeps & DepsOfPages<typeof PAGES>,
  "roles"
> &
  FindingCalls & { console: Console | null };

/** Mounts the operator pages, also of optional features (wings), under `/ops`. Mounts nothing with OPS_TOKEN=off. */
export function mountOperatorPages<Deps extends OperatorDeps>(
  router: Router,
  ctx: Deps,
  ofWings: readonly ConsolePart<Deps>[],
  acts: readonly AnyAct[],
): void {
  if (ctx.config.ops.isOff) return;
  const pages = Router({ caseSensitive: true });
  mountOperatorRoutes(pages, operatorRoutes(ctx, ofWings, acts));
  const guarded = Router({ caseSensitive: true });
  guarded.use(skipUnlessOpen(ctx), speakEnglish, pageHeaders, offerPage(ctx.config));
  guarded.get("/sign-out", signOut);
  guarded.use(authenticateOperator(ctx), frameErrors(ctx.config), refuseCrossSite(ctx.config), pages);
  router.use(OPS_PATH, guarded);
}

/** All pages, forms and files below `/ops`, in mount order. `acts` are the acts of optional features (wings). */
export function operatorRoutes<Deps extends OperatorDeps>(
  deps: Deps,
  ofWings: readonly ConsolePart<Deps>[],
  acts: readonly AnyAct[],
): OperatorRoute[] {
  const found: OperatorRoute[] = [];
  const ctx = { ...deps, roles: openRoles(() => found) };
  const serve =
    (render: Page<Deps>): RequestHandler =>
    async (request, response) => {
      const page = await ctx.operatorReads({ signal: signalOf(response) }, () => render(visitOf(ctx, request)));
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    };
  const sections = ofWings.flatMap(({ organizationSection }) => organizationSection ?? []);
  const organizationPage: Page<Deps> = (visit) => showOrganization(visit, sections);
  const batchPage: Page<Deps> = (visit) =>
    showBatch(
      visit,
      ofWings.flatMap(({ batchSection }) => batchSection ?? []),
    );
  const tables: Pages<Deps>[] = [
    PAGES,
    {
      "/organizations/:id": ["viewer", organizationPage],
      "/brands/:id": ["viewer", brandPage(ofWings.flatMap(({ brandSection }) => brandSection ?? []))],
      "/batches/:id": ["viewer", batchPage],
    },
    ...ofWings.map((part) => part.pages ?? {}),
  ];
  const release: RequestHandler = async (request, response) => {
    response.redirect(303, await releaseReservationOf(visitOf(ctx, request), request.body?.ticket));
  };
  const sendAudit = respondText(async (request, response) => {
    const visit = visitOf(ctx, request);
    const text = await ctx.operatorReads({ signal: signalOf(response) }, () => readAuditFile(visit));
    response.attachment("audit.csv");
    return text;
  });
  const refuse = refuseWrites(ctx, "The operator pages are read-only.");
  found.push(
    ...(ctx.console === null
      ? []
      : actionRoutes(
          ctx,
          ctx.console,
          formsOf<Deps>(ctx.config.queues, { acts, forms: ofWings.flatMap(({ forms }) => forms ?? []) }),
        )),
    ...overviewRoutes(ctx),
    ...tables
      .flatMap((table) => Object.entries(table))
      .map(([path, [role, render]]) => ({ method: "get" as const, path, role, handlers: [serve(render)] })),
    { method: "post", path: "/audit", role: "viewer", handlers: [readForm, serve(showAudit)] },
    { method: "post", path: "/audit.csv", role: "viewer", handlers: [readForm, sendAudit] },
    { method: "post", path: "/vouchers", role: "viewer", handlers: [readForm, serve(searchPage)] },
    { method: "post", path: "/vouchers/:id/release", role: "operator", handlers: [refuse, readForm, release] },
  );
  return found;
}

/** The routes of operators' actions. */
function actionRoutes<Deps extends ActionDeps>(
  ctx: Deps,
  console: Console,
  actions: readonly Action<Deps>[],
): OperatorRoute[] {
  const codes = { path: "/batches/:id/codes.csv", role: CREDENTIALS_ROLE };
  const print = { path: "/batches/:id/print", role: CREDENTIALS_ROLE };
  // Each reading of codes leaves an audit entry, so only a POST can read codes.
  const refuseReads: RequestHandler = (_request, response) => {
    response.setHeader("Allow", "POST");
    throw new AppError("method_not_allowed", "Codes are sent for the button of the batch's page.");
  };
  return [
    ...actions.flatMap((action): OperatorRoute[] => {
      const form = { path: action.is[0], role: action.role };
      const read = sendsFiles(action) ? readFormWithFiles : [readForm];
      return [
        { ...form, method: "get", handlers: [showForm(ctx, action)] },
        { ...form, method: "post", handlers: [...read, runAction(ctx, console, action)] },
      ];
    }),
    { ...codes, method: "post", handlers: [readForm, sendCsv(ctx, console)] },
    { ...codes, method: "all", handlers: [refuseReads] },
    { ...print, method: "get", handlers: [choosePrintSheet(ctx)] },
    { ...print, method: "post", handlers: [readForm, showPrintSheet(ctx, console)] },
  ];
}
