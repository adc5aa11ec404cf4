import type { RequestHandler } from "express";

/** What asks for a part of an answer, or guards a change against other writers' changes. */
const IGNORED = ["range", "if-range", "if-match", "if-unmodified-since"] as const;

/**
 * Lets no header turn an answer into one that no address describes: 206, 304, 412 or 416. Nothing that is served has parts, and
 * what is changed has no version to name; `*` names every version there is, which only writers mean. An `If-None-Match` with
 * tags stays: files of pages have tags.
 */
export const ignoreConditions: RequestHandler = ({ headers }, _response, next) => {
  for (const name of IGNORED) if (headers[name] !== undefined) delete headers[name];
  if (headers["if-none-match"]?.includes("*")) delete headers["if-none-match"];
  next();
};
