import type { RequestHandler } from "express";
import { AppError } from "../../contract/errors.ts";

/** Refuses an HTTP/1.1 request without Host, as RFC 9112, section 3.2, requires. */
export const requireHost: RequestHandler = (request, _response, next) => {
  if (request.httpVersion === "1.1" && request.headers.host === undefined) {
    throw new AppError("invalid_http", "A request must have a Host header.");
  }
  next();
};
