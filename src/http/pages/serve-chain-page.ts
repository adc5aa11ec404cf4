import type { RequestHandler } from "express";
import { eventsPageQuery } from "../../contract/events.ts";
import type { ApiContext } from "../../open-api.ts";
import { readPublicChain } from "../../services/chain/read-chain.ts";
import { findCheckpoint } from "../../services/log/read-log.ts";
import { validate } from "../endpoint.ts";
import { consumeAddressLimit } from "../middleware/rate-limit.ts";
import { renderChainPage } from "./chain-page.ts";
import { sendPage, wantsPage } from "./offer-page.ts";

/** `GET /integrity/events/{entityType}/{entityId}` as a page for people, with the same content as the JSON. */
export function showChainPage(ctx: ApiContext): RequestHandler<{ entityType: string; entityId: string }> {
  return async (request, response, next) => {
    if (!wantsPage(response)) return next();
    response.locals.route = "/integrity/events/:entityType/:entityId";
    await consumeAddressLimit(ctx, request, response);
    const { entityType, entityId } = request.params;
    const { after, limit } = validate(eventsPageQuery, request.query);
    // Also reads the event before the page, which the page's first event links to.
    const overlap = Math.min(after, 1);
    const chain = await readPublicChain(ctx, entityType, entityId, { after: after - overlap, limit: limit + overlap });
    const before = chain.events[0]?.sequence === after ? (chain.events.shift() ?? null) : null;
    const checkpoint = await findCheckpoint(ctx);
    sendPage(response, 200, renderChainPage(ctx.config, { chain, before, after, limit, checkpoint }));
  };
}
