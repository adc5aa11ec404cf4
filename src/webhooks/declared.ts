import { z } from "zod";
import { metric } from "../core/metrics/metric-definitions.ts";
import { wingMetrics } from "../core/metrics/metrics.ts";
import type { ErrorKind } from "../platform/api/errors.ts";
import { orNull, secret, wingVariables } from "../platform/environment.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";

export const webhookVariables = wingVariables("webhooks", {
  /** The secret from which the endpoints' secrets are derived. Null: this deployment has no webhooks. */
  secret: orNull(z.string().min(32, "must be at least 32 characters long")).meta(secret("WEBHOOK_SECRET")),
});

export const WEBHOOK_QUEUE = {
  name: "webhook",
  needs: "WEBHOOK_SECRET",
  dataMaxBytes: 256,
  // An endpoint has at most one waiting job.
  waitingMax: 10_000,
  withdrawOnTimeout: false,
  keep: { age: 30, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: ["endpointId"], reply: "all" },
  about: { field: "endpointId", collection: "webhooks", label: "Endpoint" },
  whilePaused: "While it is paused, webhooks wait.",
} as const satisfies QueueSettings;

/** Seconds: from the response of an endpoint in the same network to the tenth attempt after three days. */
const WEBHOOK_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 15, 60, 600, 3_600, 36_000, 300_000];

export const WEBHOOK_METRICS = wingMetrics({
  webhookDeliveries: {
    ...metric("counter", "worker", "voucher_webhook_deliveries_total", "result"),
    help: "Attempts to deliver an event to an endpoint: delivered, to be retried, or failed for good.",
    zero: ["delivered", "retried", "failed"],
  },
  webhookDelay: {
    ...metric("histogram", "worker", "voucher_webhook_delay_seconds"),
    help: "Time from an event's commit to the answer of the endpoint that accepted it. Replays do not count.",
    buckets: WEBHOOK_BUCKETS,
  },
  webhookEndpointsDisabled: {
    ...metric("counter", "worker", "voucher_webhook_endpoints_disabled_total", "reason"),
    help: "Endpoints that were disabled because they answered 410 (gone) or only failed for days (failing).",
    zero: ["gone", "failing"],
  },
  webhookRefusedAddresses: {
    ...metric("counter", "worker", "voucher_webhook_refused_addresses_total"),
    help: "Requests to endpoints that were not sent because the name led to an address that is not public.",
  },
  webhookPending: {
    ...metric("gauge", "api", "voucher_webhook_pending"),
    help: "Deliveries that are not finished, counted up to 100 000.",
  },
  webhookOldestDue: {
    ...metric("gauge", "api", "voucher_webhook_oldest_due_seconds"),
    help: "How long the delivery that is due longest has been due, without those of failing endpoints; 0 when none is.",
  },
  webhookOutbox: {
    ...metric("gauge", "api", "voucher_webhook_outbox"),
    help: "Transactions whose events wait to become deliveries, counted up to 100 000.",
  },
});

export const WEBHOOK_ERRORS = {
  webhook_not_found: { code: "webhook_not_found", status: 404, sentence: (t) => t("errors.webhook_not_found") },
  webhooks_off: { code: "webhooks_off", status: 404, sentence: (t) => t("errors.webhooks_off") },
  webhook_limit: { code: "webhook_limit", status: 409, sentence: (t) => t("errors.webhook_limit") },
  webhook_disabled: { code: "webhook_disabled", status: 409, sentence: (t) => t("errors.webhook_disabled") },
} as const satisfies Record<string, ErrorKind>;

/** The errors of each operation on one endpoint. */
export const WEBHOOK = [
  WEBHOOK_ERRORS.webhook_not_found,
  WEBHOOK_ERRORS.webhooks_off,
  "overloaded",
  "unavailable",
] as const;
