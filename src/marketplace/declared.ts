import { BRANDS_MAX, metric } from "../core/metrics/metric-definitions.ts";
import { wingMetrics } from "../core/metrics/metrics.ts";

export const MARKETPLACE_METRICS = wingMetrics({
  stockLeft: {
    ...metric("gauge", "api", "voucher_stock_left", "brand"),
    help:
      "Vouchers that can still be acquired from the newest 100 listings, by brand; each listing is counted up to 1 " +
      "000.",
    valuesMax: BRANDS_MAX,
  },
});
