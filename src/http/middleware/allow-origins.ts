import cors from "cors";
import type { RequestHandler } from "express";

/** How long a browser may keep the answer to a preflight, and so go on calling after an origin was removed. Seconds. */
const PREFLIGHT_MAX_AGE = 600;

/**
 * Lets pages of these origins call a route (https://fetch.spec.whatwg.org/#http-cors-protocol) and answers their preflights. Other
 * origins get no CORS header, so browsers refuse them. No cookies: callers send their tokens themselves.
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
      // Also without a listed origin, because a cache must not give such a response to a listed one.
      response.vary("Origin");
      if (origins.includes(request.headers.origin ?? "")) allow(request, response, next);
      else next();
    },
  ];
}
