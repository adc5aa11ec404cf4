import type { Request, RequestHandler } from "express";
import { AppError } from "../../domain/errors.ts";

const SAFE_METHODS = ["GET", "HEAD", "OPTIONS"];

/**
 * Refuses what a page of another site makes a browser send, unless the method changes nothing. Asks what Go's
 * `http.CrossOriginProtection` asks: `Sec-Fetch-Site`, and of browsers too old to send it whether `Origin` is this host. What says
 * neither is no browser.
 * @throws AppError `cross_site`.
 */
export const refuseCrossSite: RequestHandler = (request, _response, next) => {
  if (!SAFE_METHODS.includes(request.method) && !isFromThisSite(request)) {
    throw new AppError("cross_site", "This was sent from a page of another site.");
  }
  next();
};

function isFromThisSite(request: Request): boolean {
  const site = request.get("sec-fetch-site");
  if (site !== undefined) return site === "same-origin" || site === "none";
  const origin = request.get("origin");
  return origin === undefined || (URL.canParse(origin) && new URL(origin).host === request.host);
}
