import { z } from "zod";
import { ERRORS, type ErrorCode, type ErrorKind, errorKind, REFUSAL_CODES, type RefusalCode } from "./error-codes.ts";
import { EXAMPLE } from "./example.ts";
import { named, text } from "./fields.ts";
import { type ProblemKey, problemIn } from "./problems.ts";
import { type Language, type Sentence, type Translate, translateInto, type ValuesOf } from "./sentences.ts";

export { ERRORS, type ErrorCode, type ErrorKind, REFUSAL_CODES };

/**
 * A code for various problems. Each `AppError` with this code has a sentence of its own, which names the problem.
 * `src/locales` only has an example.
 */
type NamingCode = "invalid_request";

interface ErrorOptions {
  /** Never shown to the caller. Logged if the status is at least 500. */
  cause?: unknown;
  retryAfterSeconds?: number;
  /** Additional fields of the body. */
  details?: Record<string, string>;
  /** Set for a 5xx that is part of normal operation. It is not logged as a warning. */
  isExpected?: boolean;
}

/**
 * An error that is reported to the caller. `message` is public and English. A sentence given as a string is for
 * operators, and exists only in English.
 */
export class AppError extends Error {
  readonly kind: ErrorKind;
  readonly code: string;
  readonly status: number;
  /** Sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, string>> | undefined;
  readonly isExpected: boolean;
  readonly #sentence: string | Sentence;

  constructor(error: ErrorCode | ErrorKind, sentence: string | Sentence, options?: ErrorOptions);
  constructor(error: Exclude<ErrorCode, NamingCode> | ErrorKind, sentence?: undefined, options?: ErrorOptions);
  constructor(error: ErrorCode | ErrorKind, sentence?: string | Sentence, options: ErrorOptions = {}) {
    const kind = errorKind(error);
    const { cause, retryAfterSeconds, details, isExpected = false } = options;
    super(say(translateInto("en"), sentence ?? kind.sentence), cause === undefined ? undefined : { cause });
    this.name = "AppError";
    this.kind = kind;
    this.code = kind.code;
    this.status = kind.status;
    this.#sentence = sentence ?? kind.sentence;
    this.retryAfterSeconds = retryAfterSeconds ?? kind.retryAfterSeconds;
    this.details = details;
    this.isExpected = isExpected;
  }

  get isEnglishOnly(): boolean {
    return typeof this.#sentence === "string";
  }

  sentenceIn(language: Language): string {
    return say(translateInto(language), this.#sentence);
  }
}

function say(t: Translate, sentence: string | Sentence): string {
  return typeof sentence === "string" ? sentence : sentence(t);
}

/** Kinds of errors, indexed by their codes. */
export function errorsByCode(errors: readonly (ErrorCode | ErrorKind)[]): ReadonlyMap<string, ErrorKind> {
  return new Map(errors.map(errorKind).map((kind) => [kind.code, kind]));
}

/** Maximum number of fields that one error lists. */
const NAMED_MAX = 10;

/** The error for invalid fields, with the problem of each field. An empty name stands for the request as a whole. */
export function invalidFields(fields: readonly (readonly [name: string | Sentence, problem: Sentence])[]): AppError {
  return new AppError("invalid_request", (t) => {
    const said = fields.slice(0, NAMED_MAX).map(([name, problem]) => {
      const subject = typeof name === "string" ? name : name(t);
      return `${subject} ${problem(t)}.`.trimStart();
    });
    return said.join(" ");
  });
}

/** The error that lists the missing required fields. */
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

/** An error without a stack trace. Refusals are frequent, and making the stack trace would take 13 of 14 µs. */
export function refusal(code: RefusalCode): AppError {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return new AppError(code);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** The same error for unknown vouchers and those of other organizations, so that it confirms no guessed code. */
export function voucherNotFound(): AppError {
  return new AppError("voucher_not_found");
}

/** The error for a voucher whose row another transaction has locked. */
export function voucherBusy(): AppError {
  return new AppError("voucher_busy");
}

/** Optional features (wings) add their own codes in the API reference. */
export const knownErrorCode = z
  .enum(Object.keys(ERRORS) as ErrorCode[])
  .meta({ id: "KnownErrorCode", description: "The codes of this release." });

/** The body of an error response. The set of codes is open: clients must accept codes of later releases. */
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

export const VOUCHER_READ = ["voucher_not_found", "too_many_misses", "overloaded", "unavailable"] as const;

/** Errors of every operation of the issuer API on an entity. */
export const ISSUER = ["not_found", "overloaded", "unavailable"] as const;

/** Each operation's errors, in addition to those of authentication, input and {@link ANY_ADDRESS_ERRORS}. */
export const ERRORS_OF = {
  lookUpVoucher: VOUCHER_READ,
  readVoucherEvents: VOUCHER_READ,
  reserveVoucher: [...VOUCHER_READ, ...REFUSAL_CODES.filter((code) => code !== "token_mismatch"), "voucher_busy"],
  redeemVoucher: [...VOUCHER_READ, ...REFUSAL_CODES, "cap_reached", "redeem_timeout", "redeem_unknown", "voucher_busy"],
  advanceSandbox: ["voucher_busy", "overloaded", "unavailable"],
  releaseReservation: ["voucher_busy", "overloaded", "unavailable"],
  readEvents: ["overloaded", "unavailable"],
  readStatement: ["invalid_request", "overloaded", "unavailable"],
  listRedemptions: ["overloaded", "unavailable"],
  readRedemption: ["redemption_not_found", "overloaded", "unavailable"],
  readPublicEvents: ["entity_not_found", "overloaded", "unavailable"],
  listBrands: ["overloaded", "unavailable"],
  listProducts: ISSUER,
  listBatches: ISSUER,
  readBatch: ISSUER,
  listBatchVouchers: ISSUER,
  findVouchers: ["too_many_misses", "overloaded", "unavailable"],
  listListings: ISSUER,
  listContracts: ISSUER,
  listLinks: ISSUER,
  extendVoucher: [...ISSUER, "voucher_used", "voucher_voided", "voucher_busy", "too_many_misses"],
  extendBatch: ISSUER,
  suspendVoucher: [...ISSUER, "voucher_used", "voucher_voided", "voucher_busy", "too_many_misses"],
  resumeVoucher: [...ISSUER, "voucher_used", "voucher_voided", "voucher_suspended", "voucher_busy", "too_many_misses"],
  suspendBatch: [...ISSUER, "voucher_busy"],
  resumeBatch: ISSUER,
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
