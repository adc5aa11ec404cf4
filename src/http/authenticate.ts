import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import type { Scope } from "../domain/api-keys.ts";
import { AppError } from "../domain/errors.ts";
import type { Caller } from "../services/caller.ts";
import type { Access } from "./access.ts";
import { refuseOften, spendLimit, spendRefusal } from "./spend-limit.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Set by {@link authenticate}. */
      caller?: Caller;
    }
  }
}

/** Partners with a key that has the scope. */
export function partnerKey(scope: Scope): Access<Caller> {
  return {
    security: [{ apiKey: [scope] }],
    errors: [
      "missing_key",
      "unknown_key",
      "key_without_organization",
      "address_not_allowed",
      "missing_scope",
      "rate_limited",
      "unavailable",
    ],
    guard: (ctx) => [authenticate(ctx, scope)],
    whoOf: callerOf,
  };
}

/** The limit that calls with a scope are counted in: reads cannot use up what moves need. */
const LIMIT_OF_SCOPE = { "voucher.read": "read", "voucher.redeem": "move" } as const satisfies Record<Scope, string>;

/**
 * Lets a request through whose `X-Api-Key` works, is bound to an organization, may be used from the caller's address, has the
 * scope and is within its limit. Checked in this order; the refusals are 401, 403, 403, 401 and 429 (contract, "Authentication"). Without
 * a good key, it is the refusals of the caller's address that are limited.
 */
function authenticate(ctx: Pick<ApiContext, "keys" | "limits">, scope: Scope): RequestHandler {
  const limiter = ctx.limits[LIMIT_OF_SCOPE[scope]];
  return async (request: Request, response: Response, next: NextFunction) => {
    const secret = request.get("x-api-key");
    if (secret === undefined || secret === "") {
      await spendRefusal(ctx, request, response);
      throw new AppError("missing_key", "Send your API key in the X-Api-Key header.");
    }
    const key = await ctx.keys.authenticate(secret, () => refuseOften(ctx, request, response));
    if (key === null) {
      await spendRefusal(ctx, request, response);
      throw new AppError("unknown_key", "This API key is not known or no longer works.");
    }
    response.locals.keyId = key.id;
    if (key.organizationId === null) {
      throw new AppError("key_without_organization", "This API key is not bound to an organization.");
    }
    response.locals.organizationId = key.organizationId;
    if (!key.allows(request.ip ?? "")) {
      throw new AppError("address_not_allowed", "This API key may not be used from your address.");
    }
    if (!key.scopes.has(scope)) {
      throw new AppError("missing_scope", `This API key lacks the scope ${scope}.`);
    }
    await spendLimit(response, limiter, key.id);
    response.locals.caller = { keyId: key.id, organizationId: key.organizationId };
    next();
  };
}

function callerOf(response: Response): Caller {
  const { caller } = response.locals;
  if (caller === undefined) throw new Error("the route is not authenticated");
  return caller;
}
