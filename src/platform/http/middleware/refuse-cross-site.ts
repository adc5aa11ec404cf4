import type { Request, RequestHandler } from "express";
import { AppError } from "../../api/errors.ts";

/**
 * Refuses requests that a page of another site makes a browser send. The browser would add the stored password. Changes
 * are refused by the rule of Go's `http.CrossOriginProtection`: by `Sec-Fetch-Site`, or by `Origin` in older browsers.
 * A read is accepted only if a person navigates to it, because an image or a frame of another site must not leave audit
 * entries or use up limits. A request with neither header does not come from a browser, so it is accepted. `Origin`
 * may name the service's public address, because a proxy may have changed Host.
 * @throws AppError `cross_site`.
 */
export function refuseCrossSite({ baseUrl }: { baseUrl: string }): RequestHandler {
  const ownOrigin = new URL(baseUrl).origin;
  return (request, _response, next) => {
    if (!isFromThisSite(request, ownOrigin) && !isNavigation(request)) throw new AppError("cross_site");
    next();
  };
}

function isFromThisSite(request: Request, ownOrigin: string): boolean {
  const site = request.get("sec-fetch-site");
  if (site !== undefined) return site === "same-origin" || site === "none";
  const origin = request.get("origin");
  if (origin === undefined || origin === ownOrigin) return true;
  return URL.canParse(origin) && new URL(origin).host === request.host;
}

/** Whether the browser shows the response as a page of its own, not as a part of another page. */
function isNavigation(request: Request): boolean {
  return ["GET", "HEAD"].includes(request.method) && request.get("sec-fetch-dest") === "document";
}
