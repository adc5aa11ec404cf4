import { hash, timingSafeEqual } from "node:crypto";
import { parse } from "basic-auth";
import type { RequestHandler } from "express";
import { RateLimiterMemory } from "rate-limiter-flexible";
import { AppError } from "../platform/api/errors.ts";
import type { Config } from "../platform/config.ts";
import { consumeRefusalLimit, type LimitingRefusals } from "../platform/http/middleware/rate-limit.ts";
import { networkOf } from "../platform/http/middleware/request-headers.ts";

/**
 * Wrong passwords that each process allows per address in 15 minutes. Only keeps the log short: OPS_TOKEN is too long
 * to guess.
 */
const WRONG_PASSWORDS_MAX = 10;
const WRONG_PASSWORDS_SECONDS = 900;

/** Longest user name in an audit entry. Characters. */
const NAME_MAX = 100;

/**
 * Accepts requests whose password (HTTP Basic, RFC 7617) is OPS_TOKEN, with any user name.
 * @throws AppError `missing_password`, `wrong_password`; `rate_limited` after too many wrong passwords from the
 * address.
 */
export function authenticateOperator(ctx: LimitingRefusals, token: string): RequestHandler {
  const tokenDigest = digest(token);
  const wrongPasswords = new RateLimiterMemory({ points: WRONG_PASSWORDS_MAX, duration: WRONG_PASSWORDS_SECONDS });
  return async (request, response, next) => {
    const password = parse(request.get("authorization") ?? "")?.pass;
    const address = networkOf(request.ip);
    const isRight = password !== undefined && timingSafeEqual(digest(password), tokenDigest);
    if (password !== undefined) {
      // Count the attempt before checking the limit, so that concurrent attempts cannot exceed it.
      const attempts = isRight ? await wrongPasswords.get(address) : await wrongPasswords.penalty(address);
      const earlierCount = (attempts?.consumedPoints ?? 0) - (isRight ? 0 : 1);
      if (attempts !== null && earlierCount >= WRONG_PASSWORDS_MAX) {
        const retryAfterSeconds = Math.ceil(attempts.msBeforeNext / 1_000);
        const message = "Too many wrong passwords from your address. Try again later.";
        throw new AppError("rate_limited", message, { retryAfterSeconds });
      }
    }
    if (isRight) return next();
    await consumeRefusalLimit(ctx, request, response);
    response.setHeader("WWW-Authenticate", 'Basic realm="Operators", charset="UTF-8"');
    throw new AppError(password === undefined ? "missing_password" : "wrong_password");
  };
}

/** Refuses every request that is not a read, with this sentence. */
export function refuseAllWrites(sentence: string): RequestHandler {
  return (request, response, next) => {
    if (["GET", "HEAD"].includes(request.method)) return next();
    response.setHeader("Allow", "GET, HEAD");
    throw new AppError("method_not_allowed", sentence);
  };
}

/** Refuses writes with this sentence unless OPS_WRITABLE is true. */
export function refuseWrites({ config }: { config: Pick<Config, "ops"> }, sentence: string): RequestHandler {
  return config.ops.writable ? (_request, _response, next) => next() : refuseAllWrites(sentence);
}

/** The user name that the browser sent with the password, without control characters; `operator` if there is none. */
export function nameOf(authorization: string | undefined): string {
  const name = parse(authorization ?? "")?.name ?? "";
  const printable = name.replaceAll(/\p{Cc}/gu, "").trim();
  return printable.slice(0, NAME_MAX) || "operator";
}

/** Digests have equal length, so that comparing them takes the same time for every password. */
function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}
