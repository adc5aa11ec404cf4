import type { RequestHandler } from "express";
import { AppError } from "../domain/errors.ts";

/** Refuses a request of HTTP/1.1 that names no host, as RFC 9112, section 3.2, demands. */
export const requireHost: RequestHandler = (request, _response, next) => {
  if (request.httpVersion === "1.1" && request.headers.host === undefined) {
    throw new AppError("invalid_http", "A request must name its host.");
  }
  next();
};
