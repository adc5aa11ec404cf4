import type { ErrorRequestHandler, RequestHandler } from "express";
import { CoalescerFull } from "../batching/coalescer.ts";
import { isDatabaseUnavailable, isLockTimeout } from "../db/transaction.ts";
import { AppError } from "../domain/errors.ts";
import { statusOf } from "./error-map.ts";
import { sendPage } from "./pages/offer-page.ts";
import { sendJson } from "./send-json.ts";

/** Answers everything that no route answered. */
export const unknownPath: RequestHandler = () => {
  throw new AppError("not_found", "There is nothing at this address.");
};

/**
 * Turns whatever a route threw into the one error body, or into a page where the caller prefers one. What nobody foresaw is
 * answered with nothing; the log line tells it.
 */
export const errorAnswer: ErrorRequestHandler = (error, _request, response, next) => {
  const known = toAppError(error);
  const status = statusOf(known.code);
  response.locals.errorCode = known.code;
  if (status >= 500) response.locals.failure = known.cause ?? known;
  if (response.headersSent) return next(error);
  if (known.retryAfterSeconds !== undefined) response.setHeader("Retry-After", String(known.retryAfterSeconds));
  const { errorPage, requestId } = response.locals;
  if (errorPage !== undefined) return sendPage(response, status, errorPage(known, status, requestId));
  sendJson(response, status, { error: known.message, code: known.code, requestId, ...known.details });
};

function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof CoalescerFull) {
    return new AppError("overloaded", "The service is busy. Please try again.", { cause: error, retryAfterSeconds: 1 });
  }
  if (isDatabaseUnavailable(error) || isLockTimeout(error)) {
    return new AppError("unavailable", "The service is not available at the moment. Please try again.", {
      cause: error,
      retryAfterSeconds: 2,
    });
  }
  return fromHttpError(error) ?? new AppError("internal_error", "Something went wrong on our side.", { cause: error });
}

/** Errors of Express and its body parser, which carry a status. */
function fromHttpError(error: unknown): AppError | null {
  if (!(error instanceof Error) || !("status" in error)) return null;
  switch (error.status) {
    case 400:
      return new AppError("invalid_json", "The body must be a JSON object.");
    case 413:
      return new AppError("body_too_large", "The body must not be larger than 16 KiB.");
    case 415:
      return new AppError(
        "unsupported_encoding",
        "The body must be JSON in UTF-8, plain or compressed with gzip, deflate, br or zstd.",
      );
    default:
      return null;
  }
}
