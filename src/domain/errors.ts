/** Every code that an error body may carry. Stable: partners branch on it. */
export type ErrorCode =
  | "invalid_http"
  | "headers_too_large"
  | "request_timeout"
  | "invalid_json"
  | "invalid_request"
  | "body_too_large"
  | "unsupported_encoding"
  | "missing_key"
  | "unknown_key"
  | "missing_scope"
  | "key_without_organization"
  | "address_not_allowed"
  | "not_found"
  | "voucher_not_found"
  | "entity_not_found"
  | "listing_not_found"
  | "product_not_found"
  | "link_not_found"
  | "method_not_allowed"
  | "rate_limited"
  | "too_many_misses"
  | "no_session"
  | "cross_site"
  | "missing_token"
  | "invalid_token"
  | "referrers_only"
  | "sold_out"
  | "window_closed"
  | RefusalCode
  | "redeem_timeout"
  | "redeem_unknown"
  | "voucher_busy"
  | "overloaded"
  | "unavailable"
  | "internal_error";

/** Why a voucher that the caller may see cannot move. */
export type RefusalCode =
  | "voucher_used"
  | "voucher_voided"
  | "voucher_expired"
  | "reservation_ended"
  | "token_mismatch"
  | "voucher_reserved";

/** The sentence for each refusal, written for the person at the till. */
export const REFUSAL_SENTENCE: Record<RefusalCode, string> = {
  voucher_used: "This voucher has already been used.",
  voucher_voided: "This voucher has been cancelled by its issuer.",
  voucher_expired: "This voucher has expired.",
  reservation_ended: "This reservation has ended. Look the voucher up again by its code.",
  token_mismatch: "The reservation token does not match this voucher's reservation.",
  voucher_reserved: "This voucher is reserved by another checkout at the moment.",
};

/** A failure that has an answer. `message` is shown to people outside; `cause` is logged and never shown. */
export class AppError extends Error {
  readonly code: ErrorCode;
  /** Seconds after which trying again makes sense; becomes `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  /** More fields of the answer. */
  readonly details: Readonly<Record<string, string>> | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterSeconds?: number; details?: Record<string, string> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "AppError";
    this.code = code;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.details = options.details;
  }
}

/**
 * The answer to a move that the voucher's state forbids. It has no stack: it is as common as any answer, where it was made is no news, and
 * finding that out costs more than making it (docs/benchmarks.md).
 */
export function refusal(code: RefusalCode): AppError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new AppError(code, REFUSAL_SENTENCE[code]);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
