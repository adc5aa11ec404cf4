import type { Request, RequestHandler, Response, Router } from "express";
import { z } from "zod";
import { readVoucherHistory } from "../acts/read-voucher-history.ts";
import { findOrganization } from "../core/catalog/db/catalog.ts";
import { readConfirmed } from "../core/commit/confirm-reads.ts";
import { type FeedEventView, feedQuery } from "../core/feed/api/feed.ts";
import { readFeed, readLastEvents } from "../core/feed/read-feed.ts";
import type { Caller } from "../core/keys/caller.ts";
import { admitKey, callerOf } from "../core/keys/routes/authenticate.ts";
import { findOrders } from "../core/look-up/find-orders.ts";
import { receiptQuery, redemptionsQuery } from "../core/redeem/api/redemptions.ts";
import { sumRedemptions } from "../core/redeem/db/redemptions.ts";
import { listRedemptions, readAllRedemptions } from "../core/redeem/list-redemptions.ts";
import { findRedemption } from "../core/redeem/read-redemption.ts";
import { readStatement, readStatementFile } from "../core/redeem/read-statement.ts";
import { nameVouchers } from "../core/voucher/db/vouchers.ts";
import { offerPage, renderErrorPage } from "../pages/error-page.ts";
import { type Html, html } from "../pages/html.ts";
import type { Site } from "../pages/layout.ts";
import { ENGLISH, localeForReader, localeIn } from "../pages/locale.ts";
import { pageHeaders } from "../pages/page-headers.ts";
import { AppError, missingFields } from "../platform/api/errors.ts";
import { problem } from "../platform/api/problems.ts";
import { type DepsOf, mount, validate } from "../platform/http/endpoint.ts";
import { readForm } from "../platform/http/middleware/form-body.ts";
import { refuseCrossSite } from "../platform/http/middleware/refuse-cross-site.ts";
import { basicCredentials } from "../platform/http/middleware/request-headers.ts";
import { sendPage, wantsPage } from "../platform/http/negotiate.ts";
import { respondText } from "../platform/http/respond.ts";
import type { SendFile } from "../platform/http/send-file.ts";
import type { Limits } from "../platform/limits/open-limits.ts";
import { readTime, type TimeUse } from "../platform/times.ts";
import { ACTIVITY_PAGE_MAX, activityPath, renderActivityPage } from "./activity-page.ts";
import { addDays, addMonths, dayOf, daysBetween, monthOf, startOfDay, startOfMonth } from "./calendar.ts";
import { renderMonthPage } from "./month-page.ts";
import { renderFoundPage, renderOrderPage } from "./order-pages.ts";
import {
  type OrderPart,
  orderPath,
  PORTAL_PATH,
  type PortalCaller,
  type PortalPage,
  type PortalPart,
  renderTop,
} from "./portal-frame.ts";
import { DAY_PAGE_MAX, type DaySum, OVERVIEW_DAYS, renderDayPage, renderOverview } from "./redemption-pages.ts";
import { SPREADSHEET_LANGUAGES, type SpreadsheetLanguage, spreadsheetCsv } from "./spreadsheet.ts";
import { renderStatementPage } from "./statement-page.ts";

const periodQuery = z.object({
  day: z.iso.date(problem("noDay")).optional(),
  month: z
    .string(problem("noMonth"))
    .regex(/^2\d{3}-(?:0[1-9]|1[0-2])$/, problem("noMonth"))
    .optional(),
});

/**
 * The query of the activity page, with cursors of the feed: `after` for the next events, `until` for the last events up
 * to the cursor. An empty `types`, as a form sends it, stands for all types.
 */
const activityQuery = z.object({
  types: z.preprocess((given) => given || undefined, feedQuery.shape.types),
  after: feedQuery.shape.after,
  until: feedQuery.shape.after,
});

/** Replaces a day in the CSV file's query by the time at which it starts or ends. */
const asTime = (given: unknown, use: TimeUse) =>
  typeof given === "string" && given.length === 10 ? (readTime(given, use)?.toISOString() ?? given) : given;

/** The reference in the path or, if the path has none, in the query. */
function referenceOf({ params, query }: Request): string {
  return String(params.externalRef ?? validate(receiptQuery, query).externalRef);
}

/** Returns a page, or the URL to which to redirect. */
type Render = (caller: PortalCaller, request: Request) => Promise<Html | string>;

function page(deps: PortalDeps, render: Render): RequestHandler {
  return async (request, response) => {
    const rendered = await render(await readerOf(deps, response), request);
    response.setHeader("Cache-Control", "no-store");
    if (typeof rendered === "string") response.redirect(303, rendered);
    else sendPage(response, 200, rendered);
  };
}

const organizationOf = ({ portalReads, pool }: PortalDeps, caller: Caller) =>
  portalReads(caller, () => findOrganization(pool, caller.organizationId));

/** The caller of a page, with the organization's time zone and the reader's formats. */
async function readerOf(deps: PortalDeps, response: Response): Promise<PortalCaller> {
  const caller = callerOf(response) as PortalCaller;
  const organization = await organizationOf(deps, caller);
  const locale = localeForReader(response, organization?.timeZone ?? "UTC");
  return Object.assign(caller, { locale, ...(organization !== null && { organizationName: organization.name }) });
}

/** The dependencies of the portal. */
type PortalDeps = DepsOf<typeof listRedemptions> &
  DepsOf<typeof readStatement> &
  DepsOf<typeof readFeed> &
  DepsOf<typeof findOrders> &
  DepsOf<typeof findRedemption> &
  DepsOf<typeof readVoucherHistory> &
  DepsOf<typeof readConfirmed> &
  DepsOf<typeof admitKey> & { config: Site; limits: Limits; sendFile: SendFile };

type Serve = (path: string, handler: RequestHandler) => void;

/**
 * Mounts the portal, where a partner's staff see its redemptions. Reads that are not batched use the portal's
 * connections. The standbys confirm one read of each page: the last, or the read of the time before which redemptions
 * are complete.
 */
export function mountPortal<Deps extends PortalDeps & { inPortal: Partial<PortalDeps> }>(
  router: Router,
  api: Deps,
  ofWings: readonly PortalPart<Deps>[],
): void {
  const deps = { ...api, ...api.inPortal };
  const { config } = deps;
  const pages = ofWings.flatMap((part) => part.pages ?? []);
  const guard = [pageHeaders, offerPage(config), explainSignIn(config), refuseCrossSite(config), signIn(deps, pages)];
  mount(router, deps, {
    limitsCallers: true,
    path: PORTAL_PATH,
    methods: {
      get: [...guard, page(deps, overviewPage(deps))],
      post: [...guard, readForm, page(deps, findPage(deps))],
    },
  });
  const serve: Serve = (path, handler) =>
    mount(router, deps, { path: PORTAL_PATH + path, methods: { get: [...guard, handler] }, limitsCallers: true });
  serve("/redemptions", page(deps, redemptionsPage(deps)));
  serve("/redemptions.csv", redemptionsFile(deps));
  serve("/statement", page(deps, statementPage(deps)));
  serve("/statement.csv", statementFile(deps));
  serve("/activity", page(deps, activityPage(deps)));
  const ofOrders = ofWings.flatMap(({ order }) => order ?? []);
  serveOrders(serve, deps, ofOrders);
  for (const further of pages) serve(further.path, page(deps, furtherPage(deps, further)));
}

async function sum(
  { portalReads, pool }: PortalDeps,
  caller: PortalCaller,
  days: readonly string[],
  until: Date,
): Promise<DaySum[]> {
  const begun = days.map((day) => startOfDay(day, caller.locale)).filter((start) => start < until);
  if (begun.length === 0) return [];
  const end = startOfDay(addDays(days.at(-1) ?? "", 1), caller.locale);
  const bounds = [...begun, end < until ? end : until];
  const { organizationId } = caller;
  const sums = await portalReads(caller, () => sumRedemptions(pool, { organizationId, bounds }));
  return sums.map(({ period, ...each }) => ({ ...each, day: days[period - 1] ?? "" }));
}

function overviewPage(deps: PortalDeps): Render {
  return async (caller) => {
    const completeUntil = await deps.completeUntil(caller);
    const today = dayOf(completeUntil, caller.locale);
    const days = daysBetween(addDays(today, 1 - OVERVIEW_DAYS), addDays(today, 1));
    return renderOverview(deps.config, caller, { sums: await sum(deps, caller, days, completeUntil), completeUntil });
  };
}

/**
 * Finds vouchers by a form that is sent with POST. Ignores the query, because a code must not be part of a URL, which
 * proxies log and browsers remember.
 */
function findPage(deps: PortalDeps): Render {
  return (caller, { body }) => {
    const { words } = Object(body) as Record<string, unknown>;
    return readConfirmed(deps, () => search(deps, caller, typeof words === "string" ? words : ""));
  };
}

async function showMonth(deps: PortalDeps, caller: PortalCaller, month: string): Promise<Html> {
  const completeUntil = await deps.completeUntil(caller);
  const days = daysBetween(`${month}-01`, `${addMonths(month, 1)}-01`);
  const sums = await sum(deps, caller, days, completeUntil);
  return renderMonthPage(deps.config, caller, { month, sums, completeUntil });
}

/** The page of a month or a day, by default of the current month. */
function redemptionsPage(deps: PortalDeps): Render {
  return async (caller, { query: { cursor, ...query } }) => {
    const { locale } = caller;
    const { month, day = dayOf(await deps.completeUntil(caller), locale) } = validate(periodQuery, query);
    if (month !== undefined) return showMonth(deps, caller, month);
    const [from, to] = [day, addDays(day, 1)].map((each) => startOfDay(each, locale).toISOString());
    const range = { from, to, limit: String(DAY_PAGE_MAX) };
    const listed = validate(redemptionsQuery, { ...range, ...(cursor !== undefined && { cursor }) });
    const list = await listRedemptions(deps, caller, listed);
    const sums = await sum(deps, caller, [day], new Date(list.completeUntil));
    return renderDayPage(deps.config, caller, { day, sums, page: list });
  };
}

function redemptionsFile(deps: PortalDeps): RequestHandler {
  return async (request, response) => {
    const given = { from: asTime(request.query.from, "start"), to: asTime(request.query.to, "rangeEnd") };
    const { from, to } = validate(redemptionsQuery, given);
    const caller = callerOf(response);
    if (from === undefined || to === undefined) throw missingFields({ from, to });
    const { until, pages } = readAllRedemptions(deps, caller, { from, to }, await deps.completeUntil(caller));
    const zone = ENGLISH.in((await organizationOf(deps, caller))?.timeZone ?? "UTC");
    const month = monthOf(from, zone);
    const isMonth = [from, to].every(
      (at, later) => at.getTime() === startOfMonth(addMonths(month, later), zone).getTime(),
    );
    response.vary("Accept-Language");
    const language = (request.acceptsLanguages(SPREADSHEET_LANGUAGES) || "en") as SpreadsheetLanguage;
    const headers = {
      "Content-Disposition": `attachment; filename=redemptions-${isMonth ? month : dayOf(from, zone)}.csv`,
      "Complete-Until": until.toISOString(),
    };
    await deps.sendFile(response, { headers, parts: spreadsheetCsv(pages, language) });
  };
}

/** The page of a month's statement, by default that of the current month. */
function statementPage(deps: PortalDeps): Render {
  return async (caller, { query }) => {
    const month = query.month ?? monthOf(await deps.completeUntil(caller), ENGLISH);
    return renderStatementPage(deps.config, caller, await readStatement(deps, caller, String(month)));
  };
}

/** A statement's file, never translated, because the statement contains a hash of the file. */
function statementFile(deps: PortalDeps): RequestHandler {
  return async ({ query }, response) =>
    deps.sendFile(response, await readStatementFile(deps, callerOf(response), String(query.month)));
}

/** The newest events, or those before or after another page. If none are after that page, redirects to the newest. */
function activityPage(deps: PortalDeps): Render {
  return async (caller, { query }) => {
    const { after, until, types } = validate(activityQuery, query);
    const wanted = { limit: ACTIVITY_PAGE_MAX, types };
    const show = async (events: readonly FeedEventView[], earlier: string | null, later: string | null) => {
      const ids = events.map(({ entityId }) => entityId);
      const names = await readConfirmed(deps, () => deps.portalReads(caller, () => nameVouchers(deps.pool, ids)));
      return renderActivityPage(deps.config, caller, { events, names, types, earlier, later });
    };
    if (after === undefined) {
      const { events, start } = await readLastEvents(deps, caller, until, wanted);
      return show(events, start, until ?? null);
    }
    const { events, nextCursor } = await readFeed(deps, caller, { ...wanted, after, wait: 0 });
    return events.length === 0 ? activityPath(deps.config, { types }) : show(events, after, nextCursor);
  };
}

function serveOrders<Deps extends PortalDeps>(serve: Serve, deps: Deps, ofWings: readonly OrderPart<Deps>[]): void {
  const order: Render = (caller, request) =>
    readConfirmed(deps, () => showOrder(deps, caller, referenceOf(request), ofWings));
  for (const path of ["/orders/:externalRef", "/orders"]) serve(path, page(deps, order));
  for (const { file } of ofWings) {
    const send = respondText(async (request, response) => {
      const text = await file.read(deps, callerOf(response), referenceOf(request));
      response.attachment(file.name);
      return text;
    });
    for (const path of [`/orders/:externalRef/${file.segment}`, `/${file.segment}`]) serve(path, send);
  }
}

/** A page of a wing. */
function furtherPage<Deps>(deps: Deps, { path, render }: PortalPage<Deps>): Render {
  return async (caller) => {
    if (!caller.further.some((page) => page.path === path)) throw new AppError("missing_scope");
    return render(deps, caller);
  };
}

/** Explains how to sign in, on the error pages of refused sign-ins. */
function explainSignIn(site: Site): RequestHandler {
  return (_request, response, next) => {
    if (wantsPage(response)) {
      response.locals.errorPage = (refusal, status, requestId, language) => {
        const how = html`<p class="notice">${localeIn(language).t("portal.signIn")}</p>`;
        return renderErrorPage(site, refusal, status, requestId, language, { top: how });
      };
    }
    next();
  };
}

/**
 * Admits a request whose password (HTTP Basic, any user name) is an API key that can read but not redeem, under the
 * rules for partners' API calls. Later error pages have the portal's navigation.
 */
function signIn<Deps extends PortalDeps>(deps: Deps, ofWings: readonly PortalPage<Deps>[]): RequestHandler {
  const assertScopes = (scopes: ReadonlySet<string>) => {
    if (!scopes.has("voucher.read") || scopes.has("voucher.redeem")) throw new AppError("portal_needs_read_key");
  };
  return async (request, response, next) => {
    response.setHeader("WWW-Authenticate", 'Basic realm="Portal", charset="UTF-8"');
    const secret = basicCredentials(request)?.password;
    const scopes = await admitKey(deps, request, response, { secret, assertScopes, limiter: deps.limits.read });
    response.removeHeader("WWW-Authenticate");
    const further = ofWings.filter((page) => page.isOpenTo(deps, scopes));
    const caller = Object.assign(callerOf(response), { further, shown: deps.config.basePath + request.path });
    if (wantsPage(response)) {
      // Read now, because Express forgets the path's parameters before an error page. An order's path contains no code.
      const { externalRef = request.query.externalRef } = request.params;
      const entered = typeof externalRef === "string" ? externalRef : "";
      response.locals.errorPage = (refusal, status, requestId, language) => {
        const top = renderTop(deps.config, { ...caller, locale: localeIn(language) }, entered);
        return renderErrorPage(deps.config, refusal, status, requestId, language, { top });
      };
    }
    next();
  };
}

/** The page of an order. @throws AppError `redemption_not_found`. */
async function showOrder<Deps extends PortalDeps>(
  deps: Deps,
  caller: PortalCaller,
  externalRef: string,
  ofWings: readonly OrderPart<Deps>[],
): Promise<Html> {
  const { organizationId } = caller;
  const found = await findRedemption(deps, caller, externalRef);
  if (found === null) throw new AppError("redemption_not_found");
  const history = await deps.portalReads(caller, () =>
    readVoucherHistory(deps, organizationId, found.voucherInstanceId),
  );
  const { redemption } = history;
  if (redemption === null) throw new AppError("redemption_not_found");
  const sections: Html[] = [];
  for (const { section } of ofWings) sections.push(await section(deps, caller, redemption.externalRef));
  const order = { history, redemption, priceUsd: found.discountPriceUsd, sections };
  return renderOrderPage(deps.config, caller, order);
}

/** The page of an order if the text names exactly one, otherwise a page of all vouchers that the text names. */
async function search(deps: PortalDeps, caller: PortalCaller, words: string): Promise<Html | string> {
  const [only, ...others] = words.trim() === "" ? [] : await findOrders(deps, caller, words);
  if (only?.externalRef && others.length === 0) return orderPath(deps.config, only.externalRef);
  return renderFoundPage(deps.config, caller, words, only === undefined ? [] : [only, ...others]);
}
