import { z } from "zod";
import { isKeyName } from "#tlog/note.ts";
import { metric } from "../core/metrics/metric-definitions.ts";
import { wingMetrics } from "../core/metrics/metrics.ts";
import type { ErrorKind } from "../platform/api/errors.ts";
import { integer, orNull, wingVariables } from "../platform/environment.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";

export const tlogVariables = wingVariables("transparency", {
  /** The file with the keys that sign checkpoints. Null: this process does not run the sequencer. */
  keyFile: orNull(z.string()).meta({ title: "LOG_KEY_FILE" }),
  /** The name that the key must have. Null accepts any name. */
  origin: orNull(z.string().refine(isKeyName, "must be a name like vouchers.example.com/log")).meta({
    title: "LOG_ORIGIN",
  }),
  /** Files in which the log's worker keeps the last checkpoint. */
  anchors: z
    .string()
    // A folder may contain a comma in its name.
    .transform((text) => text.split(/[\s,]*,\s*(?=file:|$)/).filter(Boolean))
    .refine((entries) => entries.every((entry) => /^file:\/./.test(entry)), "must be like file:/absolute/path")
    .transform((entries) => entries.map((entry) => entry.slice("file:".length)))
    .default([])
    .meta({ title: "LOG_ANCHOR" }),
  /** The file with the policy. Null requires no witness. */
  policyFile: orNull(z.string()).meta({ title: "LOG_POLICY" }),
  /** The upper limit is half of the time after which sealed events without a checkpoint count as a fault. */
  intervalMs: integer(100, 30_000).default(1_000).meta({ title: "LOG_INTERVAL_MS" }),
});

export const TLOG_QUEUE = {
  name: "log",
  needs: "LOG_KEY_FILE",
  dataMaxBytes: 64,
  waitingMax: 1,
  withdrawOnTimeout: false,
  // A pass runs every second.
  keep: { age: 3_600, count: 1_000 },
  keepFailed: { age: 86_400, count: 1_000 },
  shown: { data: [], reply: "all" },
  whilePaused: "While it is paused, events get no position in the log and no receipt.",
} as const satisfies QueueSettings;

export const TLOG_METRICS = wingMetrics({
  logSize: {
    ...metric("gauge", "api", "voucher_log_size"),
    help: "Leaves of the log that the served checkpoint covers.",
  },
  logLag: {
    ...metric("gauge", "api", "voucher_log_lag_seconds"),
    help: "Age of the served checkpoint while sealed events wait for the next one; 0 when none waits.",
  },
  logLeaves: {
    ...metric("counter", "worker", "voucher_log_leaves_total"),
    help: "Leaves that got their position in the log.",
  },
  logRefused: {
    ...metric("gauge", "worker", "voucher_log_refused", "reason"),
    help: "Whether the last pass of the log could not publish, by reason: 1 or 0.",
    zero: ["contradiction", "witnesses", "anchor", "failed"],
  },
  logClaims: {
    ...metric("gauge", "worker", "voucher_log_witness_claims"),
    help: "Witnesses that contradict the log without a proof, while the others meet the quorum.",
  },
  logSetAside: {
    ...metric("gauge", "worker", "voucher_log_batches_set_aside"),
    help: "Leaf batches without a position in the log: the sequence has not drawn their ids. Counts at most 10.",
  },
});

export const TLOG_ERRORS = {
  not_logged_yet: {
    code: "not_logged_yet",
    status: 409,
    retryAfterSeconds: 1,
    sentence: (t) => t("errors.not_logged_yet"),
    heading: (t) => t("error.notLogged"),
    looksAgain: true,
  },
  payload_erased: { code: "payload_erased", status: 410, sentence: (t) => t("errors.payload_erased") },
} as const satisfies Record<string, ErrorKind>;
