import type { IncomingMessage, RequestListener } from "node:http";
import { FairSlots } from "../../../platform/batching/fair-slots.ts";
import type { KeyAuthenticator } from "../authenticate-key.ts";

declare module "node:http" {
  interface IncomingMessage {
    /** When the request arrived, if it did not start at once, on the monotonic clock. Milliseconds. */
    arrivedAtMs?: number;
  }
}

/** Requests that start as soon as they are read, in one turn of the event loop. They take about ten milliseconds. */
const AT_ONCE = 64;
/** Further requests that start in one turn. One owner has half of these starts. */
const IN_TURN = 128;

/**
 * Starts requests in turns: a turn of the event loop reads from all connections, and a thousand requests together would
 * stop the process for a tenth of a second. After the first starts of a turn, organizations take turns with each other
 * and with all users and visitors.
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
      // A request whose caller has left is not handled.
      if (!request.socket.destroyed) app(request, response);
    });
  };
}

/**
 * The organization of a key that worked before; otherwise, how the caller signs in. All callers with unknown keys share
 * one turn.
 */
function ownerOf(keys: KeyAuthenticator, { headers }: IncomingMessage): string {
  const secret = headers["x-api-key"];
  const organizationId = typeof secret === "string" ? keys.known(secret)?.organizationId : null;
  return organizationId ?? /^(Basic|Bearer) /i.exec(headers.authorization ?? "")?.[1]?.toLowerCase() ?? "anyone";
}
