import pTimeout from "p-timeout";
import type pg from "pg";
import { onSnapshot } from "../../../src/platform/db/transaction.ts";
import { auditTlog } from "../../../src/transparency/audit-log.ts";
import { HOSTILE_KINDS, type HostileKind, startHostileReceiver } from "../../support/hostile-receiver.ts";
import { KeptNotes } from "../../support/kept-notes.ts";
import { beginTlog, makeTlogFiles, startWitness } from "../../support/log-setup.ts";
import { PATIENT_MS, until } from "../../support/until.ts";
import { type IssuerKey, makeIssuerKey, writeKeysFile } from "../../support/user-tokens.ts";
import { WEBHOOK_ENV } from "../../support/webhook-receiver.ts";
import { type CampaignSetup, setUpCampaign, startCallers } from "./campaign-setup.ts";
import { checkDeliveries } from "./campaign-webhooks.ts";
import { checkAnswersAgain, checkEverything, checkUntouched, untilReady, violation } from "./checker.ts";
import { type Cluster, openCluster, processesOf } from "./cluster.ts";
import { checkFollowed } from "./feed-followers.ts";
import { isFile } from "./files.ts";
import { FLOODED_OPS_TOKEN } from "./floods.ts";
import { acquisitionOf, type History, type Operation, refOf, type Violation } from "./history.ts";
import { inflictFaults, TARGET_NAMES, type TargetName, targetsOnCluster } from "./nemesis.ts";
import { RESERVATION_SECONDS, upcomingOf } from "./organizations.ts";
import { hasPatroni, PatroniPostgres } from "./patroni.ts";
import { isConfirmed } from "./rules.ts";
import { hasFakeTime } from "./stepped-clock.ts";

export interface CampaignOptions {
  seed: number;
  /** How long faults are inflicted, without recovery and checks. */
  faultsMs: number;
  /** Ends the campaign's faults after this many. */
  faultsMax?: number | undefined;
  /** The faults continue until this holds, because a slow machine needs longer for the same work. */
  isEnough?: (soFar: Progress) => boolean;
  /** Limits faults to these targets, to isolate a cause. */
  targets?: readonly TargetName[] | undefined;
  /** Uses a Redis Cluster, and, if Patroni is available, a Postgres that fails over. */
  onCluster?: boolean;
  keepLogsIn?: string | undefined;
  /** Ends the campaign early and skips the checks. */
  signal?: AbortSignal;
  onProgress?: (progress: Record<"elapsedMs" | "requests" | "faults" | "accidents", number>) => void;
}

/** The number of faults by kind, of answers, and of other results. */
export type Progress = ReturnType<typeof countProgress>;

export type Totals = Awaited<ReturnType<typeof runOn>>;

const REDEEM_WAIT_MS = 3_000;
const PROGRESS_MS = 10_000;

/**
 * Runs partners during faults, then ends all faults, finishes every open retry and checks all answers. The seed
 * determines the partners' choices and the faults, but not the timing.
 */
export async function runCampaign(options: CampaignOptions): Promise<Totals> {
  const issuer = await makeIssuerKey();
  const keys = writeKeysFile(issuer);
  const withPatroni = options.onCluster === true && hasPatroni();
  const clock = hasFakeTime();
  const known = options.onCluster ? targetsOnCluster(withPatroni) : TARGET_NAMES;
  const targets = options.targets ?? known.filter((name) => clock || name !== "clock");
  const cluster = await openCluster({
    ...(options.onCluster && { redisCluster: true }),
    ...(withPatroni && { openPostgres: (directory, logs) => PatroniPostgres.open(directory, logs) }),
    postgres: { standby: true, clock },
    redeemWaitMs: REDEEM_WAIT_MS,
    reservationSeconds: RESERVATION_SECONDS,
    issuerApi: true,
    keepLogsIn: options.keepLogsIn,
    env: {
      AUTH_JWKS_URL: keys.url,
      OPS_TOKEN: FLOODED_OPS_TOKEN,
      WEBHOOK_SECRET: WEBHOOK_ENV.WEBHOOK_SECRET,
      WEBHOOK_ALLOW_PRIVATE: "true",
      // A fault hits a process only after the process has logged that it serves.
      LOG_LEVEL: "info",
    },
  });
  const files = makeTlogFiles();
  const notes = new KeptNotes();
  const receivers: { kind: HostileKind; url: string; close(): Promise<void> }[] = [];
  for (const kind of HOSTILE_KINDS) receivers.push({ kind, ...(await startHostileReceiver(kind)) });
  const witness = await startWitness({ onClose: () => undefined }, files, 0, { before: (note) => notes.keep(note) });
  files.setWitnesses([witness.url]);
  try {
    await beginTlog(cluster.db, files);
    cluster.addTlogWorker(files.env);
    return await runOn(cluster, issuer, notes, receivers, { ...options, targets });
  } finally {
    await cluster.close();
    for (const receiver of receivers) await receiver.close();
    await witness.close();
    files.remove();
    keys.remove();
  }
}

/** Inflicts the faults, adds their counts, and returns the violations. */
async function inflict(
  setup: CampaignSetup,
  counts: Record<string, number>,
  { faultsMs: forMs, faultsMax: count, ...options }: CampaignOptions & { targets: readonly TargetName[] },
  length: { signal: AbortSignal; isEnough: () => boolean },
) {
  const { cluster, organizations, history, secondHistory } = setup;
  const violations: Violation[] = [];
  const progress = setInterval(() => {
    const faults = Object.values(counts).reduce((sum, count) => sum + count, 0);
    const [requests, accidents] = [history.exchanges.length, cluster.accidents.length];
    options.onProgress?.({ elapsedMs: setup.elapsedMs(), requests, faults, accidents });
  }, PROGRESS_MS);
  const scene = {
    cluster,
    secondDeployment: setup.secondDeployment,
    copyOfDatabase: setup.copyOfDatabase,
    flooder: setup.flooder,
    issuer: setup.first,
    history,
    upcomingVouchers: () => organizations.flatMap(upcomingOf),
    enableReceivers: setup.enableReceivers,
    counts,
    violations,
    onPrimaryLost: (fromMs = performance.now()) => {
      for (const { losses } of [history, secondHistory]) losses.push({ fromMs, untilMs: performance.now() });
    },
    onSetBack: (fromMs: number) => {
      for (const { setBacks } of [history, secondHistory]) setBacks.push({ fromMs, untilMs: performance.now() });
    },
  };
  const { signal, isEnough } = length;
  await inflictFaults(scene, options.targets, setup.random.fork("faults"), { forMs, count, isEnough }, signal).finally(
    () => clearInterval(progress),
  );
  signal.throwIfAborted();
  return violations;
}

/** Ends the callers of the second deployment, then checks their answers. */
async function checkSecond(
  { secondDeployment, secondHistory, cluster }: CampaignSetup,
  working: readonly Promise<void>[],
): Promise<Violation[]> {
  for (const process of processesOf(secondDeployment)) process.start();
  await untilReady(secondDeployment);
  const violations = await checkEnds(working, secondHistory);
  violations.push(...(await checkEverything(secondDeployment, secondHistory, cluster.postgres.clock)));
  return violations.map(({ rule, ...rest }) => ({ rule: `second deployment: ${rule}`, ...rest }));
}

async function runOn(
  cluster: Cluster,
  issuer: IssuerKey,
  notes: KeptNotes,
  receivers: readonly { kind: HostileKind; url: string }[],
  options: CampaignOptions & { targets: readonly TargetName[] },
) {
  const { db, postgres } = cluster;
  const { seed, signal = new AbortController().signal, isEnough = () => true } = options;
  const setup = await setUpCampaign(cluster, receivers, options);
  const { history, first, random } = setup;
  let open = true;
  const over = new AbortController();
  try {
    const { working, secondWorking, followed } = startCallers(setup, issuer, over.signal, () => open);
    const faults: Record<string, number> = {};
    const progress = () => countProgress(setup, faults, notes, followed);
    const length = { signal, isEnough: () => isEnough(progress()) };
    const violations = await inflict(setup, faults, options, length);
    await cluster.heal();
    open = false;
    const answeredAgain = await checkAnswersAgain(cluster, first.keys[0], setup.lastVouchers, history);
    violations.push(...answeredAgain.violations, ...(await checkEnds(working, history)));
    for (const kind of HOSTILE_KINDS) await setup.enableReceivers(kind, true);
    violations.push(...(await checkDeliveries(cluster, first, random.fork("deliveries"), history)));
    violations.push(...(await checkEverything(cluster, history, postgres.clock)));
    violations.push(...(await checkFollowed(db, cluster.apis, followed)));
    violations.push(...(await checkUntouched(setup.copyOfDatabase.db)), ...(await checkLog(db, notes)));
    violations.push(...(await checkSecond(setup, secondWorking)));
    return {
      ...progress(),
      seed,
      violations,
      elapsedMs: setup.elapsedMs(),
      /** How long every API process needed, after the last fault, to redeem again. Milliseconds. */
      answeredAgainMs: answeredAgain.tookMs,
    };
  } finally {
    open = false;
    over.abort();
    await Promise.all([setup.listener.close(), setup.proxies.close()]);
  }
}

/** Expects every sealed event in exactly one leaf, and no contradiction between signed checkpoints. */
async function checkLog(db: pg.Pool, notes: KeptNotes): Promise<Violation[]> {
  const problems: string[] = [];
  const isPublished = async () => {
    const { rows } = await db.query(
      `SELECT t.size = p.size AND NOT EXISTS (SELECT FROM log_batches WHERE first_index IS NULL) AS done
         FROM log_tree AS t, log_published AS p`,
    );
    return rows[0]?.done;
  };
  await until(isPublished).catch(() => problems.push("events still wait for their checkpoint"));
  problems.push(...(await notes.findProblems(db)), ...(await onSnapshot(db, auditTlog)).problems);
  return problems.map((detail) => violation("the log keeps what was signed", detail));
}

/** @throws a caller's failure. */
async function checkEnds(working: readonly Promise<void>[], history: History): Promise<Violation[]> {
  const ended = await pTimeout(Promise.all(working), { milliseconds: PATIENT_MS, fallback: () => null });
  if (ended !== null) return [];
  const exchanges = history.exchanges.slice(-working.length);
  return [{ rule: "every retry ends", detail: "a caller still waits for an answer", exchanges }];
}

function countProgress(
  { history, secondHistory }: CampaignSetup,
  faults: Readonly<Record<string, number>>,
  notes: KeptNotes,
  followed: readonly { read: readonly string[] }[],
) {
  return {
    ...countAnswers(history),
    second: countAnswers(secondHistory),
    faults,
    /** The number of checkpoints that the log's worker has signed. */
    checkpoints: notes.count,
    followed: followed.map(({ read }) => read.length),
  };
}

function countAnswers(history: History) {
  const answers: Record<string, number> = {};
  const [refs, acquisitions] = [new Set<string>(), new Set<string>()];
  for (const { status, failure, code, ask } of history.exchanges) {
    const name = status === null ? `no answer: ${failure}` : [status, code].filter(Boolean).join(" ");
    answers[name] = (answers[name] ?? 0) + 1;
    if (status === 200 && ask.operation === "redeem") refs.add(refOf(ask));
    if (status === 200 && ask.operation === "acquire") acquisitions.add(acquisitionOf(ask));
  }
  const confirmed = (operation: Operation) => history.of(operation).filter(isConfirmed).length;
  const files = history.exchanges.filter((exchange) => isFile(exchange.ask) && isConfirmed(exchange)).length;
  const retries = history.exchanges.filter((exchange) => exchange.attempt > 1).length;
  return {
    requests: history.exchanges.length,
    retries,
    confirmed: refs.size,
    acquired: acquisitions.size,
    issued: confirmed("issue"),
    voided: confirmed("voidBatch"),
    erased: confirmed("erase"),
    suspended: confirmed("suspend"),
    extended: confirmed("extend"),
    files,
    answers,
  };
}
