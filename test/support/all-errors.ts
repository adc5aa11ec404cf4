import { ENDPOINTS } from "../../src/open/endpoints.ts";
import { ERRORS, type ErrorCode, errorsByCode } from "../../src/platform/api/errors.ts";

/** The errors of the core and of all wings, by code. */
export const ALL_ERRORS = new Map([
  ...errorsByCode(Object.keys(ERRORS) as ErrorCode[]),
  ...ENDPOINTS.flatMap(({ errors }) => [...errors]),
]);
