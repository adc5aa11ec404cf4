import express, { type Request, type RequestHandler, type Response, Router } from "express";
import { AppError } from "../../contract/errors.ts";
import { DELIVERY_STATES } from "../../contract/webhook-deliveries.ts";
import { selectChanges } from "../../db/audit-entries.ts";
import { listWebhookEndpoints } from "../../db/webhook-endpoints.ts";
import type { ApiContext } from "../../open-api.ts";
import { listCatalog } from "../../services/admin/list-catalog.ts";
import { readBatch } from "../../services/admin/read-batch.ts";
import { locateKey, type OrganizationPage, readOrganization } from "../../services/admin/read-organization.ts";
import { readPlace } from "../../services/admin/read-place.ts";
import { readVoucherHistory } from "../../services/admin/read-voucher-history.ts";
import { searchVouchers } from "../../services/admin/search-vouchers.ts";
import { type Operator, recordLook } from "../../services/audit/record-look.ts";
import { readLogStatus } from "../../services/log/read-log-status.ts";
import { releaseReservation } from "../../services/partner/release-reservation.ts";
import { readWebhook, type WebhookPage } from "../../services/webhooks/read-webhook.ts";
import { pathId } from "../endpoint.ts";
import type { Html } from "../pages/html.ts";
import { offerPage, sendPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { mountActions } from "./actions/mount-actions.ts";
import { authenticateOperator, nameOf, refuseWrites } from "./authenticate-operator.ts";
import { CATALOG_PAGES } from "./catalog-pages.ts";
import { renderAuditPage, renderEndpointsPage, renderOrganizationsPage } from "./list-pages.ts";
import { renderLogPage } from "./log-page.ts";
import { mountOverview } from "./mount-overview.ts";
import { OPS_PATH, opsPath, SEARCH_MAX } from "./operator-frame.ts";
import { renderBatchPage, renderOrganizationPage } from "./organization-page.ts";
import { refuseCrossSite } from "./refuse-cross-site.ts";
import { renderRunbookPage } from "./runbook-page.ts";
import { type Named, renderSearchPage } from "./search-page.ts";
import { renderVoucherPage } from "./voucher-page.ts";
import { renderWebhookPage } from "./webhook-page.ts";

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
      const page = await ctx.publicReads(() => render(ctx, request, operatorOf(request)));
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    });
  }
  pages.post(
    "/vouchers/:id/release",
    refuseWrites(ctx, "The operator pages are read-only."),
    express.urlencoded({ extended: false, limit: "1kb" }),
    release(ctx),
  );
  router.use(OPS_PATH, pageHeaders, offerPage(ctx.config), authenticateOperator(ctx, token), refuseCrossSite, pages);
}

/** Reads what a page shows, records the view, and returns the page or the URL to redirect to. */
type RenderPage = (ctx: ApiContext, request: Request, operator: Operator) => Promise<Html | string>;

/** Most entries on a page of a list. */
const LIST_MAX = 100;

/** Every page by its path after `/ops`. Pages with data of partners or customers record each view. */
const PAGES: Record<string, RenderPage> = {
  ...CATALOG_PAGES,

  "/organizations": async (ctx, request) => {
    const page = { after: queryText(request, "after"), limit: LIST_MAX };
    return renderOrganizationsPage(ctx.config, await listCatalog(ctx, "organizations", {}, page));
  },

  "/webhooks": async (ctx, request) => {
    const found = await listWebhookEndpoints(ctx.pool, queryText(request, "after"), LIST_MAX);
    return renderEndpointsPage(ctx.config, found, found.length < LIST_MAX ? null : (found.at(-1)?.id ?? null));
  },

  "/audit": async (ctx, request) => {
    const before = Number(queryText(request, "before")) || Number.MAX_SAFE_INTEGER;
    if (!Number.isSafeInteger(before)) throw new AppError("invalid_request", "before must be the id of an entry.");
    const found = await selectChanges(ctx.pool, before, LIST_MAX);
    return renderAuditPage(ctx.config, found, found.length < LIST_MAX ? null : (found.at(-1)?.id ?? null));
  },

  "/runbook": async ({ config }) => renderRunbookPage(config),

  "/log": async (ctx) => renderLogPage(ctx.config, await readLogStatus(ctx)),

  "/vouchers": async (ctx, request, operator) => {
    const words = queryText(request, "words").slice(0, SEARCH_MAX);
    const found = await searchVouchers(ctx, words);
    const [only, ...others] = found;
    // The voucher's page records the view.
    if (only !== undefined && others.length === 0) return opsPath(ctx.config, "vouchers", only.id);
    const record = () =>
      recordLook(ctx, operator, "page search", { type: "Search", id: "vouchers" }, { found: found.length });
    if (only === undefined) {
      const page = await findPage(ctx, words.trim()).catch(async (error) => {
        await record();
        throw error;
      });
      if (page !== null) return page;
    }
    await record();
    return renderSearchPage(ctx.config, words, found, only === undefined ? await findNamed(ctx, words.trim()) : []);
  },

  "/vouchers/:id": async (ctx, request, operator) => {
    const id = pathId(request.params.id);
    // Accepts ids only, because a code must not become part of a URL.
    if (!id.startsWith("vch_")) throw new AppError("voucher_not_found", "No voucher has this id.");
    const history = await readVoucherHistory(ctx, id, null);
    await recordLook(ctx, operator, "page voucher", { type: "VoucherInstance", id: history.voucher.id });
    return renderVoucherPage(ctx.config, history);
  },

  "/organizations/:id": async (ctx, request, operator) => {
    const page = organizationPageOf(request);
    const organization = await readOrganization(ctx, pathId(request.params.id), page);
    await recordLook(ctx, operator, "page organization", { type: "Organization", id: organization.id });
    return renderOrganizationPage(ctx.config, organization, page);
  },

  "/batches/:id": async (ctx, request, operator) => {
    const batch = await readBatch(ctx, pathId(request.params.id));
    await recordLook(ctx, operator, "page batch", { type: "Batch", id: batch.id });
    const listings = await listCatalog(ctx, "listings", { batch: batch.id }, { after: "", limit: 1 });
    return renderBatchPage(ctx.config, batch, await readPlace(ctx, "batches", batch.id), listings.items[0]?.id ?? null);
  },

  "/webhooks/:id": async (ctx, request, operator) => {
    const page = webhookPageOf(request);
    const summary = await readWebhook(ctx, pathId(request.params.id), page);
    await recordLook(ctx, operator, "page webhook", { type: "WebhookEndpoint", id: summary.endpoint.id });
    return renderWebhookPage(ctx.config, summary, page);
  },
};

/** The URL of the page for the id of an organization, a batch, a webhook endpoint or a key; null for another text. */
async function findPage(ctx: ApiContext, words: string): Promise<string | null> {
  const site = ctx.config;
  if (/^org_[0-9a-z]{26}$/.test(words)) return opsPath(site, "organizations", words);
  if (/^bat_[0-9a-z]{26}$/.test(words)) return opsPath(site, "batches", words);
  if (/^whk_[0-9a-z]{26}$/.test(words)) return opsPath(site, "webhooks", words);
  if (/^key_[0-9a-z]{26}$/.test(words)) {
    const { organizationId, keysBefore } = await locateKey(ctx, words);
    return `${opsPath(site, "organizations", organizationId)}${keysBefore === null ? "" : `?keysBefore=${keysBefore}`}#${words}`;
  }
  return null;
}

/** At most ten organizations, ten brands and ten products with the words in their name. */
async function findNamed(ctx: ApiContext, name: string): Promise<Named[]> {
  const named: Named[] = [];
  if (name === "" || name.includes("\0")) return named;
  for (const collection of ["organizations", "brands", "products"] as const) {
    const { items } = await listCatalog(ctx, collection, { name }, { after: "", limit: 10 });
    for (const item of items) named.push({ collection, id: item.id, name: item.name });
  }
  return named;
}

function operatorOf(request: Request): Operator {
  return { name: nameOf(request), address: request.ip ?? "unknown" };
}

/** A parameter of the query. Empty if it is missing, is repeated or contains NUL. */
function queryText(request: Request, name: string): string {
  const value = request.query[name];
  return typeof value === "string" && !value.includes("\0") ? value : "";
}

function organizationPageOf(request: Request): OrganizationPage {
  const redeemedBefore = queryText(request, "redeemedBefore");
  if (redeemedBefore !== "" && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(redeemedBefore)) {
    throw new AppError("invalid_request", "redeemedBefore must be a time of this page.");
  }
  const redeemedAt = new Date(redeemedBefore);
  return {
    redemptionsBefore: Number.isNaN(redeemedAt.getTime())
      ? null
      : { redeemedAt, voucherId: queryText(request, "voucherBefore") },
    batchesBefore: queryText(request, "batchesBefore") || null,
    keysBefore: queryText(request, "keysBefore") || null,
  };
}

function webhookPageOf(request: Request): WebhookPage {
  const text = queryText(request, "state");
  const state = DELIVERY_STATES.find((one) => one === text);
  if (text !== "" && state === undefined) throw new AppError("invalid_request", "state must be a state of deliveries.");
  return { state, cursor: queryText(request, "cursor") || undefined };
}

/** Releases a voucher's live reservation, and redirects to the voucher's page. */
function release(ctx: ApiContext): RequestHandler<{ id: string }> {
  return async (request, response: Response) => {
    response.locals.route = `${OPS_PATH}/vouchers/:id/release`;
    const { voucher, reservations } = await ctx.publicReads(() =>
      readVoucherHistory(ctx, pathId(request.params.id), null),
    );
    const live = reservations.find(({ state, ticket }) => state === "Live" && ticket === request.body?.ticket);
    if (live === undefined) throw new AppError("reservation_ended", "This reservation has ended.");
    await recordLook(ctx, operatorOf(request), "page release", { type: "VoucherInstance", id: voucher.id });
    const caller = { organizationId: voucher.organizationId, keyId: live.keyId, sandbox: voucher.sandbox === true };
    await releaseReservation(ctx, caller, live.ticket, "released by an operator");
    response.redirect(303, opsPath(ctx.config, "vouchers", voucher.id));
  };
}
