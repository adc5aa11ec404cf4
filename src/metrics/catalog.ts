import { SWEEP_TASKS } from "../contract/jobs.ts";
import type { MetricDefinition } from "./definition.ts";

/** Seconds; from a look-up on a quiet machine to a redeem that timed out. */
const REQUEST_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
/** Seconds; from a lone job on a quiet machine to a wait that timed out. */
const REDEEM_BUCKETS = [0.001, ...REQUEST_BUCKETS];
/** Seconds; a batch takes milliseconds, and seconds when it waits for a locked row. */
const BATCH_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Seconds; from an endpoint in the same network to the tenth attempt after three days. */
const WEBHOOK_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 15, 60, 600, 3_600, 36_000, 300_000];
/** Seconds; each of the sweeper's tasks may run for two seconds. */
const SWEEP_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
/** Powers of two up to the largest batch. */
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Most brands that one process reports by name. Each one is a series in Prometheus until the process ends. */
const BRANDS_MAX = 100;

/** Declares every metric of the service. Code refers to a metric by its key here. */
export const METRICS = {
  requestDuration: {
    name: "voucher_http_request_duration_seconds",
    type: "histogram",
    process: "api",
    help: "Time from a request's arrival to the end of its response, by route pattern.",
    labels: ["route", "method", "status"],
    buckets: REQUEST_BUCKETS,
  },
  refusals: {
    name: "voucher_refusals_total",
    type: "counter",
    process: "api",
    help: "Requests that were answered with an error, by error code.",
    labels: ["code"],
  },
  redemptions: {
    name: "voucher_redemptions_total",
    type: "counter",
    process: "api",
    help: "Redemptions that this process confirmed for the first time, by brand.",
    labels: ["brand"],
    valuesMax: BRANDS_MAX,
  },
  stockLeft: {
    name: "voucher_stock_left",
    type: "gauge",
    process: "api",
    help: "Vouchers that can still be acquired from the newest 100 listings, by brand; each listing is counted up to 1 000.",
    labels: ["brand"],
    valuesMax: BRANDS_MAX,
  },
  redeemWait: {
    name: "voucher_redeem_wait_seconds",
    type: "histogram",
    process: "api",
    help: "What a redeem waited for: a worker (queue), its decision and commit (transaction), the way there and back (reply).",
    labels: ["phase"],
    buckets: REDEEM_BUCKETS,
  },
  referencesReused: {
    name: "voucher_redeem_reference_reused_total",
    type: "counter",
    process: "api",
    help: "Redeems whose reference had redeemed another voucher: the response has otherVoucher.",
    labels: [],
  },
  serverUp: {
    name: "voucher_server_up",
    type: "gauge",
    process: "api",
    help: "Whether Postgres and Redis answered this process within two seconds: 1 or 0.",
    labels: ["server"],
  },
  shardUp: {
    name: "voucher_shard_up",
    type: "gauge",
    process: "api",
    help: "Whether the Redis server of each shard of the queues answered this process: 1 or 0.",
    labels: ["shard"],
  },
  queueJobs: {
    name: "voucher_queue_jobs",
    type: "gauge",
    process: "api",
    help: "Jobs in one shard of a queue: waiting for a worker, active, or failed and kept for inspection.",
    labels: ["queue", "shard", "state"],
  },
  queueFetchers: {
    name: "voucher_queue_fetchers",
    type: "gauge",
    process: "worker",
    help: "Connections on which this process fetches jobs of a shard of a queue.",
    labels: ["queue", "shard"],
  },
  queueOldestWaiting: {
    name: "voucher_queue_oldest_waiting_seconds",
    type: "gauge",
    process: "api",
    help: "Age of the oldest job that waits for a worker in a shard of a queue; 0 when none waits.",
    labels: ["queue", "shard"],
  },
  liveReservations: {
    name: "voucher_live_reservations",
    type: "gauge",
    process: "api",
    help: "Live reservations, counted up to 100 000.",
    labels: [],
  },
  sealLag: {
    name: "voucher_seal_lag_seconds",
    type: "gauge",
    process: "api",
    help: "Age of the oldest event that waits for its seal; 0 when none waits.",
    labels: [],
  },
  brokenChains: {
    name: "voucher_chains_broken",
    type: "gauge",
    process: "api",
    help: "Chains that were broken at their last check, counted up to 1 000.",
    labels: [],
  },
  clockAhead: {
    name: "voucher_database_clock_ahead_seconds",
    type: "gauge",
    process: "api",
    help: "How far the database's clock has jumped ahead of the time that has passed; 0 if it has not.",
    labels: [],
  },
  foreignMessages: {
    name: "voucher_foreign_messages_total",
    type: "counter",
    process: "every",
    help: "Jobs and replies in Redis that were refused because they belong to another deployment or database.",
    labels: ["message"],
    zero: ["job", "reply"],
  },
  batchItems: {
    name: "voucher_batch_items",
    type: "histogram",
    process: "every",
    help: "Items in one batch: redeems, seals, acquisitions or reservation changes in a transaction, look-ups in a statement.",
    labels: ["batch"],
    buckets: SIZE_BUCKETS,
  },
  batchDuration: {
    name: "voucher_batch_duration_seconds",
    type: "histogram",
    process: "every",
    help: "Time that a batch takes, including its waits in Postgres.",
    labels: ["batch"],
    buckets: BATCH_BUCKETS,
  },
  poolConnections: {
    name: "voucher_postgres_pool_connections",
    type: "gauge",
    process: "every",
    help: "Open connections to Postgres, in use (busy) or not (idle).",
    labels: ["state"],
  },
  poolConnectionsMax: {
    name: "voucher_postgres_pool_connections_max",
    type: "gauge",
    process: "every",
    help: "Most connections to Postgres that the pool opens.",
    labels: [],
  },
  poolWaitingCalls: {
    name: "voucher_postgres_pool_waiting_calls",
    type: "gauge",
    process: "every",
    help: "Calls that wait for a connection to Postgres.",
    labels: [],
  },
  sweepDuration: {
    name: "voucher_sweep_duration_seconds",
    type: "histogram",
    process: "worker",
    help: "Time that one pass of the sweeper takes.",
    labels: [],
    buckets: SWEEP_BUCKETS,
  },
  sweepItems: {
    name: "voucher_sweep_items_total",
    type: "counter",
    process: "worker",
    help: "Items that the sweeper processed, by task.",
    labels: ["task"],
    zero: Object.keys(SWEEP_TASKS),
  },
  sweepFailures: {
    name: "voucher_sweep_failures_total",
    type: "counter",
    process: "worker",
    help: "Failures of the sweeper's tasks; the next pass retries them.",
    labels: ["task"],
    zero: [...Object.keys(SWEEP_TASKS), "countActivity", "checkChains"],
  },
  logSize: {
    name: "voucher_log_size",
    type: "gauge",
    process: "api",
    help: "Leaves of the log that the served checkpoint covers.",
    labels: [],
  },
  logLag: {
    name: "voucher_log_lag_seconds",
    type: "gauge",
    process: "api",
    help: "Age of the served checkpoint while sealed events wait for the next one; 0 when none waits.",
    labels: [],
  },
  logLeaves: {
    name: "voucher_log_leaves_total",
    type: "counter",
    process: "worker",
    help: "Leaves that got their place in the log.",
    labels: [],
  },
  logRefused: {
    name: "voucher_log_refused",
    type: "gauge",
    process: "worker",
    help: "Whether the last pass of the log could not publish, by reason: 1 or 0.",
    labels: ["reason"],
    zero: ["contradiction", "witnesses", "anchor", "failed"],
  },
  logClaims: {
    name: "voucher_log_witness_claims",
    type: "gauge",
    process: "worker",
    help: "Witnesses that contradict the log without a proof, while the others meet the quorum.",
    labels: [],
  },
  webhookDeliveries: {
    name: "voucher_webhook_deliveries_total",
    type: "counter",
    process: "worker",
    help: "Attempts to deliver an event to an endpoint: delivered, to be retried, or failed for good.",
    labels: ["result"],
    zero: ["delivered", "retried", "failed"],
  },
  webhookDelay: {
    name: "voucher_webhook_delay_seconds",
    type: "histogram",
    process: "worker",
    help: "Time from an event's commit to the answer of the endpoint that accepted it. Replays do not count.",
    labels: [],
    buckets: WEBHOOK_BUCKETS,
  },
  webhookEndpointsDisabled: {
    name: "voucher_webhook_endpoints_disabled_total",
    type: "counter",
    process: "worker",
    help: "Endpoints that were disabled because they answered 410 (gone) or only failed for five days (failing).",
    labels: ["reason"],
    zero: ["gone", "failing"],
  },
  webhookRefusedAddresses: {
    name: "voucher_webhook_refused_addresses_total",
    type: "counter",
    process: "worker",
    help: "Requests to endpoints that were not sent because the name led to an address that is not public.",
    labels: [],
  },
  webhookPending: {
    name: "voucher_webhook_pending",
    type: "gauge",
    process: "api",
    help: "Deliveries that are not finished, counted up to 100 000.",
    labels: [],
  },
  webhookOldestDue: {
    name: "voucher_webhook_oldest_due_seconds",
    type: "gauge",
    process: "api",
    help: "How long the delivery that is due longest has been due, without those of failing endpoints; 0 when none is.",
    labels: [],
  },
  webhookOutbox: {
    name: "voucher_webhook_outbox",
    type: "gauge",
    process: "api",
    help: "Transactions whose events wait to become deliveries, counted up to 100 000.",
    labels: [],
  },
  chainsChecked: {
    name: "voucher_chains_checked_total",
    type: "counter",
    process: "worker",
    help: "Chains that the sweeper verified.",
    labels: [],
  },
} as const satisfies Record<string, MetricDefinition>;
