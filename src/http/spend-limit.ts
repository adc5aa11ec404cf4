import type { ServerResponse } from "node:http";
import type { Request, RequestHandler } from "express";
import type { ApiContext } from "../context.ts";
import { AppError } from "../domain/errors.ts";
import type { RateLimiter, Verdict } from "../limits/rate-limiter.ts";
import { networkOf } from "./caller-network.ts";

type Deps = Pick<ApiContext, "limits">;

/**
 * Takes one call from a limit and tells the caller how it stands, in the fields of draft-ietf-httpapi-ratelimit-headers-10. A limit that
 * is off is null and says nothing.
 * @throws AppError `rate_limited`.
 */
export async function spendLimit(response: ServerResponse, limiter: RateLimiter | null, id: string): Promise<void> {
  if (limiter !== null) show(response, limiter, await limiter.take(id));
}

/**
 * Takes one call from the limit of the caller's address, for what is open to anyone.
 * @throws AppError `rate_limited`.
 */
export function spendAddress(ctx: Deps, request: Request, response: ServerResponse): Promise<void> {
  return spendLimit(response, ctx.limits.address, networkOf(request.ip));
}

/** Limits a route that is open to anyone. */
export function limitAddress(ctx: Deps): RequestHandler {
  return async (request, response, next) => {
    await spendAddress(ctx, request, response);
    next();
  };
}

/**
 * Takes one refusal from the limit of the caller's address, for a caller without a good key or token.
 * @throws AppError `rate_limited`.
 */
export function spendRefusal(ctx: Deps, request: Request, response: ServerResponse): Promise<void> {
  return spendLimit(response, ctx.limits.refused, networkOf(request.ip));
}

/**
 * Refuses a caller whose address has used up its refusals, before work that only a good key or token is worth. Takes nothing.
 * @throws AppError `rate_limited`.
 */
export function refuseOften(ctx: Deps, request: Request, response: ServerResponse): void {
  const { refused } = ctx.limits;
  const refusal = refused?.findRefusal(networkOf(request.ip)) ?? null;
  if (refused !== null && refusal !== null) show(response, refused, refusal);
}

function show(response: ServerResponse, limiter: RateLimiter, { allowed, remaining, resetMs }: Verdict): void {
  const resetSeconds = Math.max(1, Math.ceil(resetMs / 1_000));
  response.setHeader("RateLimit-Policy", `"${limiter.name}";q=${limiter.limit};w=1`);
  response.setHeader("RateLimit", `"${limiter.name}";r=${remaining};t=${resetSeconds}`);
  if (allowed) return;
  throw new AppError("rate_limited", "There were too many requests. Please try again in a moment.", {
    retryAfterSeconds: resetSeconds,
  });
}
