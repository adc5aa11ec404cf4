/** Describes an error code. The API reference shows it. */
interface ErrorDescription {
  /** The HTTP status of the response. */
  status: number;
  /** When the API responds with this code, for authors of clients. One sentence without a full stop. */
  meaning: string;
  /** The default message, which can be shown to the user. */
  sentence: string;
  /** Default of `Retry-After`, in seconds. */
  retryAfterSeconds?: number;
}

/** Why a voucher that the caller may see cannot be reserved or redeemed. */
const REFUSALS = {
  voucher_used: {
    status: 409,
    meaning: "The voucher was redeemed under another reference; this is final",
    sentence: "This voucher has already been used.",
  },
  voucher_voided: {
    status: 409,
    meaning: "The issuer cancelled the voucher; this is final",
    sentence: "This voucher has been cancelled by its issuer.",
  },
  voucher_expired: {
    status: 409,
    meaning: "The voucher's `validUntil` has passed; this is final",
    sentence: "This voucher has expired.",
  },
  reservation_ended: {
    status: 409,
    meaning: "This ticket's reservation has expired or was released; the voucher itself may still be valid",
    sentence: "This reservation has ended. Look the voucher up again by its code.",
  },
  token_mismatch: {
    status: 409,
    meaning: "The voucher has no live reservation, or the token belongs to another one",
    sentence: "The reservation token does not match this voucher's reservation.",
  },
  voucher_reserved: {
    status: 409,
    meaning: "Another key of the same organization has reserved the voucher",
    sentence: "This voucher is reserved by another checkout at the moment.",
  },
} as const satisfies Record<string, ErrorDescription>;

/** Every code that an error body may carry. Codes are stable: partners branch on them. */
export const ERRORS = {
  invalid_http: {
    status: 400,
    meaning: "The request is not valid HTTP, or has no Host header",
    sentence: "This is not an HTTP request.",
  },
  headers_too_large: {
    status: 431,
    meaning: "The address and the headers together are longer than 16 KiB",
    sentence: "The request's address or headers are too long.",
  },
  request_timeout: {
    status: 408,
    meaning: "The headers did not arrive within 10 seconds, or the whole request within 15",
    sentence: "The request did not arrive in time.",
  },
  invalid_json: {
    status: 400,
    meaning: "The body is not a JSON object in UTF-8",
    sentence: "The body must be a JSON object.",
  },
  invalid_request: {
    status: 400,
    meaning: "A field is missing, of the wrong type or too long; the sentence names it",
    sentence: "externalRef is required.",
  },
  body_too_large: {
    status: 413,
    meaning: "The body is larger than 16 KiB",
    sentence: "The body must not be larger than 16 KiB.",
  },
  unsupported_encoding: {
    status: 415,
    meaning: "The body is not in UTF-8, or is compressed by a method that the service does not support",
    sentence: "The body must be JSON in UTF-8, plain or compressed with gzip, deflate, br or zstd.",
  },
  missing_key: {
    status: 401,
    meaning: "The request has no API key",
    sentence: "Send your API key in the X-Api-Key header.",
  },
  unknown_key: {
    status: 401,
    meaning: "The key is mistyped, unknown, revoked or expired",
    sentence: "This API key is unknown or no longer works.",
  },
  missing_scope: {
    status: 401,
    meaning: "The key is valid but lacks the scope that this endpoint requires",
    sentence: "This API key lacks the scope voucher.redeem.",
  },
  missing_token: {
    status: 401,
    meaning: "The request has no user token",
    sentence: "Send your token in the Authorization header, after the word Bearer.",
  },
  invalid_token: {
    status: 401,
    meaning: "The token's signature is wrong, the token has expired, or it was issued for another service",
    sentence: "This sign-in is invalid or has expired. Please sign in again.",
  },
  missing_password: {
    status: 401,
    meaning: "The operator pages and the queue dashboard require the operations token as the HTTP Basic password",
    sentence: "Sign in with the operations token as the password, under any user name.",
  },
  wrong_password: {
    status: 401,
    meaning: "The password sent to the operator pages or the queue dashboard is not the operations token",
    sentence: "This is not the operations token.",
  },
  cross_site: {
    status: 403,
    meaning:
      "The browser sent a change to the operator pages or the queue dashboard on behalf of a page of another site",
    sentence: "This request was sent from a page of another site.",
  },
  referrers_only: {
    status: 403,
    meaning:
      "Only users with an active referrer contract with the brand can claim or buy these vouchers, and the caller has none",
    sentence: "Only referrers with an active contract can get this voucher. Ask a referrer for their link.",
  },
  key_without_organization: {
    status: 403,
    meaning: "The key is valid but is not bound to an organization",
    sentence: "This API key is not bound to an organization.",
  },
  address_not_allowed: {
    status: 403,
    meaning: "The key may not be used from the caller's address",
    sentence: "This API key may not be used from your address.",
  },
  sandbox_only: {
    status: 403,
    meaning: "The endpoint is for keys of sandbox organizations, which begin with `pvt_`; this key is live",
    sentence: "Only keys of sandbox organizations can do this. This key is live.",
  },
  not_found: {
    status: 404,
    meaning: "There is nothing at this address",
    sentence: "There is nothing at this address.",
  },
  voucher_not_found: {
    status: 404,
    meaning:
      "No voucher of the caller's brands has this code or ticket; vouchers of other organizations get the same response",
    sentence: "No voucher of your brands matches this code or ticket.",
  },
  entity_not_found: {
    status: 404,
    meaning: "No entity with this type and id has a history",
    sentence: "No voucher has this id.",
  },
  redemption_not_found: {
    status: 404,
    meaning:
      "The caller's organization has redeemed nothing under this reference yet; references of other organizations get the same response",
    sentence: "Nothing has been redeemed under this reference.",
  },
  listing_not_found: {
    status: 404,
    meaning: "There is no such listing",
    sentence: "There is no such listing.",
  },
  product_not_found: {
    status: 404,
    meaning: "There is no such product",
    sentence: "There is no such product.",
  },
  link_not_found: {
    status: 404,
    meaning: "There is no such link, or its contract is no longer active",
    sentence: "This link is invalid or has expired.",
  },
  webhook_not_found: {
    status: 404,
    meaning:
      "The caller's organization has no webhook endpoint with this id; endpoints of other organizations get the same response",
    sentence: "Your organization has no webhook endpoint with this id.",
  },
  webhooks_off: {
    status: 404,
    meaning: "The operator of this deployment has not switched webhooks on",
    sentence: "Webhooks are not switched on here. Ask the operator.",
  },
  method_not_allowed: {
    status: 405,
    meaning: "The address does not accept this method; the `Allow` header lists those it accepts",
    sentence: "This address does not accept this method. The Allow header lists those it accepts.",
  },
  ...REFUSALS,
  not_logged_yet: {
    status: 409,
    meaning: "The event is not covered by the log's checkpoint yet, or this deployment has no log",
    sentence: "This event is not in the log yet. Please try again in a moment.",
    retryAfterSeconds: 1,
  },
  webhook_limit: {
    status: 409,
    meaning:
      "The organization has 20 webhook endpoints, or the endpoint has ten earlier secrets that still sign: the most",
    sentence:
      "There can be at most 20 webhook endpoints, and ten earlier secrets of one. Delete an endpoint, or rotate later.",
  },
  webhook_disabled: {
    status: 409,
    meaning: "The webhook endpoint is disabled; the sentence says who can enable it",
    sentence: "The operator has disabled this webhook endpoint, and only the operator can enable it again.",
  },
  sold_out: {
    status: 409,
    meaning: "The window is open, but no voucher is left",
    sentence: "No vouchers are left.",
  },
  window_closed: {
    status: 409,
    meaning: "There is no such window, or it is not open now",
    sentence: "This offer is not open at the moment.",
  },
  rate_limited: {
    status: 429,
    meaning: "The caller sent too many requests; `Retry-After` says when to try again",
    sentence: "There were too many requests. Please try again in a moment.",
  },
  too_many_misses: {
    status: 429,
    meaning:
      "The key has tried too many codes that do not exist. Until `Retry-After`, it cannot look up any code; tickets and retries of confirmed references still work",
    sentence: "Too many codes that do not exist were tried. Please try again later.",
  },
  redeem_timeout: {
    status: 503,
    meaning:
      "The redemption did not complete. Nothing was redeemed under the reference, and no attempt made before this response ever will; a later one may",
    sentence: "The voucher could not be redeemed in time. This attempt redeemed nothing. Please try again.",
    retryAfterSeconds: 2,
  },
  redeem_unknown: {
    status: 503,
    meaning: "It is not known yet whether the voucher was redeemed; retry with the same reference to find out",
    sentence:
      "It is not known yet whether the voucher was redeemed. Retry with the same externalRef to find out. It is never redeemed twice.",
    retryAfterSeconds: 2,
  },
  voucher_busy: {
    status: 503,
    meaning: "Another operation has locked the voucher; the request was not carried out",
    sentence: "This voucher is being changed at the moment. Please try again.",
    retryAfterSeconds: 1,
  },
  overloaded: {
    status: 503,
    meaning: "Too many requests are waiting; the request was not carried out",
    sentence: "The service is busy. Please try again.",
    retryAfterSeconds: 1,
  },
  unavailable: {
    status: 503,
    meaning: "The service cannot reach a server that it depends on",
    sentence: "The service is not available at the moment. Please try again.",
    retryAfterSeconds: 2,
  },
  internal_error: {
    status: 500,
    meaning: "The service failed unexpectedly; quote the `requestId` when you report it",
    sentence: "Something went wrong on our side.",
  },
} as const satisfies Record<string, ErrorDescription>;

export type ErrorCode = keyof typeof ERRORS;
type RefusalCode = keyof typeof REFUSALS;

export function statusOf(code: ErrorCode): number {
  return ERRORS[code].status;
}

export const REFUSAL_CODES = Object.keys(REFUSALS) as RefusalCode[];

const ACQUISITION = [
  "referrers_only",
  "window_closed",
  "sold_out",
  "voucher_busy",
  "overloaded",
  "unavailable",
] as const;
const VOUCHER_READ = ["voucher_not_found", "too_many_misses", "overloaded", "unavailable"] as const;

const WEBHOOK = ["webhook_not_found", "webhooks_off", "overloaded", "unavailable"] as const;

/** The errors of each operation, without those of authentication, of input validation and of {@link ANY_ADDRESS_ERRORS}. */
export const ERRORS_OF = {
  lookUpVoucher: VOUCHER_READ,
  readVoucherEvents: VOUCHER_READ,
  reserveVoucher: [...VOUCHER_READ, ...REFUSAL_CODES.filter((code) => code !== "token_mismatch"), "voucher_busy"],
  redeemVoucher: [...VOUCHER_READ, ...REFUSAL_CODES, "redeem_timeout", "redeem_unknown", "voucher_busy"],
  advanceSandbox: ["voucher_busy", "overloaded", "unavailable"],
  releaseReservation: ["voucher_busy", "overloaded", "unavailable"],
  listRedemptions: ["overloaded", "unavailable"],
  readRedemption: ["redemption_not_found", "overloaded", "unavailable"],
  createWebhook: ["webhooks_off", "webhook_limit", "overloaded", "unavailable"],
  listWebhooks: ["webhooks_off", "overloaded", "unavailable"],
  readWebhook: WEBHOOK,
  changeWebhook: [...WEBHOOK, "webhook_disabled"],
  deleteWebhook: WEBHOOK,
  testWebhook: [...WEBHOOK, "webhook_disabled"],
  rotateWebhook: [...WEBHOOK, "webhook_limit"],
  replayWebhook: [...WEBHOOK, "webhook_disabled"],
  listWebhookDeliveries: WEBHOOK,
  readPublicEvents: ["entity_not_found", "overloaded", "unavailable"],
  readRedemptionReceipt: ["redemption_not_found", "not_logged_yet", "overloaded", "unavailable"],
  readEventReceipt: [...VOUCHER_READ, "not_logged_yet"],
  readEventProof: ["entity_not_found", "not_logged_yet", "overloaded", "unavailable"],
  readListings: ["overloaded", "unavailable"],
  readListing: ["listing_not_found", "overloaded", "unavailable"],
  buyListing: ["listing_not_found", ...ACQUISITION],
  buyProduct: ["product_not_found", ...ACQUISITION],
  claimProduct: ["product_not_found", ...ACQUISITION],
  claimByLink: ["link_not_found", ...ACQUISITION.filter((code) => code !== "referrers_only")],
  health: [],
  readiness: ["unavailable"],
} as const satisfies Record<string, readonly ErrorCode[]>;

/** Errors that every endpoint with a body can return. */
export const BODY_ERRORS: readonly ErrorCode[] = [
  "invalid_json",
  "invalid_request",
  "body_too_large",
  "unsupported_encoding",
];

/** Errors that every address can return. */
export const ANY_ADDRESS_ERRORS: readonly ErrorCode[] = [
  "not_found",
  "method_not_allowed",
  "rate_limited",
  "invalid_http",
  "request_timeout",
  "headers_too_large",
  "internal_error",
];

/** Codes whose message must name the problem, so each `AppError` needs its own. Their `sentence` in {@link ERRORS} is an example. */
type NamingCode = "invalid_request" | "missing_scope";

interface ErrorOptions {
  /** Never shown to the caller. Logged if the status is 500 or more. */
  cause?: unknown;
  /** Overrides the default in {@link ERRORS}. */
  retryAfterSeconds?: number;
  /** Additional fields of the body. */
  details?: Record<string, string>;
  /** A 5xx that is part of normal operation. Its log line is no warning. */
  isExpected?: boolean;
}

/** An error that is reported to the caller. `message` is public. */
export class AppError extends Error {
  readonly code: ErrorCode;
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, string>> | undefined;
  readonly isExpected: boolean;

  constructor(code: ErrorCode, sentence: string, options?: ErrorOptions);
  constructor(code: Exclude<ErrorCode, NamingCode>, sentence?: undefined, options?: ErrorOptions);
  constructor(code: ErrorCode, sentence?: string, options: ErrorOptions = {}) {
    const { cause, retryAfterSeconds, details, isExpected = false } = options;
    const described: ErrorDescription = ERRORS[code];
    super(sentence ?? described.sentence, cause === undefined ? undefined : { cause });
    this.name = "AppError";
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds ?? described.retryAfterSeconds;
    this.details = details;
    this.isExpected = isExpected;
  }
}

/** An error without a stack. Refusals are frequent, and the stack takes 13 of the 14 µs that it takes to create an error. */
export function refusal(code: RefusalCode): AppError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new AppError(code);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** One error for vouchers that do not exist and vouchers of other organizations, so that no response confirms a guessed code. */
export function voucherNotFound(): AppError {
  return new AppError("voucher_not_found");
}

/** The error for a voucher whose row another transaction has locked. */
export function voucherBusy(): AppError {
  return new AppError("voucher_busy");
}
