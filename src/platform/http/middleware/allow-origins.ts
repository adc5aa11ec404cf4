import cors from "cors";
import type { RequestHandler } from "express";

/**
 * How long a browser may cache the response to a preflight. When an origin is removed from the list, its pages can
 * still send requests for this long. Seconds.
 */
const PREFLIGHT_MAX_AGE = 600;

/**
 * Lets pages of these origins call a route (https://fetch.spec.whatwg.org/#http-cors-protocol) and answers their
 * preflights. Other origins get no CORS header, so browsers do not show them the response. Cookies are not allowed,
 * because callers send their tokens in a header.
 */
export function allowOrigins(origins: readonly string[]): RequestHandler[] {
  if (origins.length === 0) return [];
  const allow = cors({
    origin: [...origins],
    methods: ["GET", "HEAD", "POST"],
    allowedHeaders: ["Authorization", "Content-Type", "X-Request-Id"],
    exposedHeaders: ["X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy"],
    maxAge: PREFLIGHT_MAX_AGE,
  });
  return [
    (request, response, next) => {
      // Tells caches that every response varies by origin. Otherwise a cache could give a listed origin a response
      // without CORS headers.
      response.vary("Origin");
      if (origins.includes(request.headers.origin ?? "")) allow(request, response, next);
      else next();
    },
  ];
}
