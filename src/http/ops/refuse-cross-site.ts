import type { Request, RequestHandler } from "express";
import { AppError } from "../../contract/errors.ts";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Refuses changes that a page of another site makes a browser send, as Go's `http.CrossOriginProtection` does: by `Sec-Fetch-Site`, or by
 * `Origin` in older browsers. A request with neither does not come from a browser.
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
