import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import type { Scope } from "../domain/api-keys.ts";
import { AppError } from "../domain/errors.ts";
import type { Caller } from "../services/caller.ts";
import type { Access } from "./access.ts";

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
      "unavailable",
    ],
    guard: (ctx) => [authenticate(ctx, scope)],
    whoOf: callerOf,
  };
}

/**
 * Lets a request through whose `X-Api-Key` works, is bound to an organization, may be used from the caller's address and has the
 * scope. Checked in this order; the refusals are 401, 403, 403 and 401 (contract, "Authentication").
 */
function authenticate(ctx: Pick<ApiContext, "keys">, scope: Scope): RequestHandler {
  return async (request: Request, response: Response, next: NextFunction) => {
    const secret = request.get("x-api-key");
    if (secret === undefined || secret === "") {
      throw new AppError("missing_key", "Send your API key in the X-Api-Key header.");
    }
    const key = await ctx.keys.authenticate(secret);
    if (key === null) throw new AppError("unknown_key", "This API key is not known or no longer works.");
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
    response.locals.caller = { keyId: key.id, organizationId: key.organizationId };
    next();
  };
}

function callerOf(response: Response): Caller {
  const { caller } = response.locals;
  if (caller === undefined) throw new Error("the route is not authenticated");
  return caller;
}
