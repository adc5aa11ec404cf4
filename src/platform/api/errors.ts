import { z } from "zod";
import { ERRORS, type ErrorCode, REFUSAL_CODES, type RefusalCode, retryAfterOf, statusOf } from "./error-codes.ts";
import { EXAMPLE } from "./example.ts";
import { named, text } from "./fields.ts";
import { type ProblemKey, problemIn } from "./problems.ts";
import { type Language, type Sentence, type Translate, translateInto, type ValuesOf } from "./sentences.ts";

export { ERRORS, type ErrorCode, REFUSAL_CODES, statusOf };

/** The code whose sentence must name the problem: each `AppError` has its own sentence. The table has an example. */
type NamingCode = "invalid_request";

interface ErrorOptions {
  /** Never shown to the caller. Logged if the status is 500 or more. */
  cause?: unknown;
  /** Overrides the default in {@link ERRORS}. */
  retryAfterSeconds?: number;
  /** Additional fields of the body. */
  details?: Record<string, string>;
  /** A 5xx that is part of normal operation. It is not logged as a warning. */
  isExpected?: boolean;
}

/**
 * An error that is reported to the caller. `message` is public, in English. A sentence that is given as a string is for
 * operators and exists in English only.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, string>> | undefined;
  readonly isExpected: boolean;
  readonly #sentence: string | Sentence | undefined;

  constructor(code: ErrorCode, sentence: string | Sentence, options?: ErrorOptions);
  constructor(code: Exclude<ErrorCode, NamingCode>, sentence?: undefined, options?: ErrorOptions);
  constructor(code: ErrorCode, sentence?: string | Sentence, options: ErrorOptions = {}) {
    const { cause, retryAfterSeconds, details, isExpected = false } = options;
    super(say(translateInto("en"), code, sentence), cause === undefined ? undefined : { cause });
    this.name = "AppError";
    this.code = code;
    this.#sentence = sentence;
    this.retryAfterSeconds = retryAfterSeconds ?? retryAfterOf(code);
    this.details = details;
    this.isExpected = isExpected;
  }

  get isEnglishOnly(): boolean {
    return typeof this.#sentence === "string";
  }

  /** The error's text in a language. */
  sentenceIn(language: Language): string {
    return say(translateInto(language), this.code, this.#sentence);
  }
}

function say(t: Translate, code: ErrorCode, sentence: string | Sentence | undefined): string {
  if (sentence === undefined) return t(`errors.${code}`);
  return typeof sentence === "string" ? sentence : sentence(t);
}

/** Maximum number of fields that one error names. */
const NAMED_MAX = 10;

/** The error for invalid fields, with the problem of each. An empty name stands for the request as a whole. */
export function invalidFields(fields: readonly (readonly [name: string | Sentence, problem: Sentence])[]): AppError {
  return new AppError("invalid_request", (t) => {
    const said = fields.slice(0, NAMED_MAX).map(([name, problem]) => {
      const subject = typeof name === "string" ? name : name(t);
      return `${subject} ${problem(t)}.`.trimStart();
    });
    return said.join(" ");
  });
}

/** The error that names the required fields that are absent. */
export function missingFields(fields: Record<string, unknown>): AppError {
  const missing = Object.keys(fields).filter((name) => fields[name] === undefined);
  return invalidFields(missing.map((name) => [name, problemIn("required")]));
}

/** The error for one field. */
export function invalidField<Key extends ProblemKey>(
  name: string | Sentence,
  key: Key,
  ...values: ValuesOf<`problems.${Key}`>
): AppError {
  return invalidFields([[name, problemIn(key, ...values)]]);
}

/**
 * An error without a stack. Refusals are frequent, and the stack takes 13 of the 14 µs that it takes to create an
 * error.
 */
export function refusal(code: RefusalCode): AppError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new AppError(code);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/**
 * One error for vouchers that do not exist and vouchers of other organizations, so that no response confirms a guessed
 * code.
 */
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
  error: text("A sentence for a person, in the language of `Content-Language`."),
  code: z.union([knownErrorCode, z.string()]).meta({
    id: "ErrorCode",
    description:
      "A stable code for programs to branch on. Later releases add codes: treat one that you do not know by the " +
      "status of its response.",
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

/** Errors of each operation of the issuer API on an entity. */
export const ISSUER = ["not_found", "overloaded", "unavailable"] as const;

/**
 * The errors of each operation, without those of authentication, of input validation and of {@link ANY_ADDRESS_ERRORS}.
 */
export const ERRORS_OF = {
  lookUpVoucher: VOUCHER_READ,
  readVoucherEvents: VOUCHER_READ,
  reserveVoucher: [...VOUCHER_READ, ...REFUSAL_CODES.filter((code) => code !== "token_mismatch"), "voucher_busy"],
  redeemVoucher: [...VOUCHER_READ, ...REFUSAL_CODES, "redeem_timeout", "redeem_unknown", "voucher_busy"],
  advanceSandbox: ["voucher_busy", "overloaded", "unavailable"],
  releaseReservation: ["voucher_busy", "overloaded", "unavailable"],
  listRedemptions: ["redemption_not_found", "overloaded", "unavailable"],
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
  readRedemptionReceipt: ["redemption_not_found", "not_logged_yet", "payload_erased", "overloaded", "unavailable"],
  readReceiptByReference: ["redemption_not_found", "not_logged_yet", "payload_erased", "overloaded", "unavailable"],
  readEventReceipt: [...VOUCHER_READ, "not_logged_yet", "payload_erased"],
  readEventProof: ["entity_not_found", "not_logged_yet", "overloaded", "unavailable"],
  readListings: ["overloaded", "unavailable"],
  readListing: ["listing_not_found", "overloaded", "unavailable"],
  openLink: ["link_not_found", "overloaded", "unavailable"],
  buyListing: ["listing_not_found", ...ACQUISITION],
  buyProduct: ["product_not_found", ...ACQUISITION],
  claimProduct: ["product_not_found", ...ACQUISITION],
  claimByLink: ["link_not_found", ...ACQUISITION.filter((code) => code !== "referrers_only")],
  listBrands: ["overloaded", "unavailable"],
  listProducts: ISSUER,
  listBatches: ISSUER,
  readBatch: ISSUER,
  listBatchVouchers: ISSUER,
  extendVoucher: [...ISSUER, "voucher_used", "voucher_voided", "voucher_busy", "too_many_misses"],
  extendBatch: ISSUER,
  voidVoucher: [...ISSUER, "voucher_used", "voucher_expired", "voucher_busy", "too_many_misses"],
  voidBatch: ISSUER,
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
