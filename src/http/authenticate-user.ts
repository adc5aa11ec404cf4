import type { NextFunction, Request, RequestHandler, Response } from "express";
import type { ApiContext } from "../context.ts";
import { AppError } from "../domain/errors.ts";
import type { Access } from "./access.ts";
import { refuseOften, spendAddress, spendLimit, spendRefusal } from "./spend-limit.ts";

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
  errors: ["missing_token", "invalid_token", "rate_limited", "unavailable"],
  guard: (ctx) => [authenticateUser(ctx, false)],
  whoOf: userOf,
};

/** Signed-in users, and those without a token, who are null. */
export const anyUser: Access<string | null> = {
  security: [{ userToken: [] }, {}],
  errors: ["missing_token", "invalid_token", "rate_limited", "unavailable"],
  guard: (ctx) => [authenticateUser(ctx, true)],
  whoOf: (response) => response.locals.userId ?? null,
};

/**
 * Lets a request through whose `Authorization: Bearer` token is good (RFC 6750), and, when `optional`, one without any. A bad
 * token is 401 either way: whoever sends one means to be somebody. Then 429, by the user's limit: of browsing where the token is
 * optional, else of taking. Without a token it is the caller's address that is limited, and for want of a good one the refusals of it.
 */
function authenticateUser(ctx: Pick<ApiContext, "users" | "limits">, optional: boolean): RequestHandler {
  const limiter = optional ? ctx.limits.browse : ctx.limits.take;
  return async (request: Request, response: Response, next: NextFunction) => {
    const header = request.get("authorization");
    if (header === undefined && optional) {
      await spendAddress(ctx, request, response);
      response.locals.userId = null;
      return next();
    }
    const refuse = async (error: AppError): Promise<never> => {
      await spendRefusal(ctx, request, response);
      response.setHeader("WWW-Authenticate", "Bearer");
      throw error;
    };
    const token = /^Bearer +([^\s]+) *$/i.exec(header ?? "")?.[1];
    if (token === undefined) {
      return refuse(
        new AppError("missing_token", "Send your token in the Authorization header, after the word Bearer."),
      );
    }
    // Whoever floods with bad tokens gets no more of them verified.
    refuseOften(ctx, request, response);
    const userId = await ctx.users.authenticate(token).catch((error: unknown) => {
      if (error instanceof AppError && error.code === "invalid_token") return refuse(error);
      throw error;
    });
    await spendLimit(response, limiter, userId);
    response.locals.userId = userId;
    next();
  };
}

function userOf(response: Response): string {
  const { userId } = response.locals;
  if (userId === undefined || userId === null) throw new Error("the route is not authenticated");
  return userId;
}
