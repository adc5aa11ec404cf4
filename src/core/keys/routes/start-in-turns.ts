import type { IncomingMessage, RequestListener } from "node:http";
import { FairSlots } from "../../../platform/batching/fair-slots.ts";
import type { KeyAuthenticator } from "../authenticate-key.ts";

declare module "node:http" {
  interface IncomingMessage {
    /** When the request arrived, on the monotonic clock, if it did not start at once. Milliseconds. */
    arrivedAtMs?: number;
  }
}

/** Number of requests that start at once in each turn of the event loop. They take about ten milliseconds. */
const AT_ONCE = 64;
/** Number of further requests that start in each turn. One organization may have at most half of these starts. */
const IN_TURN = 128;

/**
 * Starts requests in turns. One turn of the event loop reads from all connections, so a thousand requests at once would
 * block the process for a tenth of a second. The first requests of a turn start at once. For further requests,
 * organizations take turns. All callers with a token count as one organization here, and so do all callers with a
 * password and all others.
 */
export function startInTurns({ keys }: { keys: KeyAuthenticator }, app: RequestListener): RequestListener {
  const slots = new FairSlots(IN_TURN);
  let started = 0;
  return (request, response) => {
    if (started === 0) setImmediate(() => (started = 0));
    started += 1;
    if (started <= AT_ONCE && slots.waiting === 0) return app(request, response);
    request.arrivedAtMs = performance.now();
    void slots.startInTurn(ownerOf(keys, request)).then(() => {
      // The caller has disconnected, so the request is not handled.
      if (!request.socket.destroyed) app(request, response);
    });
  };
}

/** The owner of a request: the organization of a key that worked before, or else the way in which a caller signs in. */
function ownerOf(keys: KeyAuthenticator, { headers }: IncomingMessage): string {
  const secret = headers["x-api-key"];
  const organizationId = typeof secret === "string" ? keys.known(secret)?.organizationId : null;
  return organizationId ?? /^(Basic|Bearer) /i.exec(headers.authorization ?? "")?.[1]?.toLowerCase() ?? "anyone";
}
