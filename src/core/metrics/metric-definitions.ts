/** One metric, as Prometheus sees it. */
export interface MetricDefinition {
  name: string;
  type: "counter" | "gauge" | "histogram";
  /** The processes that report it. */
  process: "api" | "worker" | "every";
  help: string;
  labels: readonly string[];
  /** Upper bounds of a histogram. */
  buckets?: readonly number[];
  /** Maximum number of a label's values in one process, if customers choose them. Further values count as `other`. */
  valuesMax?: number;
  /** Values of the metric's only label to report as 0 from the start, because `rate` misses a first increase. */
  zero?: readonly string[];
}

/** Seconds. From a look-up on an idle machine to a redeem that timed out. */
const REQUEST_BUCKETS = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
/** Seconds. From a single job on an idle machine to a wait that timed out. */
const REDEEM_BUCKETS = [0.001, ...REQUEST_BUCKETS];
/** Seconds. A batch takes milliseconds, or seconds if it waits for a locked row. */
const BATCH_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Seconds. Each of the sweeper's tasks may run for two seconds. */
const SWEEP_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15];
/** Powers of two up to the largest batch. */
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/** Maximum number of brands that a process reports by name. Prometheus keeps each series until the process ends. */
export const BRANDS_MAX = 100;

/** A metric's type, the processes that report it, its name and its labels. */
export const metric = <
  const Type extends MetricDefinition["type"],
  const Process extends MetricDefinition["process"],
  const Labels extends readonly string[],
>(
  type: Type,
  process: Process,
  name: string,
  ...labels: Labels
) => ({ type, process, name, labels });

/** Metrics, by the keys with which code refers to them. */
export type MetricTable = Readonly<Record<string, MetricDefinition>>;

/** Every metric of the core. */
export const METRICS = {
  requestDuration: {
    ...metric("histogram", "api", "voucher_http_request_duration_seconds", "route", "method", "status"),
    help: "Time from a request's arrival to the end of its response, by route pattern.",
    buckets: REQUEST_BUCKETS,
  },
  refusals: {
    ...metric("counter", "api", "voucher_refusals_total", "code"),
    help: "Requests that were answered with an error, by error code.",
  },
  callsDropped: {
    ...metric("counter", "api", "voucher_calls_dropped_total"),
    help: "Calls that operators do not see among a partner's last calls, because Redis did not take them in time.",
  },
  redemptions: {
    ...metric("counter", "api", "voucher_redemptions_total", "brand"),
    help: "Redemptions that this process confirmed for the first time, by brand.",
    valuesMax: BRANDS_MAX,
  },
  redeemWait: {
    ...metric("histogram", "api", "voucher_redeem_wait_seconds", "phase"),
    help:
      "What a redeem waited for: a worker (queue), its decision and commit (transaction), the way there and back " +
      "(reply).",
    buckets: REDEEM_BUCKETS,
  },
  canarySilence: {
    ...metric("gauge", "api", "voucher_canary_silent_seconds", "shard"),
    help: "For how long this process has had no answer to its canaries in a shard of the redeem queue.",
  },
  signInsFailed: {
    ...metric("counter", "api", "voucher_sign_ins_failed_total"),
    help: "Failed sign-ins to the operator pages.",
  },
  referencesReused: {
    ...metric("counter", "api", "voucher_redeem_reference_reused_total"),
    help: "Redeems whose reference had redeemed another voucher: the response has otherVoucher.",
  },
  serverUp: {
    ...metric("gauge", "api", "voucher_server_up", "server"),
    help: "Whether Postgres and Redis answered this process within two seconds and took a write: 1 or 0.",
  },
  shardUp: {
    ...metric("gauge", "api", "voucher_shard_up", "shard"),
    help: "Whether the Redis server of each shard of the queues answered and took a write: 1 or 0.",
  },
  queueJobs: {
    ...metric("gauge", "api", "voucher_queue_jobs", "queue", "shard", "state"),
    help: "Jobs in one shard of a queue: waiting for a worker, active, or failed and kept for inspection.",
  },
  queuePaused: {
    ...metric("gauge", "api", "voucher_queue_paused", "queue", "shard"),
    help: "Whether a shard of a queue is paused: 1 or 0.",
  },
  queueFetchers: {
    ...metric("gauge", "worker", "voucher_queue_fetchers", "queue", "shard"),
    help: "Connections on which this process fetches jobs of a shard of a queue.",
  },
  queueOldestWaiting: {
    ...metric("gauge", "api", "voucher_queue_oldest_waiting_seconds", "queue", "shard"),
    help: "Age of the oldest job that waits for a worker in a shard of a queue; 0 when none waits.",
  },
  liveReservations: {
    ...metric("gauge", "api", "voucher_live_reservations"),
    help: "Live reservations, counted up to 100 000.",
  },
  sealLag: {
    ...metric("gauge", "api", "voucher_seal_lag_seconds"),
    help: "Age of the oldest event that waits for its seal; 0 when none waits.",
  },
  brokenChains: {
    ...metric("gauge", "api", "voucher_chains_broken"),
    help: "Chains that were broken at their last check, counted up to 1 000.",
  },
  clockAhead: {
    ...metric("gauge", "api", "voucher_database_clock_ahead_seconds"),
    help: "How far the database's clock has jumped ahead of the time that has passed; 0 if it has not.",
  },
  foreignMessages: {
    ...metric("counter", "every", "voucher_foreign_messages_total", "message"),
    help: "Jobs and replies in Redis that were refused because they belong to another deployment or database.",
    zero: ["job", "reply"],
  },
  batchItems: {
    ...metric("histogram", "every", "voucher_batch_items", "batch"),
    help:
      "Items in one batch: redeems, seals, acquisitions or reservation changes in a transaction, look-ups in a " +
      "statement.",
    buckets: SIZE_BUCKETS,
  },
  batchDuration: {
    ...metric("histogram", "every", "voucher_batch_duration_seconds", "batch"),
    help: "Time that a batch takes, including its waits in Postgres.",
    buckets: BATCH_BUCKETS,
  },
  eventLoopStall: {
    ...metric("gauge", "every", "voucher_event_loop_stall_seconds"),
    help:
      "Longest time since the last scrape for which the process could not work: its event loop was blocked, or it " +
      "was frozen.",
  },
  logLinesDropped: {
    ...metric("counter", "every", "voucher_log_lines_dropped_total"),
    help: "Log lines that were dropped because standard output did not accept them.",
  },
  poolConnections: {
    ...metric("gauge", "every", "voucher_postgres_pool_connections", "state"),
    help: "Open connections to Postgres, in use (busy) or not (idle).",
  },
  poolConnectionsMax: {
    ...metric("gauge", "every", "voucher_postgres_pool_connections_max"),
    help: "Most connections to Postgres that the pool opens.",
  },
  poolWaitingCalls: {
    ...metric("gauge", "every", "voucher_postgres_pool_waiting_calls"),
    help: "Calls that wait for a connection to Postgres.",
  },
  sweepDuration: {
    ...metric("histogram", "worker", "voucher_sweep_duration_seconds"),
    help: "Time that one pass of the sweeper takes.",
    buckets: SWEEP_BUCKETS,
  },
  sweepItems: {
    ...metric("counter", "worker", "voucher_sweep_items_total", "task"),
    help: "Items that the sweeper processed, by task.",
  },
  sweepFailures: {
    ...metric("counter", "worker", "voucher_sweep_failures_total", "task"),
    help: "Failures of the sweeper's tasks; the next pass retries them.",
  },
  chainsChecked: {
    ...metric("counter", "worker", "voucher_chains_checked_total"),
    help: "Chains that the sweeper verified.",
  },
} as const satisfies MetricTable;
