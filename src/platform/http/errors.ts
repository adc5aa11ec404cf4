import type { ErrorRequestHandler, RequestHandler } from "express";
import { AppError } from "../api/errors.ts";
import { BatcherClosed, BatcherFull } from "../batching/batcher.ts";
import { CallerLeft } from "../batching/fair-slots.ts";
import { isDatabaseUnavailable, isLockTimeout, isRetryable, refusalOf } from "../db/transaction.ts";
import { languageOf } from "./middleware/reader-language.ts";
import { sendPage } from "./negotiate.ts";
import { sendJson } from "./respond.ts";

/** Refuses requests that no route matches. Mount it after all routes. */
export const unknownPath: RequestHandler = () => {
  throw new AppError("not_found");
};

/**
 * Sends an error in the reader's language, as JSON, or as a page if the caller prefers one. An unexpected error is
 * logged, and its response reveals nothing.
 */
export const errorHandler: ErrorRequestHandler = (error, _request, response, next) => {
  // The connection is closed, so no response can be sent.
  if (error instanceof CallerLeft) return;
  const known = toAppError(error);
  const { status } = known;
  response.locals.errorCode = known.code;
  response.locals.isExpected = known.isExpected;
  if (status >= 500) response.locals.failure = known.cause ?? known;
  else if (status === 401 && known.cause instanceof Error) response.locals.reason = known.cause.message;
  if (response.headersSent) return next(error);
  if (known.retryAfterSeconds !== undefined) response.setHeader("Retry-After", String(known.retryAfterSeconds));
  if (known.isEnglishOnly) response.locals.language = "en";
  const language = languageOf(response);
  const { errorPage, requestId } = response.locals;
  if (errorPage !== undefined) {
    // Makes the browser send the request again after three seconds.
    if (known.kind.looksAgain) response.setHeader("Refresh", "3");
    return sendPage(response, status, errorPage(known, status, requestId, language));
  }
  sendJson(response, status, {
    error: known.sentenceIn(language),
    code: known.code,
    requestId,
    ...known.details,
  });
};

function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof BatcherFull) return new AppError("overloaded", undefined, { cause: error });
  if (error instanceof BatcherClosed) return new AppError("unavailable", undefined, { cause: error });
  if (isDatabaseUnavailable(error) || isLockTimeout(error) || isRetryable(error)) {
    return new AppError("unavailable", undefined, { cause: refusalOf(error) ?? error });
  }
  const code = error instanceof Error && "status" in error ? HTTP_ERRORS.get(error.status) : undefined;
  return code === undefined ? new AppError("internal_error", undefined, { cause: error }) : new AppError(code);
}

/** The codes for the statuses of errors from Express and its body parser. */
const HTTP_ERRORS = new Map<unknown, "invalid_json" | "body_too_large" | "unsupported_encoding">([
  [400, "invalid_json"],
  [413, "body_too_large"],
  [415, "unsupported_encoding"],
]);
