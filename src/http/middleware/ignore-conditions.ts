import type { RequestHandler } from "express";

/** Headers for ranges and conditional writes. */
const IGNORED = ["range", "if-range", "if-match", "if-unmodified-since"] as const;

/** Removes headers that make Express answer 206, 304, 412 or 416, which the API does not describe. Keeps `If-None-Match` with tags. */
export const ignoreConditions: RequestHandler = ({ headers }, _response, next) => {
  for (const name of IGNORED) if (headers[name] !== undefined) delete headers[name];
  if (headers["if-none-match"]?.includes("*")) delete headers["if-none-match"];
  next();
};
