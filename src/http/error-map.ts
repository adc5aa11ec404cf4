import { type ErrorCode, REFUSAL_SENTENCE } from "../domain/errors.ts";

/** What is known of an error code without the request that meets it. */
export interface ErrorDescription {
  /** The HTTP status of its answer. */
  status: number;
  /** When it is given, for whoever writes a client. One sentence without a full stop. */
  meaning: string;
  /** The sentence of its answer, or one such sentence when the sentence names something. */
  example: string;
}

/** Every error code; a new one does not compile until it is described here. The API reference shows these descriptions. */
export const ERRORS = {
  invalid_http: {
    status: 400,
    meaning: "What came is not HTTP, or names no host",
    example: "This is not an HTTP request.",
  },
  headers_too_large: {
    status: 431,
    meaning: "Address and headers together are longer than 16 KiB",
    example: "The request's address or headers are too long.",
  },
  request_timeout: {
    status: 408,
    meaning: "The headers did not arrive within 10 seconds, or the whole request not within 15",
    example: "The request did not arrive in time.",
  },
  invalid_json: {
    status: 400,
    meaning: "The body is not a JSON object in UTF-8",
    example: "The body must be a JSON object.",
  },
  invalid_request: {
    status: 400,
    meaning: "A field is missing, of the wrong type or too long; the sentence names it",
    example: "externalRef is required.",
  },
  body_too_large: {
    status: 413,
    meaning: "The body is larger than 16 KiB",
    example: "The body must not be larger than 16 KiB.",
  },
  unsupported_encoding: {
    status: 415,
    meaning:
      "The body is in another character set than UTF-8, or compressed by a method that the service does not know",
    example: "The body must be JSON in UTF-8, plain or compressed with gzip, deflate, br or zstd.",
  },
  missing_key: {
    status: 401,
    meaning: "There is no API key in the request",
    example: "Send your API key in the X-Api-Key header.",
  },
  unknown_key: {
    status: 401,
    meaning: "The key is mistyped, revoked, past its end or was never made",
    example: "This API key is not known or no longer works.",
  },
  missing_scope: {
    status: 401,
    meaning: "The key works, but may not do this",
    example: "This API key lacks the scope voucher.redeem.",
  },
  missing_token: {
    status: 401,
    meaning: "There is no user's token in the request",
    example: "Send your token in the Authorization header, after the word Bearer.",
  },
  invalid_token: {
    status: 401,
    meaning: "The token is badly signed, past its end or not meant for this service",
    example: "This sign-in is not valid or has ended. Please sign in again.",
  },
  no_session: {
    status: 401,
    meaning: "The dashboard was asked for something outside of a session, or the session has ended",
    example: "Sign in at /ops/login first.",
  },
  cross_site: {
    status: 403,
    meaning: "A page of another site made the browser send a form to the dashboard",
    example: "This was sent from a page of another site.",
  },
  referrers_only: {
    status: 403,
    meaning: "Only holders of an active referrer contract with the brand may take it, and the caller has none",
    example: "Only referrers with an active contract may take this voucher. Ask a referrer for their link.",
  },
  key_without_organization: {
    status: 403,
    meaning: "The key works, but nobody has bound it to an organization",
    example: "This API key is not bound to an organization.",
  },
  address_not_allowed: {
    status: 403,
    meaning: "The key may not be used from the address that the call came from",
    example: "This API key may not be used from your address.",
  },
  not_found: {
    status: 404,
    meaning: "Nothing answers at this address",
    example: "There is nothing at this address.",
  },
  voucher_not_found: {
    status: 404,
    meaning: "No voucher of the caller's brands has this code or ticket; other organizations' vouchers answer the same",
    example: "No voucher of your brands matches this code or ticket.",
  },
  entity_not_found: {
    status: 404,
    meaning: "There is no chain with this type and id",
    example: "There is no event chain with this type and identifier.",
  },
  listing_not_found: {
    status: 404,
    meaning: "There is no such listing",
    example: "There is no such listing.",
  },
  product_not_found: {
    status: 404,
    meaning: "There is no such product",
    example: "There is no such product.",
  },
  link_not_found: {
    status: 404,
    meaning: "There is no such link, or the contract behind it is not active any more",
    example: "This link does not lead anywhere, or not any more.",
  },
  method_not_allowed: {
    status: 405,
    meaning: "The address answers to other methods; the Allow header lists them",
    example: "This address answers to POST only.",
  },
  voucher_used: {
    status: 409,
    meaning: "The voucher was redeemed under another reference; that is final",
    example: REFUSAL_SENTENCE.voucher_used,
  },
  voucher_voided: {
    status: 409,
    meaning: "The issuer cancelled the voucher; that is final",
    example: REFUSAL_SENTENCE.voucher_voided,
  },
  voucher_expired: {
    status: 409,
    meaning: "The voucher's validUntil has passed; that is final",
    example: REFUSAL_SENTENCE.voucher_expired,
  },
  reservation_ended: {
    status: 409,
    meaning: "The hold of this ticket ran out, was released or was consumed; the voucher itself may still be good",
    example: REFUSAL_SENTENCE.reservation_ended,
  },
  token_mismatch: {
    status: 409,
    meaning: "The token that was sent is not the token of the voucher's live hold, or there is no live hold",
    example: REFUSAL_SENTENCE.token_mismatch,
  },
  voucher_reserved: {
    status: 409,
    meaning: "Another key of the same organization holds the voucher",
    example: REFUSAL_SENTENCE.voucher_reserved,
  },
  sold_out: {
    status: 409,
    meaning: "The window is open and empty",
    example: "There is nothing left.",
  },
  window_closed: {
    status: 409,
    meaning: "There is no window of this kind, or it is not open yet, or not any more",
    example: "This offer is not open at the moment.",
  },
  rate_limited: {
    status: 429,
    meaning: "Too many calls came from the caller; `Retry-After` says when there may be more",
    example: "There were too many requests. Please try again in a moment.",
  },
  too_many_misses: {
    status: 429,
    meaning:
      "The key has tried too many codes that do not exist. No code is looked up for it until `Retry-After`; tickets and retries of confirmed references go on",
    example: "Too many codes that do not exist were tried. Please try again later.",
  },
  redeem_timeout: {
    status: 503,
    meaning: "No worker got to the redemption in time and it was taken back; nothing was burned",
    example: "The voucher could not be redeemed in time. Nothing was burned. Please try again.",
  },
  redeem_unknown: {
    status: 503,
    meaning: "Whether the voucher was burned is not known yet; the same reference tells",
    example:
      "It is not known yet whether the voucher was redeemed. Retry with the same externalRef to find out; it cannot burn twice.",
  },
  voucher_busy: {
    status: 503,
    meaning: "Something else keeps the voucher locked; nothing was changed",
    example: "This voucher is being changed at the moment. Please try again.",
  },
  overloaded: {
    status: 503,
    meaning: "Too many calls are waiting; nothing was changed",
    example: "The service is busy. Please try again.",
  },
  unavailable: {
    status: 503,
    meaning: "The service cannot reach a server that it needs",
    example: "The service is not available at the moment. Please try again.",
  },
  internal_error: {
    status: 500,
    meaning: "A fault of the service; its requestId helps to find it",
    example: "Something went wrong on our side.",
  },
} as const satisfies Record<ErrorCode, ErrorDescription>;

/** The HTTP status that an error code is answered with. */
export function statusOf(code: ErrorCode): number {
  return ERRORS[code].status;
}
