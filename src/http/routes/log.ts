import { TEXT } from "../../contract/receipt.ts";
import type { ApiContext } from "../../open-api.ts";
import { readPublished, readTile } from "../../services/log/read-log.ts";
import { getRoute, type Route } from "../endpoint.ts";
import { limitAddress } from "../middleware/rate-limit.ts";

/** A tile never changes. */
const FOR_EVER = "public, max-age=31536000, immutable";
/** A new checkpoint may be served every second. */
const FOR_A_SECOND = "public, max-age=1";

/** Serves the log in the format C2SP tlog-tiles to anyone. Caches may store the responses, and pages of every origin may read them. */
export function logRoutes(ctx: ApiContext): Route[] {
  const serve = (path: string, read: (path: string) => Promise<Uint8Array | string>, type: string, caching: string) =>
    getRoute(path, limitAddress(ctx), async (request, response) => {
      const content = await read(request.path.slice("/log/".length));
      response.setHeader("Access-Control-Allow-Origin", "*");
      response.setHeader("Cache-Control", caching);
      response.setHeader("Content-Type", type);
      response.end(request.method === "HEAD" ? undefined : content);
    });
  return [
    serve("/log/checkpoint", async () => (await readPublished(ctx)).note, TEXT, FOR_A_SECOND),
    serve("/log/policy", async () => (await readPublished(ctx)).policy, TEXT, FOR_A_SECOND),
    serve("/log/tile/*path", (path) => readTile(ctx, path), "application/octet-stream", FOR_EVER),
  ];
}
