import type { NextFunction, Request, RequestHandler, Response } from "express";
import { AppError } from "../../../platform/api/errors.ts";
import { markSandbox } from "../../../platform/api/fields.ts";
import type { Access, Tag } from "../../../platform/http/access.ts";
import { signalOf } from "../../../platform/http/middleware/caller-signal.ts";
import {
  consumeRateLimit,
  consumeRefusalLimit,
  type LimitingRefusals,
} from "../../../platform/http/middleware/rate-limit.ts";
import type { Limits } from "../../../platform/limits/open-limits.ts";
import type { RateLimiter } from "../../../platform/limits/rate-limiter.ts";
import type { Scope } from "../api-keys.ts";
import type { KeyAuthenticator } from "../authenticate-key.ts";
import type { Caller } from "../caller.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Set by {@link authenticate}. */
      caller?: Caller;
    }
  }
}

const TAG_OF: Record<Scope, Tag> = {
  "voucher.read": "Partner",
  "voucher.redeem": "Partner",
  "voucher.webhook": "Webhooks",
  "voucher.issue": "Issuer",
};

/** Partners whose key has the scope. Adds `sandbox: true` to every successful response to a sandbox key. */
export function partnerKey(scope: Scope): Access<Caller, KeyDeps> {
  return {
    tag: TAG_OF[scope],
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
    crossOrigin: false,
    guard: (deps) => [authenticate(deps, scope)],
    callerOf,
    extraFieldsOf: (response) => markSandbox(callerOf(response).sandbox),
  };
}

/** Partners whose sandbox key has the scope. Adds no `sandbox` to responses, because all are for sandboxes. */
export function sandboxKey(scope: Scope): Access<Caller, KeyDeps> {
  const { extraFieldsOf: _, ...access } = partnerKey(scope);
  return {
    ...access,
    tag: "Sandbox",
    errors: [...access.errors, "sandbox_only"],
    guard: (deps) => [...access.guard(deps), requireSandbox],
  };
}

const requireSandbox: RequestHandler = (_request, response, next) => {
  if (!callerOf(response).sandbox) throw new AppError("sandbox_only");
  next();
};

/** Admits a request whose `X-Api-Key` has the scope. {@link admitKey} lists the checks in their order. */
function authenticate(deps: KeyDeps, scope: Scope): RequestHandler {
  // There are two limits, so that reads, webhooks and issuing cannot use up the limit of reserve, redeem and release.
  const limiter = scope === "voucher.redeem" ? deps.limits.move : deps.limits.read;
  const assertScopes = (scopes: ReadonlySet<string>) => {
    if (!scopes.has(scope)) throw new AppError("missing_scope");
  };
  return async (request: Request, response: Response, next: NextFunction) => {
    await admitKey(deps, request, response, { secret: request.get("x-api-key"), assertScopes, limiter });
    next();
  };
}

interface AdmitDeps extends LimitingRefusals {
  keys: Pick<KeyAuthenticator, "authenticate">;
}

interface KeyDeps extends AdmitDeps {
  limits: Pick<Limits, "move" | "read" | "refused">;
}

/**
 * Admits a request after these checks, in this order. The key is known (else 401), is bound to an organization (403),
 * may be used from the caller's address (403), has the scopes that `assertScopes` wants, and is within its limit (429).
 * Failed authentications count against a limit of the caller's address. When that limit is reached, a right key is
 * still accepted. Stores the caller in the response's locals, and returns the key's scopes.
 */
export async function admitKey(
  deps: AdmitDeps,
  request: Request,
  response: Response,
  by: { secret?: string | undefined; assertScopes(scopes: ReadonlySet<string>): void; limiter: RateLimiter | null },
): Promise<ReadonlySet<string>> {
  if (by.secret === undefined || by.secret === "") {
    await consumeRefusalLimit(deps, request, response);
    throw new AppError("missing_key");
  }
  const { secret } = by;
  const look = () => deps.keys.authenticate(secret, request.ip);
  const key = await look();
  if (key === null) {
    await consumeRefusalLimit(deps, request, response);
    throw new AppError("unknown_key");
  }
  response.locals.keyId = key.id;
  if (key.organizationId === null) throw new AppError("key_without_organization");
  response.locals.organizationId = key.organizationId;
  if (!key.allows(request.ip ?? "")) throw new AppError("address_not_allowed");
  by.assertScopes(key.scopes);
  await consumeRateLimit(response, by.limiter, key.id);
  const stillHolds = async () => (await look()) !== null;
  response.locals.reader = { id: key.id, stillHolds };
  response.locals.caller = {
    keyId: key.id,
    organizationId: key.organizationId,
    sandbox: key.sandbox,
    capped: key.capped,
    issues: key.scopes.has("voucher.issue"),
    get signal() {
      return signalOf(response);
    },
  };
  return key.scopes;
}

/** The caller that the request's key identifies. */
export function callerOf(response: Response): Caller {
  const { caller } = response.locals;
  if (caller === undefined) throw new Error("the route does not authenticate partners");
  return caller;
}
