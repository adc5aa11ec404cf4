import type { Request, RequestHandler, Response, Router } from "express";
import helmet from "helmet";
import type { ApiContext } from "../../context.ts";
import { AppError } from "../../domain/errors.ts";
import { prefersPage } from "../pages/offer-page.ts";
import { mount } from "../route.ts";
import { spendRefusal } from "../spend-limit.ts";
import { DASHBOARD_PATH } from "./dashboard-path.ts";
import { loginRoute, logoutRoute } from "./login.ts";
import { OperatorSessions } from "./operator-sessions.ts";
import { refuseCrossSite } from "./refuse-cross-site.ts";

/** Mounts the queue dashboard and its login, or nothing where there is no OPS_TOKEN. */
export function mountDashboard(router: Router, ctx: ApiContext): void {
  const { ops, baseUrl } = ctx.config;
  if (ops.token === null) return;
  const sessions = new OperatorSessions(ops.token, baseUrl.startsWith("https:"));
  mount(router, loginRoute(ctx, sessions));
  mount(router, logoutRoute(ctx, sessions));
  router.use(
    DASHBOARD_PATH,
    dashboardHeaders,
    requireSession(ctx, sessions),
    refuseCrossSite,
    refuseWrites(ctx),
    openBoard(ctx),
  );
}

/** As strict as bull-board can be served: it sets its base address and writes styles into its elements. Its web font stays out. */
const dashboardHeaders = helmet({
  contentSecurityPolicy: {
    useDefaults: false,
    directives: {
      "default-src": ["'none'"],
      "script-src": ["'self'"],
      "style-src": ["'self'", "'unsafe-inline'"],
      "img-src": ["'self'", "data:"],
      "font-src": ["'self'"],
      "connect-src": ["'self'"],
      "form-action": ["'none'"],
      "base-uri": ["'self'"],
      "frame-ancestors": ["'none'"],
    },
  },
  referrerPolicy: { policy: "same-origin" },
  xFrameOptions: { action: "deny" },
  originAgentCluster: false,
  strictTransportSecurity: false,
});

/** Lets operators through. Others who open a page are sent to the login; what a script asks for is refused. */
function requireSession(ctx: ApiContext, sessions: OperatorSessions): RequestHandler {
  const { config } = ctx;
  return async (request, response, next) => {
    response.locals.route = DASHBOARD_PATH;
    // The board's own files are everybody's.
    if (!request.path.startsWith("/static/")) response.setHeader("Cache-Control", "no-store");
    if (await sessions.isOpen(request)) return next();
    await spendRefusal(ctx, request, response);
    if (isPageView(request)) return response.redirect(303, `${config.basePath}/ops/login`);
    throw new AppError("no_session", `Sign in at ${config.basePath}/ops/login first.`);
  };
}

function isPageView(request: Request): boolean {
  return request.method === "GET" && !request.path.startsWith("/api/") && prefersPage(request);
}

/** Holds a read-only dashboard to reading, whatever bull-board makes of a request. */
function refuseWrites({ config }: ApiContext): RequestHandler {
  return (request, response, next) => {
    if (config.ops.writable || ["GET", "HEAD"].includes(request.method)) return next();
    response.setHeader("Allow", "GET, HEAD");
    throw new AppError("method_not_allowed", "The dashboard is read-only here.");
  };
}

/** Hands over to the board, which is loaded and connected by the first operator who looks. */
function openBoard(ctx: ApiContext): RequestHandler {
  let board: RequestHandler | undefined;
  return async (request: Request, response: Response, next) => {
    board ??= await loadBoard(ctx);
    board(request, response, next);
  };
}

async function loadBoard(ctx: ApiContext): Promise<RequestHandler> {
  const [{ buildBoard }, views] = await Promise.all([
    import("./board.ts"),
    ctx.queueViews.open().catch((cause: unknown) => {
      throw new AppError("unavailable", "Redis does not answer at the moment.", { cause, retryAfterSeconds: 2 });
    }),
  ]);
  return buildBoard(views, ctx.config);
}
