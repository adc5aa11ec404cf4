import type { ApiContext } from "../../context.ts";
import { readPublicChain } from "../../services/read-chain.ts";
import { eventsQuery } from "../fields.ts";
import { answer, type Route } from "../route.ts";
import { validate } from "../validate.ts";

/** GET /integrity/events/{entityType}/{entityId}: open to anyone; without payloads, because payloads carry codes. */
export function publicEventsRoute(ctx: ApiContext): Route {
  return {
    path: "/integrity/events/:entityType/:entityId",
    methods: {
      get: [
        answer((request) => {
          const { entityType, entityId } = request.params;
          return readPublicChain(ctx, String(entityType), String(entityId), validate(eventsQuery, request.query));
        }),
      ],
    },
  };
}
