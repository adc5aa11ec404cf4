import { BRANDS_MAX, metric } from "../core/metrics/metric-definitions.ts";
import { wingMetrics } from "../core/metrics/metrics.ts";
import type { ErrorKind } from "../platform/api/errors.ts";

export const MARKETPLACE_METRICS = wingMetrics({
  stockLeft: {
    ...metric("gauge", "api", "voucher_stock_left", "brand"),
    help:
      "Vouchers that can still be acquired from the newest 100 listings, by brand; each listing is counted up to 1 " +
      "000.",
    valuesMax: BRANDS_MAX,
  },
});

export const MARKETPLACE_ERRORS = {
  listing_not_found: {
    code: "listing_not_found",
    status: 404,
    sentence: (t) => t("errors.listing_not_found"),
    heading: (t) => t("marketplace.listings.unknown"),
  },
  product_not_found: { code: "product_not_found", status: 404, sentence: (t) => t("errors.product_not_found") },
  link_not_found: {
    code: "link_not_found",
    status: 404,
    sentence: (t) => t("errors.link_not_found"),
    heading: (t) => t("marketplace.link.dead"),
  },
  referrers_only: { code: "referrers_only", status: 403, sentence: (t) => t("errors.referrers_only") },
  window_closed: { code: "window_closed", status: 409, sentence: (t) => t("errors.window_closed") },
  sold_out: { code: "sold_out", status: 409, sentence: (t) => t("errors.sold_out") },
} as const satisfies Record<string, ErrorKind>;

/** The errors of each claim and purchase. */
export const ACQUISITION = [
  MARKETPLACE_ERRORS.referrers_only,
  MARKETPLACE_ERRORS.window_closed,
  "voucher_suspended",
  MARKETPLACE_ERRORS.sold_out,
  "voucher_busy",
  "overloaded",
  "unavailable",
] as const;
