import type { Router } from "express";
import { AppError } from "../../contract/errors.ts";
import { findOrganization } from "../../db/catalog.ts";
import type { ApiContext } from "../../open-api.ts";
import { lookForFaults } from "../../services/ops/find-attention.ts";
import { type Overview, readOverview, viewOverview } from "../../services/ops/read-overview.ts";
import { sendPage } from "../pages/offer-page.ts";
import { headersOf } from "../pages/page-headers.ts";
import { OPS_PATH } from "./operator-frame.ts";
import { renderOverviewPage } from "./overview-page.ts";

/** How long a process shows the overview that it has read, so that many open pages cost no more than one. Milliseconds. */
const MAX_AGE_MS = 4_000;
/** How often faults are looked for while no page is open, so that it is known since when they exist. Milliseconds. */
const LOOK_EVERY_MS = 15_000;
/** Organizations whose overview a process remembers. */
const REMEMBERED_MAX = 50;

/** Mounts the overview as a page and as JSON. */
export function mountOverview(pages: Router, ctx: ApiContext): void {
  const read = openOverview(ctx);
  const looking = setInterval(() => {
    ctx
      .publicReads(() => lookForFaults(ctx, LOOK_EVERY_MS))
      .catch((error) => {
        ctx.log.debug({ err: error }, "cannot look for faults");
      });
  }, LOOK_EVERY_MS).unref();
  ctx.onClose(async () => clearInterval(looking));
  pages.get("/", overviewHeaders, async (request, response) => {
    response.locals.route = OPS_PATH;
    sendPage(response, 200, renderOverviewPage(ctx.config, await read(request.query.organization)));
  });
  pages.get("/overview.json", async (request, response) => {
    response.locals.route = `${OPS_PATH}/overview.json`;
    response.setHeader("Cache-Control", "no-store");
    response.json(viewOverview(await read(request.query.organization)));
  });
}

/** The page reads itself again. */
const overviewHeaders = headersOf({ "form-action": ["'self'"], "connect-src": ["'self'"] });

/** Returns a function that reads the overview of an organization, or of all for none. @throws AppError `not_found`, `overloaded`. */
function openOverview(ctx: ApiContext): (organization: unknown) => Promise<Overview> {
  const latest = new Map<string, { overview: Promise<Overview>; readAt: number }>();
  return async (organization) => {
    const id = typeof organization === "string" && !organization.includes("\0") ? organization : "";
    const known = latest.get(id);
    if (known !== undefined && performance.now() - known.readAt < MAX_AGE_MS) return known.overview;
    // Uses the connections of public reads, so that operators never take one that partners need.
    const overview = ctx.publicReads(async () => {
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
