import { parse } from "basic-auth";
import type { Request, RequestHandler, Router } from "express";
import { z } from "zod";
import { AppError } from "../../contract/errors.ts";
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
import { readDeliveries } from "../../services/webhooks/deliveries.ts";
import { listWebhooks } from "../../services/webhooks/partner-webhooks.ts";
import { mount, respondText, sendCsv, validate } from "../endpoint.ts";
import { admitKey, callerOf } from "../middleware/authenticate.ts";
import type { Html } from "../pages/html.ts";
import { offerPage, renderErrorPage, sendPage, wantsPage } from "../pages/offer-page.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { renderFoundPage, renderOrderPage, renderWebhooksPage } from "./order-pages.ts";
import { PORTAL_PATH, type PortalCaller, portalPath, renderTop } from "./portal-frame.ts";
import { DAY_PAGE_MAX, dayOf, OVERVIEW_DAYS, renderDayPage, renderOverview, startOfDay } from "./redemption-pages.ts";

const dayQuery = z.object({ day: z.iso.date("must be a day such as 2026-11-24").optional() });

/** Mounts the portal, where people of a partner see its redemptions. It uses the connections of public reads, except for what the API reads, too. */
export function mountPortal(router: Router, ctx: ApiContext): void {
  const { config, pool } = ctx;
  // A large sum takes seconds, so that two of them would leave little to other reads.
  const oneAtATime = openBulkhead({ connections: 1, waitingMax: 20 });
  const sum = ({ organizationId }: PortalCaller, from: Date, to: Date) =>
    oneAtATime(() => ctx.publicReads(() => sumRedemptions(pool, organizationId, from, to)));
  const guard = [pageHeaders, offerPage(config), signIn(ctx)];
  const serve = (path: string, handler: RequestHandler) =>
    mount(router, { path: PORTAL_PATH + path, methods: { get: [...guard, handler] } });
  const servePage = (path: string, render: (caller: PortalCaller, request: Request) => Promise<Html | string>) =>
    serve(path, async (request, response) => {
      const page = await render(callerOf(response) as PortalCaller, request);
      response.setHeader("Cache-Control", "no-store");
      if (typeof page === "string") response.redirect(303, page);
      else sendPage(response, 200, page);
    });

  servePage("", async (caller, { query: { words } }) => {
    if (words !== undefined) return search(ctx, caller, typeof words === "string" ? words : "");
    const completeUntil = await ctx.completeUntil();
    const sums = await sum(caller, startOfDay(dayOf(completeUntil), 1 - OVERVIEW_DAYS), completeUntil);
    const organization = await ctx.publicReads(() => findOrganization(pool, caller.organizationId));
    return renderOverview(config, caller, { name: organization?.name ?? "Your organization", sums, completeUntil });
  });

  servePage("/redemptions", async (caller, { query: { cursor, ...query } }) => {
    const { day = dayOf(await ctx.completeUntil()) } = validate(dayQuery, query);
    const [from, to] = [startOfDay(day), startOfDay(day, 1)];
    const range = { from: from.toISOString(), to: to.toISOString(), limit: String(DAY_PAGE_MAX) };
    const listed = validate(redemptionsQuery, { ...range, ...(cursor !== undefined && { cursor }) });
    const page = await listRedemptions(ctx, caller, listed);
    const completeUntil = new Date(page.completeUntil);
    const sums = await sum(caller, from, to < completeUntil ? to : completeUntil);
    return renderDayPage(config, caller, { day, sums, page });
  });

  serve("/redemptions.csv", async (request, response) => {
    const { from, to } = validate(redemptionsQuery, { from: request.query.from, to: request.query.to });
    if (from === undefined || to === undefined) throw new AppError("invalid_request", "from and to are required.");
    const { organizationId } = callerOf(response);
    const { until, pages } = readAllRedemptions(ctx, organizationId, { from, to }, await ctx.completeUntil());
    response.attachment(`redemptions-${dayOf(from)}.csv`).setHeader("Complete-Until", until.toISOString());
    await sendCsv(response, { headers: {}, parts: redemptionsCsv(pages) });
  });

  servePage("/orders/:externalRef", async (caller, request) => {
    const { voucherInstanceId, discountPriceUsd } = await readRedemption(
      ctx,
      caller,
      String(request.params.externalRef).trim(),
    );
    const history = await ctx.publicReads(() => readVoucherHistory(ctx, voucherInstanceId, caller.organizationId));
    const { redemption } = history;
    if (redemption === null) throw new AppError("redemption_not_found");
    const receipt = await readRedemptionReceipt(ctx, caller, redemption.externalRef).catch((error: unknown) => {
      if (error instanceof AppError && error.code === "not_logged_yet") return null;
      throw error;
    });
    const policy = (await findCheckpoint(ctx))?.policy ?? "";
    return renderOrderPage(config, caller, { history, redemption, priceUsd: discountPriceUsd, receipt, policy });
  });

  serve(
    "/orders/:externalRef/receipt",
    respondText(async (request, response) => {
      const receipt = await readRedemptionReceipt(ctx, callerOf(response), String(request.params.externalRef).trim());
      response.attachment("receipt.txt");
      return receipt;
    }),
  );

  servePage("/webhooks", async ({ readsWebhooks, ...caller }) => {
    if (!readsWebhooks) throw new AppError("missing_scope", "This API key lacks the scope voucher.webhook.");
    return ctx.publicReads(async () => {
      const endpoints = [];
      for (const webhook of (await listWebhooks(ctx, pool, caller.organizationId)).webhooks) {
        const query = { cursor: undefined, limit: 10 };
        endpoints.push({ ...webhook, ...(await readDeliveries(ctx, caller.organizationId, webhook.id, query)) });
      }
      return renderWebhooksPage(config, { ...caller, readsWebhooks }, endpoints);
    });
  });
}

/**
 * Admits a request whose password (HTTP Basic, any user name) is an API key that can read and not redeem, as partners' calls are admitted.
 * Errors after that have the portal's navigation.
 */
function signIn(ctx: ApiContext): RequestHandler {
  const assertScopes = (scopes: ReadonlySet<string>) => {
    if (!scopes.has("voucher.read") || scopes.has("voucher.redeem")) throw new AppError("portal_needs_read_key");
  };
  return async (request, response, next) => {
    response.setHeader("WWW-Authenticate", 'Basic realm="Portal", charset="UTF-8"');
    const secret = parse(request.get("authorization") ?? "")?.pass;
    const scopes = await admitKey(ctx, request, response, { secret, assertScopes, limiter: ctx.limits.read });
    response.removeHeader("WWW-Authenticate");
    const readsWebhooks = scopes.has("voucher.webhook") && ctx.config.webhooks.secret !== null;
    const top = renderTop(ctx.config, Object.assign(callerOf(response), { readsWebhooks }));
    if (wantsPage(response)) response.locals.errorPage = (...refusal) => renderErrorPage(ctx.config, ...refusal, top);
    next();
  };
}

/** The page of the only order that the words name, or a page of all vouchers that they name. */
async function search(ctx: ApiContext, caller: PortalCaller, words: string): Promise<Html | string> {
  const [only, ...others] = words.trim() === "" ? [] : await findOrders(ctx, caller, words);
  if (only?.externalRef && others.length === 0) return portalPath(ctx.config, "orders", only.externalRef);
  return renderFoundPage(ctx.config, caller, words, only === undefined ? [] : [only, ...others]);
}
