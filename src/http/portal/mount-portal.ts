import { parse } from "basic-auth";
import type { Request, RequestHandler, Response, Router } from "express";
import { AppError } from "../../contract/errors.ts";
import { TEXT } from "../../contract/receipt.ts";
import { redemptionsCsv, redemptionsQuery } from "../../contract/redemptions.ts";
import { findOrganization } from "../../db/catalog.ts";
import { sumRedemptions } from "../../db/redemptions.ts";
import type { ApiContext } from "../../open-api.ts";
import { readVoucherHistory } from "../../services/admin/read-voucher-history.ts";
import { openBulkhead } from "../../services/batches/bulkhead.ts";
import { findCheckpoint } from "../../services/log/read-log.ts";
import { readRedemptionReceipt } from "../../services/log/read-receipt.ts";
import { findOrders } from "../../services/partner/find-orders.ts";
import { listRedemptions, readAllRedemptions } from "../../services/partner/list-redemptions.ts";
import { readRedemption } from "../../services/partner/read-redemption.ts";
import { listWebhooks, readDeliveries } from "../../services/webhooks/read-webhooks.ts";
import { mount, sendCsv, validate } from "../endpoint.ts";
import { admitKey, callerOf } from "../middleware/authenticate.ts";
import { renderErrorPage } from "../pages/error-page.ts";
import type { Html } from "../pages/html.ts";
import { offerPage, sendPage, wantsPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { DAY_PAGE_MAX, renderDayPage } from "./day-page.ts";
import { renderFoundPage, renderOrderPage } from "./order-page.ts";
import { dayOf, renderOverview, startOfDay, startOfOverview } from "./overview-page.ts";
import { PORTAL_PATH, type PortalCaller, portalPath, renderTop, SEARCH_MAX, totalOf } from "./portal-frame.ts";
import { DELIVERIES_SHOWN, renderWebhooksPage } from "./webhooks-page.ts";

/** Sums of redemptions at a time, each on a connection of public reads: a large one takes seconds. More may wait. */
const SUMS = { connections: 1, waitingMax: 20 };

/** Mounts the portal, where people of a partner see its redemptions. */
export function mountPortal(router: Router, ctx: ApiContext): void {
  const oneAtATime = openBulkhead(SUMS);
  const sum = (caller: PortalCaller, from: Date, to: Date) =>
    oneAtATime(() => ctx.publicReads(() => sumRedemptions(ctx.pool, caller.organizationId, from, to)));
  const guard = [pageHeaders, offerPage(ctx.config), signIn(ctx)];
  const serve = (path: string, send: (request: Request, response: Response, caller: PortalCaller) => Promise<void>) => {
    const handler: RequestHandler = (request, response) => send(request, response, portalCallerOf(response));
    mount(router, { path: PORTAL_PATH + path, methods: { get: [...guard, handler] } });
  };
  const servePage = (path: string, render: (request: Request, caller: PortalCaller) => Promise<Html | string>) =>
    serve(path, async (request, response, caller) => {
      const page = await render(request, caller);
      response.setHeader("Cache-Control", "no-store");
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    });

  servePage("", async (request, caller) => {
    if (request.query.words !== undefined) return search(ctx, caller, textOf(request, "words").slice(0, SEARCH_MAX));
    const completeUntil = await ctx.completeUntil();
    const sums = await sum(caller, startOfOverview(completeUntil), completeUntil);
    const organization = await ctx.publicReads(() => findOrganization(ctx.pool, caller.organizationId));
    return renderOverview(ctx.config, caller, { name: organization?.name ?? "Your organization", sums, completeUntil });
  });

  servePage("/redemptions", async (request, caller) => {
    const day = request.query.day === undefined ? dayOf(await ctx.completeUntil()) : textOf(request, "day");
    assertDay(day);
    const [from, to] = [startOfDay(day), startOfDay(day, 1)];
    const { cursor } = request.query;
    const range = { from: from.toISOString(), to: to.toISOString(), limit: String(DAY_PAGE_MAX) };
    const query = validate(redemptionsQuery, { ...range, ...(cursor !== undefined && { cursor }) });
    const page = await listRedemptions(ctx, caller, query);
    const completeUntil = new Date(page.completeUntil);
    const total = totalOf(await sum(caller, from, to < completeUntil ? to : completeUntil));
    return renderDayPage(ctx.config, caller, { day, total, page, isFirst: cursor === undefined });
  });

  serve("/redemptions.csv", async (request, response, caller) => {
    const { from, to } = validate(redemptionsQuery, { from: request.query.from, to: request.query.to });
    if (from === undefined || to === undefined) throw new AppError("invalid_request", "from and to are required.");
    const completeUntil = await ctx.completeUntil();
    const { until, pages } = readAllRedemptions(ctx, caller.organizationId, { from, to }, completeUntil);
    const headers = {
      "Complete-Until": until.toISOString(),
      "Content-Disposition": `attachment; filename="redemptions-${dayOf(from)}.csv"`,
    };
    await sendCsv(response, { headers, parts: redemptionsCsv(pages) });
  });

  servePage("/orders/:externalRef", async (request, caller) => {
    const { voucherInstanceId, discountPriceUsd } = await readRedemption(ctx, caller, referenceOf(request));
    const history = await ctx.publicReads(() => readVoucherHistory(ctx, voucherInstanceId, caller.organizationId));
    const { redemption } = history;
    if (redemption === null) throw new AppError("redemption_not_found");
    const receipt = await readRedemptionReceipt(ctx, caller, redemption.externalRef).catch((error: unknown) => {
      if (error instanceof AppError && error.code === "not_logged_yet") return null;
      throw error;
    });
    const policy = (await findCheckpoint(ctx))?.policy ?? "";
    return renderOrderPage(ctx.config, caller, { history, redemption, priceUsd: discountPriceUsd, receipt, policy });
  });

  serve("/orders/:externalRef/receipt", async (request, response, caller) => {
    const receipt = await readRedemptionReceipt(ctx, caller, referenceOf(request));
    response.set({ "Cache-Control": "no-store", "Content-Type": TEXT });
    response.set("Content-Disposition", 'attachment; filename="receipt.txt"').end(receipt);
  });

  servePage("/webhooks", async (_request, caller) => {
    if (!caller.readsWebhooks) throw new AppError("missing_scope", "This API key lacks the scope voucher.webhook.");
    const { organizationId } = caller;
    const { webhooks } = await ctx.publicReads(() => listWebhooks(ctx, ctx.pool, organizationId));
    const endpoints = [];
    for (const webhook of webhooks) {
      const { deliveries } = await ctx.publicReads(() =>
        readDeliveries(ctx, organizationId, webhook.id, { cursor: undefined, limit: DELIVERIES_SHOWN }),
      );
      endpoints.push({ webhook, deliveries });
    }
    return renderWebhooksPage(ctx.config, caller, endpoints);
  });
}

declare global {
  namespace Express {
    interface Locals {
      /** Whether the key of a caller of the portal has `voucher.webhook`. */
      readsWebhooks?: boolean;
    }
  }
}

/**
 * Admits a request whose password (HTTP Basic, any user name) is an API key that can read and not redeem, as partners' calls are admitted.
 * Errors after that have the portal's navigation.
 */
function signIn(ctx: ApiContext): RequestHandler {
  const assertScopes = (scopes: ReadonlySet<string>) => {
    if (!scopes.has("voucher.read") || scopes.has("voucher.redeem")) throw new AppError("portal_needs_read_key");
  };
  const howToSend = "Sign in with an API key of your organization as the password, under any user name.";
  return async (request, response, next) => {
    response.setHeader("WWW-Authenticate", 'Basic realm="Portal", charset="UTF-8"');
    const secret = parse(request.get("authorization") ?? "")?.pass;
    const by = { secret, assertScopes, limiter: ctx.limits.read, howToSend };
    const scopes = await admitKey(ctx, request, response, by);
    response.removeHeader("WWW-Authenticate");
    response.locals.readsWebhooks = scopes.has("voucher.webhook") && ctx.config.webhooks.secret !== null;
    const top = renderTop(ctx.config, portalCallerOf(response));
    if (wantsPage(response)) response.locals.errorPage = (...refusal) => renderErrorPage(ctx.config, ...refusal, top);
    next();
  };
}

function portalCallerOf(response: Response): PortalCaller {
  return { ...callerOf(response), readsWebhooks: response.locals.readsWebhooks === true };
}

/** The page of the only order that the words name, or a page of all vouchers that they name. */
async function search(ctx: ApiContext, caller: PortalCaller, words: string): Promise<Html | string> {
  const found = words.trim() === "" ? [] : await findOrders(ctx, caller, words);
  const [only, ...others] = found;
  if (only?.externalRef && others.length === 0) return portalPath(ctx.config, "orders", only.externalRef);
  return renderFoundPage(ctx.config, caller, words, found);
}

/** @throws AppError `invalid_request` unless the text is a day of the calendar. */
function assertDay(text: string): void {
  const isDay = /^2\d{3}-\d\d-\d\d$/.test(text) && Number.isFinite(Date.parse(text)) && dayOf(new Date(text)) === text;
  if (!isDay) throw new AppError("invalid_request", "day must be a day such as 2026-11-24, in the years 2000 to 2999.");
}

/** A parameter of the query. Empty if it is repeated. */
function textOf(request: Request, name: string): string {
  const value = request.query[name];
  return typeof value === "string" ? value : "";
}

function referenceOf(request: Request): string {
  return String(request.params.externalRef).trim();
}
