import { type ErrorCode, REFUSAL_CODES } from "./errors.ts";

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
