import { type RequestHandler, Router } from "express";
import { isAllowed } from "../acts/operator-role.ts";
import { offerPage } from "../pages/error-page.ts";
import type { Site } from "../pages/layout.ts";
import { frameErrors } from "../pages/operator-frame.ts";
import { headersOf } from "../pages/page-headers.ts";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import { speakEnglish } from "../platform/http/middleware/reader-language.ts";
import type { QueueViews } from "../platform/queues/queue-views.ts";
import { isRedisUnavailable } from "../platform/redis/connections.ts";
import { CREDENTIALS_ROLE } from "./roles.ts";
import {
  type AuthenticatingDeps,
  authenticateOperator,
  refuseAllWrites,
  skipUnlessOpen,
} from "./sign-in/authenticate-operator.ts";
import { operatorOf, requireRole } from "./sign-in/signed-in.ts";

const DASHBOARD_PATH = "/ops/queues/jobs";

interface DashboardDeps extends AuthenticatingDeps {
  config: Site & Pick<Config, "ops">;
  queueViews: Pick<QueueViews, "open">;
}

/** Mounts the dashboard of single jobs, for every operator. Mounts nothing with OPS_TOKEN=off. */
export function mountDashboard(router: Router, ctx: DashboardDeps): void {
  if (ctx.config.ops.isOff) return;
  const guarded = Router({ caseSensitive: true });
  guarded.use(
    skipUnlessOpen(ctx),
    dashboardHeaders,
    describeResponse,
    speakEnglish,
    offerPage(ctx.config),
    authenticateOperator(ctx),
    frameErrors(ctx.config),
    requireRole("viewer"),
    refuseAllWrites("This page is read-only. Queues are changed on /ops/queues."),
    openBoard(ctx),
  );
  router.use(DASHBOARD_PATH, guarded);
}

/** The strictest policy with which bull-board works: bull-board sets a base URL and uses inline styles. */
const dashboardHeaders = headersOf({
  "style-src": ["'self'", "'unsafe-inline'"],
  "img-src": ["'self'", "data:"],
  "font-src": ["'self'"],
  "connect-src": ["'self'"],
  "base-uri": ["'self'"],
});

/** Names the route for logs and metrics. Forbids caching, except of the board's static files. */
const describeResponse: RequestHandler = (request, response, next) => {
  response.locals.route = DASHBOARD_PATH;
  if (!request.path.startsWith("/static/")) response.setHeader("Cache-Control", "no-store");
  next();
};

/** Passes requests to one board for viewers and another board for higher roles. Loads a board at its first request. */
function openBoard(ctx: DashboardDeps): RequestHandler {
  const boards = new Map<boolean, RequestHandler>();
  return async (request, response, next) => {
    const seesCredentials = isAllowed(operatorOf(request).role, CREDENTIALS_ROLE);
    const board = boards.get(seesCredentials) ?? (await loadBoard(ctx, seesCredentials));
    boards.set(seesCredentials, board);
    board(request, response, (error: unknown) => next(isRedisUnavailable(error) ? noRedis(error) : error));
  };
}

function noRedis(cause: unknown): AppError {
  return new AppError("unavailable", "Redis does not answer at the moment.", { cause });
}

async function loadBoard(ctx: DashboardDeps, seesCredentials: boolean): Promise<RequestHandler> {
  // Loads bull-board before the first request to Redis. Loading blocks the event loop, and Redis would seem not to
  // answer.
  const { buildBoard } = await import("./board.ts");
  const views = await ctx.queueViews.open().catch((cause: unknown) => {
    throw noRedis(cause);
  });
  return buildBoard(views, ctx.config, seesCredentials);
}
