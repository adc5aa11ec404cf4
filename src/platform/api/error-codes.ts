import type { Sentence } from "./sentences.ts";

interface ErrorDescription {
  status: number;
  /** Default of `Retry-After`, in seconds. */
  retryAfterSeconds?: number;
  /** The heading of the error's page, if it differs from the heading of the status. */
  heading?: Sentence;
}

function describe(status: number, retryAfterSeconds?: number): ErrorDescription {
  return { status, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** Why a voucher cannot be reserved or redeemed, for a caller that may see the voucher. */
const REFUSALS = {
  voucher_used: describe(409),
  voucher_voided: describe(409),
  voucher_expired: describe(409),
  voucher_suspended: describe(409),
  reservation_ended: describe(409),
  token_mismatch: describe(409),
  voucher_reserved: describe(409),
};

/**
 * Every code of the core that an error body may contain. Optional features (wings) declare their own codes. Codes are
 * stable, because partners' programs compare them. docs/errors.md explains them, and `src/locales` has their sentences.
 */
export const ERRORS = {
  invalid_http: describe(400),
  headers_too_large: describe(431),
  request_timeout: describe(408),
  invalid_json: describe(400),
  invalid_request: describe(400),
  body_too_large: describe(413),
  unsupported_encoding: describe(415),
  missing_key: describe(401),
  unknown_key: describe(401),
  missing_scope: describe(401),
  missing_token: describe(401),
  invalid_token: describe(401),
  missing_password: describe(401),
  wrong_password: describe(401),
  missing_role: describe(403),
  cross_site: describe(403),
  portal_needs_read_key: describe(403),
  key_without_organization: describe(403),
  address_not_allowed: describe(403),
  sandbox_only: describe(403),
  not_found: describe(404),
  voucher_not_found: { status: 404, heading: (t) => t("error.unknownVoucher") },
  entity_not_found: { status: 404, heading: (t) => t("error.unknownVoucher") },
  redemption_not_found: { status: 404, heading: (t) => t("error.unknownOrder") },
  method_not_allowed: describe(405),
  ...REFUSALS,
  already_exists: describe(409),
  wrong_status: describe(409),
  rate_limited: describe(429),
  too_many_misses: describe(429),
  cap_reached: describe(429),
  redeem_timeout: describe(503, 2),
  redeem_unknown: describe(503, 2),
  voucher_busy: describe(503, 1),
  overloaded: describe(503, 1),
  unavailable: describe(503, 2),
  internal_error: describe(500),
} satisfies Record<string, ErrorDescription>;

export type ErrorCode = keyof typeof ERRORS;

/** An error code and its declaration. */
export interface ErrorKind extends ErrorDescription {
  code: string;
  /** The sentence for errors with this code. An error may have a more specific sentence. */
  sentence: Sentence;
  /** Set if the cause usually ends within seconds. The error's page then reloads itself. */
  looksAgain?: true;
}

const KINDS = new Map(
  Object.entries<ErrorDescription>(ERRORS).map(([code, described]): [string, ErrorKind] => [
    code,
    { code, ...described, sentence: (t) => t(`errors.${code as ErrorCode}`) },
  ]),
);

/** The kind of an error, given by its code in the core or by an optional feature's (wing's) own declaration. */
export function errorKind(error: ErrorCode | ErrorKind): ErrorKind {
  return typeof error === "string" ? (KINDS.get(error) as ErrorKind) : error;
}
export type RefusalCode = keyof typeof REFUSALS;

export const REFUSAL_CODES = Object.keys(REFUSALS) as RefusalCode[];
