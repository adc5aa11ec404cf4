import { z } from "zod";
import { EXAMPLE } from "./example.ts";
import { named, text } from "./fields.ts";

interface ErrorDescription {
  status: number;
  /** The default message, which can be shown to the user. */
  sentence: string;
  /** Default of `Retry-After`, in seconds. */
  retryAfterSeconds?: number;
}

function describe(status: number, sentence: string, retryAfterSeconds?: number): ErrorDescription {
  return { status, sentence, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
}

/** Why a voucher that the caller may see cannot be reserved or redeemed. */
const REFUSALS = {
  voucher_used: describe(409, "This voucher has already been used."),
  voucher_voided: describe(409, "This voucher has been cancelled by its issuer."),
  voucher_expired: describe(409, "This voucher has expired."),
  reservation_ended: describe(409, "This reservation has ended. Look the voucher up again by its code."),
  token_mismatch: describe(409, "The reservation token does not match this voucher's reservation."),
  voucher_reserved: describe(409, "This voucher is reserved by another checkout at the moment."),
};

/** Every code that an error body may carry. Codes are stable: partners branch on them. docs/errors.md says when the API sends each. */
export const ERRORS = {
  invalid_http: describe(400, "This is not an HTTP request."),
  headers_too_large: describe(431, "The request's address or headers are too long."),
  request_timeout: describe(408, "The request did not arrive in time."),
  invalid_json: describe(400, "The body must be a JSON object."),
  invalid_request: describe(400, "externalRef is required."),
  body_too_large: describe(413, "The body must not be larger than 16 KiB."),
  unsupported_encoding: describe(
    415,
    "The body must be JSON in UTF-8, plain or compressed with gzip, deflate, br or zstd.",
  ),
  missing_key: describe(401, "Send an API key in X-Api-Key, or as the portal's password."),
  unknown_key: describe(401, "This API key is unknown or no longer works."),
  missing_scope: describe(401, "This API key lacks the scope voucher.redeem."),
  missing_token: describe(401, "Send your token in the Authorization header, after the word Bearer."),
  invalid_token: describe(401, "This sign-in is invalid or has expired. Please sign in again."),
  missing_password: describe(401, "Sign in with the operations token as the password, under any user name."),
  wrong_password: describe(401, "This is not the operations token."),
  cross_site: describe(403, "This request was sent from a page of another site."),
  portal_needs_read_key: describe(
    403,
    "The portal needs an API key that can read and not redeem. Ask the operator for one with voucher.read and without voucher.redeem (voucherctl key create --org ID --scope voucher.read), and restart the browser to sign in with it.",
  ),
  referrers_only: describe(
    403,
    "Only referrers with an active contract can get this voucher. Ask a referrer for their link.",
  ),
  key_without_organization: describe(403, "This API key is not bound to an organization."),
  address_not_allowed: describe(403, "This API key may not be used from your address."),
  sandbox_only: describe(403, "Only keys of sandbox organizations can do this. This key is live."),
  not_found: describe(404, "There is nothing at this address."),
  voucher_not_found: describe(404, "No voucher of your brands matches this code or ticket."),
  entity_not_found: describe(404, "No voucher has this id."),
  redemption_not_found: describe(404, "Nothing has been redeemed under this reference."),
  listing_not_found: describe(404, "There is no such listing."),
  product_not_found: describe(404, "There is no such product."),
  link_not_found: describe(404, "This link is invalid or has expired."),
  webhook_not_found: describe(404, "Your organization has no webhook endpoint with this id."),
  webhooks_off: describe(404, "Webhooks are not switched on here. Ask the operator."),
  method_not_allowed: describe(
    405,
    "This address does not accept this method. The Allow header lists those it accepts.",
  ),
  ...REFUSALS,
  not_logged_yet: describe(409, "This event is not in the log yet. It usually is within seconds: please try again.", 1),
  webhook_limit: describe(
    409,
    "There can be at most 20 webhook endpoints, and ten earlier secrets of one. Delete an endpoint, or rotate later.",
  ),
  webhook_disabled: describe(
    409,
    "The operator has disabled this webhook endpoint, and only the operator can enable it again.",
  ),
  sold_out: describe(409, "No vouchers are left."),
  window_closed: describe(409, "This offer is not open at the moment."),
  rate_limited: describe(429, "There were too many requests. Please try again in a moment."),
  too_many_misses: describe(429, "Too many codes that do not exist were tried. Please try again later."),
  redeem_timeout: describe(
    503,
    "The voucher could not be redeemed in time. This attempt redeemed nothing. Please try again.",
    2,
  ),
  redeem_unknown: describe(
    503,
    "It is not known yet whether the voucher was redeemed. Retry with the same externalRef to find out. It is never redeemed twice.",
    2,
  ),
  voucher_busy: describe(503, "This voucher is being changed at the moment. Please try again.", 1),
  overloaded: describe(503, "The service is busy. Please try again.", 1),
  unavailable: describe(503, "The service is not available at the moment. Please try again.", 2),
  internal_error: describe(500, "Something went wrong on our side."),
};

export type ErrorCode = keyof typeof ERRORS;
type RefusalCode = keyof typeof REFUSALS;

export function statusOf(code: ErrorCode): number {
  return ERRORS[code].status;
}

export const REFUSAL_CODES = Object.keys(REFUSALS) as RefusalCode[];

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

const knownErrorCode = z
  .enum(Object.keys(ERRORS) as ErrorCode[])
  .meta({ id: "KnownErrorCode", description: "The codes of this release." });

/** The body of an error response. The code is open: clients must accept codes of later releases. */
export const errorResponse = named("Error", {
  error: text("An error message that can be shown to the user."),
  code: z.union([knownErrorCode, z.string()]).meta({
    id: "ErrorCode",
    description:
      "A stable code for programs to branch on. Later releases add codes: treat one that you do not know by the status of its response.",
  }),
  requestId: text("The value of `X-Request-Id`. Quote it when you ask us about a response.", EXAMPLE.requestId),
});

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
