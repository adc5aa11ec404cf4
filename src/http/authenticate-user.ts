import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import { AppError } from "../domain/errors.ts";
import type { Access } from "./access.ts";

declare global {
  namespace Express {
    interface Locals {
      /** Set by {@link authenticateUser}: the subject of the user's token; null for an anonymous caller. */
      userId?: string | null;
    }
  }
}

/** Signed-in users, told by their subject. */
export const signedInUser: Access<string> = {
  security: [{ userToken: [] }],
  errors: ["missing_token", "invalid_token", "unavailable"],
  guard: (ctx) => [authenticateUser(ctx, false)],
  whoOf: userOf,
};

/** Signed-in users, and those without a token, who are null. */
export const anyUser: Access<string | null> = {
  security: [{ userToken: [] }, {}],
  errors: ["missing_token", "invalid_token", "unavailable"],
  guard: (ctx) => [authenticateUser(ctx, true)],
  whoOf: (response) => response.locals.userId ?? null,
};

/**
 * Lets a request through whose `Authorization: Bearer` token is good (RFC 6750), and, when `optional`, one without any. A bad
 * token is 401 either way: whoever sends one means to be somebody.
 */
function authenticateUser(ctx: Pick<ApiContext, "users">, optional: boolean): RequestHandler {
  return async (request: Request, response: Response, next: NextFunction) => {
    const header = request.get("authorization");
    if (header === undefined && optional) {
      response.locals.userId = null;
      return next();
    }
    response.setHeader("WWW-Authenticate", "Bearer");
    const token = /^Bearer +([^\s]+) *$/i.exec(header ?? "")?.[1];
    if (token === undefined) {
      throw new AppError("missing_token", "Send your token in the Authorization header, after the word Bearer.");
    }
    response.locals.userId = await ctx.users.authenticate(token);
    response.removeHeader("WWW-Authenticate");
    next();
  };
}

function userOf(response: Response): string {
  const { userId } = response.locals;
  if (userId === undefined || userId === null) throw new Error("the route is not authenticated");
  return userId;
}
