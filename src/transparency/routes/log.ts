import { type DepsOf, getRoute, type Route } from "../../platform/http/endpoint.ts";
import { type Visitor, visitorOf } from "../../platform/http/middleware/caller-signal.ts";
import { TEXT } from "../../platform/http/respond.ts";
import { readPublished, readTile } from "../read-log.ts";

/** A tile never changes. */
const FOR_EVER = "public, max-age=31536000, immutable";
/** The served checkpoint may change every second. */
const FOR_A_SECOND = "public, max-age=1";

/** Serves the log to anyone (C2SP tlog-tiles). Caches may store it, and pages of all origins may read it. */
export function tlogRoutes(deps: DepsOf<typeof readPublished>): Route[] {
  const serve = (
    path: string,
    read: (visitor: Visitor, path: string) => Promise<Uint8Array | string>,
    type: string,
    caching: string,
  ) =>
    getRoute(path, async (request, response) => {
      const content = await read(visitorOf(request, response), request.path.slice("/log/".length));
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("Cache-Control", caching);
      response.setHeader("Content-Type", type);
      response.end(request.method === "HEAD" ? undefined : content);
    });
  return [
    serve("/log/checkpoint", async (visitor) => (await readPublished(deps, visitor)).note, TEXT, FOR_A_SECOND),
    serve("/log/policy", async (visitor) => (await readPublished(deps, visitor)).policy, TEXT, FOR_A_SECOND),
    serve("/log/tile/*path", (visitor, path) => readTile(deps, visitor, path), "application/octet-stream", FOR_EVER),
  ];
}
