import type { NextFunction, Request, RequestHandler, Response } from "express";
import { AppError } from "../../../platform/api/errors.ts";
import type { Access } from "../../../platform/http/access.ts";
import {
  consumeAddressLimit,
  consumeRateLimit,
  consumeRefusalLimit,
} from "../../../platform/http/middleware/rate-limit.ts";
import type { Limits } from "../../../platform/limits/open-limits.ts";
import type { UserAuthenticator } from "../authenticate-user.ts";

interface UserDeps {
  users: Pick<UserAuthenticator, "authenticate">;
  limits: Pick<Limits, "browse" | "take" | "address" | "refused">;
}

/** Signed-in users, identified by the subject of their token. */
export const signedInUser: Access<string, UserDeps> = {
  tag: "Marketplace",
  security: [{ userToken: [] }],
  errors: ["missing_token", "invalid_token", "rate_limited", "unavailable"],
  crossOrigin: true,
  guard: (deps) => [authenticateUser(deps, false)],
  callerOf: userOf,
};

/** Signed-in users, and anonymous callers. */
export const anyUser: Access<string | null, UserDeps> = {
  ...signedInUser,
  security: [{ userToken: [] }, {}],
  guard: (deps) => [authenticateUser(deps, true)],
  callerOf: (response) => response.locals.userId ?? null,
};

/**
 * Admits a request with a valid `Authorization: Bearer` token (RFC 6750), or, when `optional`, without the header. A
 * user has one limit for browsing, where the token is optional, and another for acquisitions. Anonymous requests and
 * failed ones count against limits of the caller's address.
 */
function authenticateUser(deps: UserDeps, optional: boolean): RequestHandler {
  const limiter = optional ? deps.limits.browse : deps.limits.take;
  return async (request: Request, response: Response, next: NextFunction) => {
    const header = request.get("authorization");
    if (header === undefined && optional) {
      await consumeAddressLimit(deps, request, response);
      response.locals.userId = null;
      return next();
    }
    const refuse = async (error: AppError): Promise<never> => {
      await consumeRefusalLimit(deps, request, response);
      response.setHeader("WWW-Authenticate", "Bearer");
      throw error;
    };
    const token = /^Bearer +(\S+) *$/i.exec(header ?? "")?.[1];
    if (token === undefined) return refuse(new AppError("missing_token"));
    const userId = await deps.users.authenticate(token, request.ip).catch((error: unknown) => {
      if (error instanceof AppError && error.code === "invalid_token") return refuse(error);
      throw error;
    });
    response.locals.userId = userId;
    await consumeRateLimit(response, limiter, userId);
    next();
  };
}

function userOf({ locals: { userId } }: Response): string {
  if (userId === undefined || userId === null) throw new Error("the route does not authenticate users");
  return userId;
}
