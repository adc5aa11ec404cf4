import type { RequestHandler } from "express";

/** Headers for ranges and conditional writes. */
const IGNORED = ["range", "if-range", "if-match", "if-unmodified-since"] as const;

/** Removes the headers that make Express answer 206, 412 or 416, and `If-None-Match: *`. The API does not document these statuses. `If-None-Match` with entity tags stays. */
export const ignoreConditions: RequestHandler = ({ headers }, _response, next) => {
  for (const name of IGNORED) if (headers[name] !== undefined) delete headers[name];
  if (headers["if-none-match"]?.includes("*")) delete headers["if-none-match"];
  next();
};
