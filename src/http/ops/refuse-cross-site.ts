import type { Request, RequestHandler } from "express";
import { AppError } from "../../contract/errors.ts";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Refuses requests that a page of another site makes a browser send, except for safe methods. The checks are those of Go's
 * `http.CrossOriginProtection`: `Sec-Fetch-Site`, or in older browsers whether `Origin` is this host. A request with neither header does
 * not come from a browser.
 * @throws AppError `cross_site`.
 */
export const refuseCrossSite: RequestHandler = (request, _response, next) => {
  if (!SAFE_METHODS.includes(request.method) && !isFromThisSite(request)) throw new AppError("cross_site");
  next();
};

function isFromThisSite(request: Request): boolean {
  const site = request.get("sec-fetch-site");
  if (site !== undefined) return site === "same-origin" || site === "none";
  const origin = request.get("origin");
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === request.host);
}
