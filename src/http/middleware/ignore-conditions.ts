import type { RequestHandler } from "express";

/** Headers for ranges and conditional writes. */
const IGNORED = ["range", "if-range", "if-match", "if-unmodified-since"] as const;

/**
 * Removes the headers that make Express answer 206, 412 or 416, because the API does not document these statuses. Also removes
 * `If-None-Match: *`, but keeps `If-None-Match` with entity tags.
 */
export const ignoreConditions: RequestHandler = ({ headers }, _response, next) => {
  for (const name of IGNORED) if (headers[name] !== undefined) delete headers[name];
  if (headers["if-none-match"]?.includes("*")) delete headers["if-none-match"];
  next();
};
