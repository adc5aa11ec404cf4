import type { IncomingMessage, RequestListener } from "node:http";
import { startsPerTurn } from "../../../platform/batching/starts-per-turn.ts";
import type { KeyAuthenticator } from "../authenticate-key.ts";

declare module "node:http" {
  interface IncomingMessage {
    /** When the request arrived, if it did not start at once, on the monotonic clock. Milliseconds. */
    arrivedAtMs?: number;
  }
}

/** Requests that start in one turn of the event loop. They take about ten milliseconds. */
const STARTS_PER_TURN = 64;

/**
 * Starts requests in turns: a turn of the event loop reads from all connections, and a thousand requests together would
 * stop the process for a tenth of a second. While more requests wait than start in a turn, organizations take turns
 * with each other, and with all users and visitors.
 */
export function startInTurns({ keys }: { keys: KeyAuthenticator }, app: RequestListener): RequestListener {
  const start = startsPerTurn(STARTS_PER_TURN);
  return (request, response) =>
    start(
      () => {
        // A request whose caller has left is not handled.
        if (!request.socket.destroyed) app(request, response);
      },
      () => {
        request.arrivedAtMs = performance.now();
        return ownerOf(keys, request);
      },
    );
}

/**
 * The organization of a key that worked before; otherwise, how the caller signs in. All callers with unknown keys share
 * one turn.
 */
function ownerOf(keys: KeyAuthenticator, { headers }: IncomingMessage): string {
  const secret = headers["x-api-key"];
  const organizationId = typeof secret === "string" ? keys.knownOrganization(secret) : null;
  return organizationId ?? /^(Basic|Bearer) /i.exec(headers.authorization ?? "")?.[1]?.toLowerCase() ?? "anyone";
}
