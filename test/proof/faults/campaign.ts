import pTimeout from "p-timeout";
import type pg from "pg";
import { onSnapshot } from "../../../src/platform/db/transaction.ts";
import { auditTlog } from "../../../src/transparency/audit-log.ts";
import { HOSTILE_KINDS, type HostileKind, startHostileReceiver } from "../../support/hostile-receiver.ts";
import { KeptNotes } from "../../support/kept-notes.ts";
import { beginTlog, makeTlogFiles, startWitness } from "../../support/log-setup.ts";
import { makeOffer } from "../../support/marketplace.ts";
import { until } from "../../support/until.ts";
import { type IssuerKey, makeIssuerKey, writeKeysFile } from "../../support/user-tokens.ts";
import { WEBHOOK_ENV } from "../../support/webhook-receiver.ts";
import { addReceivers, checkDeliveries, listenToWebhooks } from "./campaign-webhooks.ts";
import { checkAnswersAgain, checkEverything, checkUntouched, untilReady, violation } from "./checker.ts";
import { type Cluster, openCluster, processesOf } from "./cluster.ts";
import { FLOODED_OPS_TOKEN, makeFlooder } from "./floods.ts";
import { acquisitionOf, History, refOf, type SuppliedOffer, type Violation } from "./history.ts";
import { inflictFaults, TARGET_NAMES, type TargetName, targetsOnCluster } from "./nemesis.ts";
import {
  LAST_ANSWERS_MS,
  LOOPS_PER_ORGANIZATION,
  type Organization,
  RESERVATION_SECONDS,
  startPartners,
  supplyOrganization,
  upcomingOf,
} from "./organizations.ts";
import { workAsShopper } from "./partner.ts";
import { hasPatroni, PatroniPostgres } from "./patroni.ts";
import { SeededRandom } from "./seeded-random.ts";
import { hasFakeTime } from "./stepped-clock.ts";

export interface CampaignOptions {
  seed: number;
  /** Duration of the faults; recovery and checks take extra time. */
  faultsMs: number;
  /** Ends the faults after this number of them. */
  faultsMax?: number | undefined;
  /** Limits faults to these targets, to isolate a cause. */
  targets?: readonly TargetName[] | undefined;
  /** Runs on a Redis Cluster, and on a Postgres that fails over if Patroni is available. */
  onCluster?: boolean;
  keepLogsIn?: string | undefined;
  /** Ends the campaign early and skips the checks. */
  signal?: AbortSignal;
  onProgress?: (progress: Record<"elapsedMs" | "requests" | "faults" | "accidents", number>) => void;
}

export type Totals = Awaited<ReturnType<typeof runOn>>;

const REDEEM_WAIT_MS = 3_000;
const ORGANIZATIONS = 2;
/**
 * Vouchers that a loop uses per second while most calls fail. A loop without unused vouchers starts over with its first
 * ones, which are used.
 */
const VOUCHERS_PER_LOOP_SECOND = 6;
/** Users who claim and buy. They soon empty each offer, so that a new one follows every few seconds. */
const SHOPPERS = 4;
const OFFER_SUPPLY = 8;
const OFFER_EVERY_MS = 3_000;
/** The second deployment checks isolation, which needs little load. */
const SECOND_LOOPS = 3;
const SECOND_VOUCHERS = 1_500;
const PROGRESS_MS = 10_000;
/** Time for the log's worker to put the last events into a checkpoint. Milliseconds. */
const LOGGED_WITHIN_MS = 30_000;

/**
 * Runs partners during faults, then heals everything, finishes every open retry and checks all answers. The seed
 * determines the partners' choices and the faults; their timing depends on the machine.
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
    keepLogsIn: options.keepLogsIn,
    env: {
      AUTH_JWKS_URL: keys.url,
      OPS_TOKEN: FLOODED_OPS_TOKEN,
      WEBHOOK_SECRET: WEBHOOK_ENV.WEBHOOK_SECRET,
      WEBHOOK_ALLOW_PRIVATE: "true",
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

async function runOn(
  cluster: Cluster,
  issuer: IssuerKey,
  notes: KeptNotes,
  receivers: readonly { kind: HostileKind; url: string }[],
  options: CampaignOptions & { targets: readonly TargetName[] },
) {
  const { db, apis, postgres } = cluster;
  const { seed, faultsMs, signal = new AbortController().signal } = options;
  const random = new SeededRandom(seed);
  const [history, secondHistory] = [new History(), new History()];
  const faults: Record<string, number> = {};
  const violations: Violation[] = [];
  const vouchersPerLoop = Math.ceil((faultsMs / 1_000) * VOUCHERS_PER_LOOP_SECOND);
  const organizations: Organization[] = [];
  while (organizations.length < ORGANIZATIONS)
    organizations.push(await supplyOrganization(db, vouchersPerLoop * LOOPS_PER_ORGANIZATION));
  const [first, second] = organizations as [Organization, Organization];
  const lastVouchers = first.vouchers.splice(-apis.length);
  const offers: SuppliedOffer[] = [];
  while (offers.length < Math.ceil(faultsMs / OFFER_EVERY_MS))
    offers.push({ ...(await makeOffer(db, OFFER_SUPPLY)), supply: OFFER_SUPPLY });
  const enableReceivers = await addReceivers(db, first.keys[0].organizationId, receivers);
  const listener = await listenToWebhooks(db, second.keys[0].organizationId, history);
  const flooder = await makeFlooder(db);
  const secondDeployment = await cluster.addDeployment();
  const secondOrganization = await supplyOrganization(secondDeployment.db, SECOND_VOUCHERS);
  const copyOfDatabase = await cluster.addCopy();

  await cluster.heal();
  const startedAt = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedAt);
  const progress = setInterval(() => {
    const inflicted = Object.values(faults).reduce((sum, count) => sum + count, 0);
    const [requests, accidents] = [history.exchanges.length, cluster.accidents.length];
    options.onProgress?.({ elapsedMs: elapsedMs(), requests, faults: inflicted, accidents });
  }, PROGRESS_MS);
  let open = true;
  const over = new AbortController();
  const at = { random, signal: over.signal };
  const goesOn = () => open;
  const currentOffer = () =>
    offers[Math.min(Math.floor(elapsedMs() / OFFER_EVERY_MS), offers.length - 1)] as SuppliedOffer;
  try {
    const working = [
      ...organizations.flatMap((organization, which) => {
        const foreign = organizations[(which + 1) % organizations.length] as Organization;
        const own = { ...at, name: `org-${which + 1}`, history };
        return startPartners(cluster, organization, foreign, LOOPS_PER_ORGANIZATION, own, goesOn);
      }),
      ...Array.from({ length: SHOPPERS }, (_, index) => {
        const name = `shopper-${index + 1}`;
        const own = { ...at, name, random: random.fork(name), apis, history, issuer, currentOffer };
        return workAsShopper(own, goesOn);
      }),
    ];
    const ofSecondDeployment = { ...at, name: "second", history: secondHistory };
    const secondWorking = startPartners(
      ...([secondDeployment, secondOrganization, first, SECOND_LOOPS, ofSecondDeployment, goesOn] as const),
    );
    // Failures are reported at the end.
    for (const work of [...working, ...secondWorking]) work.catch(() => undefined);
    const upcomingVouchers = () => organizations.flatMap(upcomingOf);
    await inflictFaults(
      {
        cluster,
        secondDeployment,
        copyOfDatabase,
        flooder,
        upcomingVouchers,
        enableReceivers,
        counts: faults,
        violations,
        onPrimaryLost: () => {
          for (const { lostPrimariesMs } of [history, secondHistory]) lostPrimariesMs.push(performance.now());
        },
      },
      options.targets,
      random.fork("faults"),
      { forMs: faultsMs, count: options.faultsMax },
      signal,
    );
    signal.throwIfAborted();
    await cluster.heal();
    open = false;
    const answeredAgain = await checkAnswersAgain(cluster, first.keys[0], lastVouchers, history);
    violations.push(...answeredAgain.violations, ...(await checkEnds(working, history)));
    for (const kind of HOSTILE_KINDS) await enableReceivers(kind, true);
    violations.push(...(await checkDeliveries(cluster, first, random.fork("deliveries"), history)));
    violations.push(...(await checkEverything(cluster, history, postgres.clock)));
    violations.push(...(await checkUntouched(copyOfDatabase.db)), ...(await checkLog(db, notes)));
    for (const process of processesOf(secondDeployment)) process.start();
    await untilReady(secondDeployment);
    const ofSecond = await checkEnds(secondWorking, secondHistory);
    ofSecond.push(...(await checkEverything(secondDeployment, secondHistory, postgres.clock)));
    violations.push(...ofSecond.map(({ rule, ...rest }) => ({ rule: `second deployment: ${rule}`, ...rest })));
    return {
      ...countAnswers(history),
      second: countAnswers(secondHistory),
      seed,
      faults,
      violations,
      elapsedMs: elapsedMs(),
      /** Checkpoints of the log that were signed. */
      checkpoints: notes.count,
      /** Time from the last fault until every API process redeems again. */
      answeredAgainMs: answeredAgain.tookMs,
    };
  } finally {
    clearInterval(progress);
    open = false;
    over.abort();
    await listener.close();
  }
}

/** Every sealed event must get into exactly one leaf, and no checkpoint that was ever signed may contradict another. */
async function checkLog(db: pg.Pool, notes: KeptNotes): Promise<Violation[]> {
  const problems: string[] = [];
  const isPublished = async () => {
    const { rows } = await db.query(
      `SELECT t.size = p.size AND NOT EXISTS (SELECT FROM log_batches WHERE first_index IS NULL) AS done
         FROM log_tree AS t, log_published AS p`,
    );
    return rows[0]?.done;
  };
  await until(isPublished, LOGGED_WITHIN_MS).catch(() => problems.push("events still wait for their checkpoint"));
  problems.push(...(await notes.findProblems(db)), ...(await onSnapshot(db, auditTlog)).problems);
  return problems.map((detail) => violation("the log keeps what was signed", detail));
}

/** @throws the failure of a caller. */
async function checkEnds(working: readonly Promise<void>[], history: History): Promise<Violation[]> {
  const ended = await pTimeout(Promise.all(working), { milliseconds: LAST_ANSWERS_MS, fallback: () => null });
  if (ended !== null) return [];
  const exchanges = history.exchanges.slice(-working.length);
  return [{ rule: "every retry ends", detail: "a caller still waits for an answer", exchanges }];
}

function countAnswers(history: History) {
  /** Number of requests by outcome. */
  const answers: Record<string, number> = {};
  const [refs, acquisitions] = [new Set<string>(), new Set<string>()];
  for (const { status, failure, code, ask } of history.exchanges) {
    const name = status === null ? `no answer: ${failure}` : [status, code].filter(Boolean).join(" ");
    answers[name] = (answers[name] ?? 0) + 1;
    if (status === 200 && ask.operation === "redeem") refs.add(refOf(ask));
    if (status === 200 && ask.operation === "acquire") acquisitions.add(acquisitionOf(ask));
  }
  const retries = history.exchanges.filter((exchange) => exchange.attempt > 1).length;
  return { requests: history.exchanges.length, retries, confirmed: refs.size, acquired: acquisitions.size, answers };
}
