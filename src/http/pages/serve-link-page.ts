import type { RequestHandler } from "express";
import type { ApiContext } from "../../open-api.ts";
import { viewLink } from "../../services/marketplace/view-link.ts";
import { pathId } from "../endpoint.ts";
import { consumeAddressLimit } from "../middleware/rate-limit.ts";
import { renderLinkPage } from "./link-page.ts";
import { sendPage, wantsPage } from "./offer-page.ts";

/** `GET /r/{code}`: the page of a referral link. A request that does not accept a page gets 404. */
export function showLinkPage(ctx: ApiContext): RequestHandler<{ code: string }> {
  return async (request, response, next) => {
    if (!wantsPage(response)) return next();
    response.locals.route = "/r/:code";
    await consumeAddressLimit(ctx, request, response);
    const code = pathId(request.params.code);
    sendPage(response, 200, renderLinkPage(ctx.config, code, await viewLink(ctx, code)));
  };
}
