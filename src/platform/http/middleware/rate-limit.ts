import type { ServerResponse } from "node:http";
import type { Request, RequestHandler } from "express";
import { AppError } from "../../api/errors.ts";
import type { Limits } from "../../limits/open-limits.ts";
import type { Allowance, RateLimiter } from "../../limits/rate-limiter.ts";
import { networkOf } from "./request-headers.ts";

/** The limits of addresses. */
export interface LimitingAddresses {
  limits: Pick<Limits, "address">;
}

/** The limits of callers whose authentication fails. */
export interface LimitingRefusals {
  limits: Pick<Limits, "refused">;
}

/**
 * Counts one request and sets the headers of draft-ietf-httpapi-ratelimit-headers-10. Without a limiter, does nothing.
 * @throws AppError `rate_limited`.
 */
export async function consumeRateLimit(
  response: ServerResponse,
  limiter: RateLimiter | null,
  id: string,
): Promise<void> {
  if (limiter !== null) applyAllowance(response, limiter, await limiter.take(id));
}

/** Counts one request of the caller's address, for routes that are open to anyone. @throws AppError `rate_limited`. */
export function consumeAddressLimit(
  deps: LimitingAddresses,
  request: Request,
  response: ServerResponse,
): Promise<void> {
  return consumeRateLimit(response, deps.limits.address, networkOf(request.ip));
}

/** Limits the requests of each address to routes that are open to anyone. */
export function limitAddress(deps: LimitingAddresses): RequestHandler {
  return async (request, response, next) => {
    await consumeAddressLimit(deps, request, response);
    next();
  };
}

/**
 * Counts one failed authentication of the caller's address. Call it only after the credentials were found wrong, so
 * that valid credentials from the same address are never refused.
 * @throws AppError `rate_limited`.
 */
export function consumeRefusalLimit(deps: LimitingRefusals, request: Request, response: ServerResponse): Promise<void> {
  return consumeRateLimit(response, deps.limits.refused, networkOf(request.ip));
}

function applyAllowance(
  response: ServerResponse,
  limiter: RateLimiter,
  { allowed, remaining, resetMs }: Allowance,
): void {
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1_000));
  response.setHeader("RateLimit-Policy", `"${limiter.name}";q=${limiter.limit};w=1`);
  response.setHeader("RateLimit", `"${limiter.name}";r=${remaining};t=${resetSeconds}`);
  if (!allowed) throw new AppError("rate_limited", undefined, { retryAfterSeconds: resetSeconds });
}
