import type { Request, RequestHandler, Response } from "express";
import { isExpiredToken } from "../../core/keys/authenticate-user.ts";
import type { ApiMetrics } from "../../core/metrics/metrics.ts";
import { AppError } from "../../platform/api/errors.ts";
import type { Config } from "../../platform/config.ts";
import { consumeRefusalLimit, type LimitingRefusals } from "../../platform/http/middleware/rate-limit.ts";
import type { OperatorSignIn } from "./operator-sign-in.ts";

export interface AuthenticatingDeps extends LimitingRefusals {
  signIn: Pick<OperatorSignIn, "isOpen" | "findCredentials" | "verify">;
  metrics: Pick<ApiMetrics, "signInsFailed"> | null;
}

/** While there is no way to sign in, skips the router of the operator pages as if it did not exist. */
export function skipUnlessOpen({ signIn }: Pick<AuthenticatingDeps, "signIn">): RequestHandler {
  return async (_request, _response, next) => ((await signIn.isOpen()) ? next() : next("router"));
}

/**
 * Admits operators who sign in with HTTP Basic (RFC 7617) or with the JWT that a proxy adds. HTTP Basic has a named
 * operator's name and token, or any name and OPS_TOKEN. Tokens and JWTs are too long to guess, so after many wrong
 * attempts from an address, a correct one is still admitted.
 * @throws AppError `missing_password`, `wrong_password`, `invalid_token`, `missing_role`, `unavailable`; `rate_limited`
 * instead of a 401 after too many failed sign-ins from the address.
 */
export function authenticateOperator(ctx: AuthenticatingDeps): RequestHandler {
  const refuse = async (request: Request, response: Response, scheme: string, error: AppError): Promise<never> => {
    await consumeRefusalLimit(ctx, request, response);
    response.setHeader("WWW-Authenticate", scheme);
    throw error;
  };
  return async (request, response, next) => {
    const given = ctx.signIn.findCredentials(request);
    if (given === null) return refuse(request, response, BASIC, new AppError("missing_password"));
    const operator = await ctx.signIn.verify(given, request.ip).catch((error: unknown) => {
      if (!(error instanceof AppError && error.code === "invalid_token")) throw error;
      // An expired JWT is not counted as a failed sign-in, because open pages keep reloading after their JWT has
      // expired.
      if (!isExpiredToken(error)) ctx.metrics?.signInsFailed.with().inc();
      return refuse(request, response, BEARER, error);
    });
    if (operator === null) {
      ctx.metrics?.signInsFailed.with().inc();
      return refuse(request, response, BASIC, new AppError("wrong_password"));
    }
    response.locals.operator = operator;
    response.locals.reader = { id: `${operator.by} ${operator.name}`, stillHolds: operator.stillHolds };
    next();
  };
}

const BASIC = 'Basic realm="Operators", charset="UTF-8"';
/** With this challenge, browsers do not ask for a password. The proxy signs people in. */
const BEARER = 'Bearer error="invalid_token"';

/** Answers 401, so that browsers forget the stored password. */
export const signOut: RequestHandler = (_request, response) => {
  response.setHeader("WWW-Authenticate", BASIC);
  throw new AppError("missing_password", "You are signed out. To sign in again, enter your name and token.");
};

/** Refuses every request except reads, with this sentence. */
export function refuseAllWrites(sentence: string): RequestHandler {
  return (request, response, next) => {
    if (["GET", "HEAD"].includes(request.method)) return next();
    response.setHeader("Allow", "GET, HEAD");
    throw new AppError("method_not_allowed", sentence);
  };
}

/** Refuses writes with this sentence if OPS_WRITABLE is not true. */
export function refuseWrites({ config }: { config: Pick<Config, "ops"> }, sentence: string): RequestHandler {
  return config.ops.writable ? (_request, _response, next) => next() : refuseAllWrites(sentence);
}
