import express, { Router } from "express";
import type { ApiContext } from "../../open-api.ts";
import { offerPage, sendPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { CATALOG_ACTIONS } from "./actions/catalog-actions.ts";
import { PARTNER_ACTIONS } from "./actions/partner-actions.ts";
import { sendCsv, showPrintSheet } from "./actions/send-codes.ts";
import { type Console, runAction, showForm } from "./actions/serve-action.ts";
import { authenticateOperator, refuseCrossSite, refuseWrites } from "./authenticate-operator.ts";
import { CATALOG_PAGES } from "./catalog-pages.ts";
import { LIST_PAGES } from "./list-pages.ts";
import { logPage } from "./log-page.ts";
import { mountOverview } from "./mount-overview.ts";
import { OPS_PATH } from "./operator-frame.ts";
import { batchPage, organizationPage } from "./organization-page.ts";
import { runbookPage } from "./runbook-page.ts";
import { searchPage } from "./search-page.ts";
import { type Page, visitOf } from "./visit.ts";
import { releaseReservationOf, voucherPage } from "./voucher-page.ts";
import { webhookPage } from "./webhook-page.ts";

/** Every page by its path after `/ops`. */
const PAGES: Record<string, Page> = {
  ...CATALOG_PAGES,
  ...LIST_PAGES,
  "/batches/:id": batchPage,
  "/log": logPage,
  "/organizations/:id": organizationPage,
  "/runbook": runbookPage,
  "/vouchers": searchPage,
  "/vouchers/:id": voucherPage,
  "/webhooks/:id": webhookPage,
};

/** Mounts the operator pages under `/ops`. Mounts nothing without OPS_TOKEN. */
export function mountOperatorPages(router: Router, ctx: ApiContext): void {
  const { token } = ctx.config.ops;
  if (token === null) return;
  const pages = Router({ caseSensitive: true });
  if (ctx.console !== null) mountActions(pages, ctx, ctx.console);
  mountOverview(pages, ctx);
  for (const [path, render] of Object.entries(PAGES)) {
    pages.get(path, async (request, response) => {
      response.locals.route = `${OPS_PATH}${path}`;
      // Uses the connections of public reads, so that operators never take one that partners need.
      const page = await ctx.publicReads(() => render(visitOf(ctx, request)));
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    });
  }
  const release = "/vouchers/:id/release";
  const refuse = refuseWrites(ctx, "The operator pages are read-only.");
  pages.post(release, refuse, express.urlencoded({ extended: false, limit: "1kb" }), async (request, response) => {
    response.locals.route = OPS_PATH + release;
    response.redirect(303, await releaseReservationOf(visitOf(ctx, request), request.body?.ticket));
  });
  router.use(OPS_PATH, pageHeaders, offerPage(ctx.config), authenticateOperator(ctx, token), refuseCrossSite, pages);
}

/** Mounts what operators can do. */
function mountActions(pages: Router, ctx: ApiContext, console: Console): void {
  for (const action of [...CATALOG_ACTIONS, ...PARTNER_ACTIONS]) {
    const [path] = action.is;
    pages.get(path, showForm(ctx, action));
    pages.post(path, express.urlencoded({ extended: false, limit: "16kb" }), runAction(ctx, console, action));
  }
  pages.get("/batches/:id/codes.csv", sendCsv(ctx, console));
  pages.get("/batches/:id/print", showPrintSheet(ctx, console));
}
