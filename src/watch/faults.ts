import type { Facts, FaultOfWing } from "./facts.ts";
import type { Found, Severity } from "./found.ts";
import * as counts from "./judge-counts.ts";
import * as data from "./judge-data.ts";
import * as redeeming from "./judge-redeeming.ts";

/** All severities, lowest first. */
const SEVERITIES: readonly Severity[] = ["grey", "amber", "red"];

/** The kinds of harm, worst first. */
const HARMS = [
  "nothing is redeemed",
  "some are refused",
  "proof is late",
  "webhooks are late",
  "sign-ins fail",
  "stock",
] as const;

/** One kind of fault. */
export interface Fault {
  /** The name of its runbook entry, which says what to do, and of its Prometheus alert, if it has one. */
  name: string;
  severity: Severity;
  /** The severity for another queue than that of redeems, if it differs. The alert then has a rule for each. */
  ofOtherQueues?: Severity;
  harm: (typeof HARMS)[number];
  /** The measured quantity. */
  measure: string;
  /**
   * A greater measure is a fault. The Prometheus alert compares with the same number. Null if there is nothing to
   * compare.
   */
  limit: number | null;
  /** Finds the faults for the overview. Returns null if it cannot tell, so that earlier faults stay. */
  find: ((facts: Facts, limit: number, before: readonly { what: string }[]) => Found[] | null) | null;
  hasAlert: boolean;
  /** Why the service cannot find it by itself; null if it can. */
  unseen: string | null;
}

/** The kind of fault that a process can find about itself alone. */
export const OF_ONE_PROCESS = "VouchersServerAway";

const [NOTHING, SOME, PROOF, WEBHOOKS, SIGN_INS, STOCK] = HARMS;

function fault(
  name: string,
  severity: Severity,
  harm: Fault["harm"],
  measure: string,
  limit: number | null,
  find: Fault["find"],
): Fault {
  return { name, severity, harm, measure, limit, find, hasAlert: true, unseen: null };
}

/** A red fault that only Prometheus can find. */
function onlyPrometheus(name: string, harm: Fault["harm"], measure: string, unseen: string): Fault {
  return { ...fault(name, "red", harm, measure, null, null), unseen };
}

/** Like `fault`, for a fault that a wing finds. Without the wing it never occurs. */
function inWing(name: FaultOfWing, severity: Severity, harm: Fault["harm"], measure: string, limit: number): Fault {
  const find: Fault["find"] = ({ database }) => database && (database.ofWings[name]?.(limit) ?? []);
  return fault(name, severity, harm, measure, limit, find);
}

/** Like `fault`, for a fault of a queue. */
const byQueue = (...row: Parameters<typeof fault>): Fault => ({
  ...fault(...row),
  ofOtherQueues: redeeming.OF_OTHER_QUEUES,
});

/** Like `fault`, for a fault that Prometheus does not find. */
const onlyOverview = (...row: Parameters<typeof fault>): Fault => ({ ...fault(...row), hasAlert: false });

/**
 * All kinds of faults, in the order in which operators see them. The list of the overview is made from this table. A
 * test compares it with the Prometheus rules and with the runbook.
 */
export const FAULTS: readonly Fault[] = [
  // One locked voucher must not look like an outage: missing responses are red only if they concern more vouchers than
  // this. A failing probe, a pause or missing heartbeats are red without any redeems.
  fault("VouchersNothingRedeemed", "red", NOTHING, "vouchers without an answer", 2, redeeming.findNothingRedeemed),
  onlyPrometheus("VouchersApiDown", NOTHING, "API processes that Prometheus reaches", "no API process is left to look"),
  onlyPrometheus(
    "VouchersWorkersDown",
    NOTHING,
    "worker processes that Prometheus reaches",
    "VouchersShardUnserved tells it",
  ),
  fault(OF_ONE_PROCESS, "red", NOTHING, "servers that readiness refuses", null, redeeming.findServersAway),
  onlyOverview("StandbyAway", "red", NOTHING, "synchronous standbys that are missing", 0, redeeming.findStandbyAway),
  byQueue("VouchersQueuePaused", "red", SOME, "paused queues", 0, redeeming.findPausedQueues),
  byQueue("VouchersShardUnserved", "red", SOME, "shards without a heartbeat", null, redeeming.findUnservedQueues),
  fault("VouchersShardAway", "red", SOME, "shards whose servers do not take jobs", null, redeeming.findShardsAway),
  fault("VouchersRedeemsUnanswered", "red", SOME, "redeems of a minute without an answer", 2, redeeming.findUnanswered),
  fault("VouchersOverloaded", "red", SOME, "calls refused because too many wait", 0, counts.findOverloaded),
  fault("VouchersQueueBacklog", "red", SOME, "seconds for which a redeem waits", 2, redeeming.findBacklog),
  fault("VouchersErrors", "red", SOME, "share of responses with 5xx", 0.01, counts.findErrors),
  fault(
    "VouchersForeignMessages",
    "red",
    SOME,
    "messages of another deployment or database",
    0,
    counts.findForeignMessages,
  ),
  fault("VouchersClockAhead", "red", SOME, "seconds by which the clock has jumped", 0, redeeming.findClockAhead),
  fault("VouchersProcessDown", "amber", SOME, "processes that are gone", null, redeeming.findVanishedProcesses),
  fault("VouchersEventLoopBlocked", "amber", SOME, "minutes of stalls", 5, redeeming.findStallingProcesses),
  fault(
    "VouchersPoolExhausted",
    "amber",
    SOME,
    "calls that wait for a connection to Postgres",
    0,
    counts.findExhaustedPools,
  ),
  fault("VouchersRedeemSlow", "amber", SOME, "seconds within which 99 % of redeems end", 1, counts.findSlowRedeems),
  fault("VouchersInternalErrors", "amber", SOME, "unexpected errors", 0, counts.findInternalErrors),
  fault(
    "VouchersReferencesReused",
    "amber",
    SOME,
    "references used for another voucher",
    0,
    counts.findReferencesReused,
  ),
  fault("VouchersCodesGuessed", "amber", SOME, "keys with too many misses", 0, counts.findCodesGuessed),
  fault("VouchersJobsFail", "amber", SOME, "failed jobs", 0, data.findFailedJobs),
  fault("VouchersChainBroken", "red", PROOF, "histories that do not verify", 0, data.findBrokenChains),
  inWing("VouchersLogRefused", "red", PROOF, "refused passes of the log", 0),
  inWing("VouchersLogWitness", "amber", PROOF, "claims of witnesses", 0),
  inWing("VouchersLogSetAside", "amber", PROOF, "leaf batches set aside", 0),
  inWing("VouchersLogStopped", "amber", PROOF, "passes without a checkpoint", 0),
  inWing("VouchersLogLag", "amber", PROOF, "seconds for which leaves wait for a checkpoint", 60),
  fault("VouchersSealLag", "amber", PROOF, "seconds for which an event waits for its seal", 60, data.findSealLag),
  fault("VouchersSweeperStopped", "amber", PROOF, "seconds without a pass", 300, data.findSilentSweeper),
  fault("VouchersSweepFails", "amber", PROOF, "failures of a task", 3, counts.findSweepFailures),
  fault("VouchersLogLinesDropped", "amber", PROOF, "log lines that were dropped", 0, counts.findDroppedLines),
  inWing("VouchersWebhooksLate", "amber", WEBHOOKS, "seconds for which a webhook is due", 60),
  inWing("VouchersWebhooksFail", "amber", WEBHOOKS, "attempts without a success", 20),
  inWing("VouchersWebhookOutboxGrows", "amber", WEBHOOKS, "transactions in the outbox", 1_000),
  inWing("VouchersWebhookEndpointDisabled", "amber", WEBHOOKS, "disabled endpoints", 0),
  onlyOverview("AlertsFail", "amber", WEBHOOKS, "messages that ALERT_URL did not accept", 0, data.findFailingAlerts),
  onlyOverview("SignInsFail", "amber", SIGN_INS, "failed sign-ins to the operator pages", 0, counts.findFailedSignIns),
  onlyOverview("BatchEnds", "grey", STOCK, "batches that end or are sold out", 0, data.findBatchEnds),
];

/** Orders faults: red ones first, and faults of equal severity by their harm, worst first. */
export function compareFaults(a: Placed, b: Placed): number {
  const bySeverity = SEVERITIES.indexOf(b.severity) - SEVERITIES.indexOf(a.severity);
  return bySeverity || placeOf(a.runbook) - placeOf(b.runbook);
}

interface Placed {
  severity: Severity;
  /** The name of the fault's kind. */
  runbook: string;
}

const placeOf = (name: string) => FAULTS.findIndex((one) => one.name === name);
