import type pg from "pg";
import { onSnapshot } from "../../src/db/transaction.ts";
import { newId } from "../../src/domain/ids.ts";
import { auditLog } from "../../src/services/log/audit-log.ts";
import { HOSTILE_KINDS, type HostileKind, startHostileReceiver } from "../support/hostile-receiver.ts";
import { KeptNotes } from "../support/kept-notes.ts";
import { beginLog, makeLogFiles, startWitness } from "../support/log-setup.ts";
import { makeOffer } from "../support/marketplace.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { type IssuerKey, makeIssuerKey, writeKeysFile } from "../support/user-tokens.ts";
import { startReceiver, WEBHOOK_ENV } from "../support/webhook-receiver.ts";
import { checkAnswersAgain, checkEverything, checkUntouched, untilReady } from "./checker.ts";
import { type Cluster, type Deployment, openCluster, processesOf } from "./cluster.ts";
import {
  acquisitionOf,
  History,
  refOf,
  type SuppliedKey,
  type SuppliedOffer,
  type SuppliedVoucher,
} from "./history.ts";
import {
  type FaultCounts,
  inflictFaults,
  RECOVERED_MS,
  type Stage,
  TARGET_NAMES,
  type TargetName,
  targetsOnCluster,
} from "./nemesis.ts";
import { askUntilAnswered, Partner, type PartnerOptions } from "./partner.ts";
import { hasPatroni, PatroniPostgres } from "./patroni.ts";
import { SeededRandom } from "./seeded-random.ts";
import { Shopper } from "./shopper.ts";
import { hasFakeTime } from "./stepped-clock.ts";
import type { Violation } from "./violation.ts";

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
  onProgress?: (progress: Progress) => void;
}

export interface Progress {
  elapsedMs: number;
  requests: number;
  faults: number;
  accidents: number;
}

export interface Totals {
  seed: number;
  elapsedMs: number;
  requests: number;
  retries: number;
  /** References that were answered 200. */
  confirmed: number;
  /** Claims and purchases that were answered 200. */
  acquired: number;
  /** Number of requests by outcome. */
  answers: Record<string, number>;
  /** Totals of the second deployment. */
  second: { requests: number; confirmed: number };
  faults: FaultCounts;
  /** Checkpoints of the log that were signed. */
  checkpoints: number;
  /** Time from the last fault until every API process redeems again. */
  answeredAgainMs: number;
  violations: Violation[];
}

const REDEEM_WAIT_MS = 3_000;
const RESERVATION_SECONDS = 3;
const ORGANIZATIONS = 2;
const KEYS_PER_ORGANIZATION = 3;
const LOOPS_PER_ORGANIZATION = 10;
/** What a loop uses while most calls fail. A loop that runs out starts over with its first vouchers, which are used. */
const VOUCHERS_PER_LOOP_SECOND = 6;
/** Users who claim and buy. They soon empty each offer, so that a new one follows every few seconds. */
const SHOPPERS = 4;
const OFFER_SUPPLY = 8;
const OFFER_EVERY_MS = 3_000;
/** The second deployment checks isolation, which needs little load. */
const SECOND_LOOPS = 3;
const SECOND_VOUCHERS = 1_500;
/** Number of turns for which vouchers are locked ahead: enough that most loops meet a locked one. */
const UPCOMING_TURNS = 2;
/** One organization's hostile receivers of each kind. */
const HOSTILE_EACH = 2;
/** Vouchers whose webhooks are timed at the end, beside all hostile receivers. */
const TIMED_VOUCHERS = 100;
const DELIVERED_P99_MS = 1_000;
const PROGRESS_MS = 10_000;
/** Time for every partner to get its last answer after recovery. Milliseconds. */
const LAST_ANSWERS_MS = 20_000;

interface Organization {
  keys: [SuppliedKey, ...SuppliedKey[]];
  vouchers: SuppliedVoucher[];
  /** Number of vouchers that the busiest loop has used. */
  turn: number;
}

/**
 * Runs partners during faults, then heals everything, finishes every open retry and checks all answers. The seed determines the
 * partners' choices and the faults; their timing depends on the machine.
 */
export async function runCampaign(options: CampaignOptions): Promise<Totals> {
  const issuer = await makeIssuerKey();
  const keys = writeKeysFile(issuer);
  const servers = options.onCluster ? clusterServers() : { targets: TARGET_NAMES };
  const clock = hasFakeTime();
  if (!clock) servers.targets = servers.targets.filter((name) => name !== "clock");
  const cluster = await openCluster({
    ...servers,
    postgres: { standby: true, clock },
    redeemWaitMs: REDEEM_WAIT_MS,
    reservationSeconds: RESERVATION_SECONDS,
    keepLogsIn: options.keepLogsIn,
    env: { AUTH_JWKS_URL: keys.url, WEBHOOK_SECRET: WEBHOOK_ENV.WEBHOOK_SECRET, WEBHOOK_ALLOW_PRIVATE: "true" },
  });
  const files = makeLogFiles();
  const notes = new KeptNotes();
  const receivers = new Map<HostileKind, Awaited<ReturnType<typeof startHostileReceiver>>>();
  for (const kind of HOSTILE_KINDS) receivers.set(kind, await startHostileReceiver(kind));
  const witness = await startWitness({ onClose: () => undefined }, files, 0, { before: (note) => notes.keep(note) });
  files.setWitnesses([witness.url]);
  try {
    await beginLog(cluster.db, files);
    cluster.addLogWorker(files.env);
    const urls = new Map([...receivers].map(([kind, { url }]) => [kind, url]));
    return await runOn(cluster, issuer, notes, urls, { ...options, targets: options.targets ?? servers.targets });
  } finally {
    await cluster.close();
    for (const receiver of receivers.values()) await receiver.close();
    await witness.close();
    files.remove();
    keys.remove();
  }
}

/** A Redis Cluster, a Postgres that fails over if Patroni is available, and their targets. */
function clusterServers() {
  const openPostgres = hasPatroni() ? (directory: string, logs: string) => PatroniPostgres.open(directory, logs) : null;
  const targets = targetsOnCluster(openPostgres !== null);
  return { redisCluster: true, targets, ...(openPostgres && { openPostgres }) };
}

async function runOn(
  cluster: Cluster,
  issuer: IssuerKey,
  notes: KeptNotes,
  receivers: ReadonlyMap<HostileKind, string>,
  options: CampaignOptions,
): Promise<Totals> {
  const { clock } = cluster.postgres;
  const { seed, faultsMs, signal = new AbortController().signal } = options;
  const random = new SeededRandom(seed);
  const history = new History();
  const secondHistory = new History();
  const faults: FaultCounts = {};
  const copyViolations: Violation[] = [];
  const vouchersPerLoop = Math.ceil((faultsMs / 1_000) * VOUCHERS_PER_LOOP_SECOND);
  const organizations: Organization[] = [];
  for (let i = 0; i < ORGANIZATIONS; i++)
    organizations.push(await supplyOrganization(cluster.db, vouchersPerLoop * LOOPS_PER_ORGANIZATION));
  const [first] = organizations as [Organization, ...Organization[]];
  const lastVouchers = first.vouchers.splice(-cluster.apis.length);
  const offers = await supplyOffers(cluster.db, Math.ceil(faultsMs / OFFER_EVERY_MS));
  const enableReceivers = await addReceivers(cluster.db, first.keys[0].organizationId, receivers);
  const secondDeployment = await cluster.addDeployment();
  const secondOrganization = await supplyOrganization(secondDeployment.db, SECOND_VOUCHERS);
  const copyOfDatabase = await cluster.addCopy();

  await cluster.heal();
  const startedAt = performance.now();
  const elapsedMs = () => Math.round(performance.now() - startedAt);
  const progress = setInterval(() => {
    const inflicted = Object.values(faults).reduce((sum, count) => sum + count, 0);
    options.onProgress?.({
      elapsedMs: elapsedMs(),
      requests: history.exchanges.length,
      faults: inflicted,
      accidents: cluster.accidents.length,
    });
  }, PROGRESS_MS);
  let open = true;
  const over = new AbortController();
  try {
    const at = { random, signal: over.signal };
    const foreignTo = (which: number) => organizations[(which + 1) % organizations.length] as Organization;
    const loops = [
      ...organizations.flatMap((organization, which) =>
        makePartners(cluster, organization, foreignTo(which), LOOPS_PER_ORGANIZATION, {
          ...at,
          name: `org-${which + 1}`,
          history,
        }),
      ),
      ...Array.from({ length: SHOPPERS }, (_, index) => {
        const name = `shopper-${index + 1}`;
        const currentOffer = () => offers[Math.min(Math.floor(elapsedMs() / OFFER_EVERY_MS), offers.length - 1)];
        return new Shopper({
          ...at,
          name,
          random: random.fork(name),
          apis: cluster.apis,
          history,
          issuer,
          currentOffer: () => currentOffer() as SuppliedOffer,
        });
      }),
    ];
    const secondLoops = makePartners(secondDeployment, secondOrganization, first, SECOND_LOOPS, {
      ...at,
      name: "second",
      history: secondHistory,
    });
    const working = Promise.all(loops.map((loop) => loop.work(() => open)));
    const secondWorking = Promise.all(secondLoops.map((loop) => loop.work(() => open)));
    // Failures are reported at the end.
    for (const work of [working, secondWorking]) work.catch(() => undefined);
    const upcomingVouchers = () => organizations.flatMap(upcomingOf);
    await inflictFaults(
      {
        ...{ cluster, secondDeployment, copyOfDatabase, upcomingVouchers, enableReceivers },
        ...{ counts: faults, violations: copyViolations },
      },
      options.targets ?? TARGET_NAMES,
      random.fork("faults"),
      { forMs: faultsMs, count: options.faultsMax },
      signal,
    );
    signal.throwIfAborted();
    await cluster.heal();
    open = false;
    const { tookMs, violations } = await checkAnswersAgain(cluster, first.keys[0], lastVouchers, history);
    violations.push(...copyViolations);
    violations.push(...(await checkEnds(working, history, loops.length)));
    for (const kind of HOSTILE_KINDS) await enableReceivers(kind, true);
    violations.push(...(await checkDeliveries(cluster, first, random.fork("deliveries"), history)));
    violations.push(...(await checkEverything(cluster, history, clock)));
    violations.push(...(await checkUntouched(copyOfDatabase.db)));
    violations.push(...(await checkLog(cluster.db, notes)));
    for (const process of processesOf(secondDeployment)) process.start();
    await untilReady(secondDeployment);
    const ofSecond = await checkEnds(secondWorking, secondHistory, secondLoops.length);
    ofSecond.push(...(await checkEverything(secondDeployment, secondHistory, clock)));
    violations.push(...ofSecond.map(({ rule, ...rest }) => ({ rule: `second deployment: ${rule}`, ...rest })));
    const second = countAnswers(secondHistory);
    return {
      ...countAnswers(history),
      second,
      seed,
      elapsedMs: elapsedMs(),
      faults,
      checkpoints: notes.count,
      answeredAgainMs: tookMs,
      violations,
    };
  } finally {
    clearInterval(progress);
    open = false;
    over.abort();
  }
}

/** Time for the log's worker to put the last events into a checkpoint. Milliseconds. */
const LOGGED_WITHIN_MS = 30_000;

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
  problems.push(...(await notes.findProblems(db)), ...(await onSnapshot(db, auditLog)).problems);
  return problems.map((detail) => ({ rule: "the log keeps what was signed", detail, exchanges: [] }));
}

/** Gives an organization disabled endpoints at hostile receivers. Returns what enables and disables those of a kind. */
async function addReceivers(
  db: pg.Pool,
  organizationId: string,
  receivers: ReadonlyMap<HostileKind, string>,
): Promise<Stage["enableReceivers"]> {
  for (const [kind, url] of receivers) {
    for (let n = 0; n < HOSTILE_EACH; n++) {
      await db.query(
        `INSERT INTO webhook_endpoints (id, organization_id, place, url, enabled, disabled_reason, disabled_at)
         SELECT $1, $2, 1 + count(*), $3, false, 'partner', now() FROM webhook_endpoints WHERE organization_id = $2`,
        [newId("whk"), organizationId, `${url}/${kind}`],
      );
    }
  }
  // Waits for no standby: one that is cut off returns only once this fault, too, may end. Commits of the service may hold the rows until then.
  return (kind, enabled) =>
    until(
      () =>
        db
          .query(
            `UPDATE webhook_endpoints SET enabled = $2, disabled_reason = CASE WHEN NOT $2 THEN 'partner' END,
                    disabled_at = CASE WHEN NOT $2 THEN now() END, failing_since = NULL
               FROM (SELECT set_config('synchronous_commit', 'off', true)) AS local WHERE url LIKE '%/' || $1`,
            [kind, enabled],
          )
          .catch(() => null),
      RECOVERED_MS,
    );
}

/** Webhooks of an organization with a healthy receiver must not wait for those of another one whose receivers are hostile. */
async function checkDeliveries(
  cluster: Cluster,
  hostile: Organization,
  random: SeededRandom,
  history: History,
): Promise<Violation[]> {
  const healthy = await supplyOrganization(cluster.db, TIMED_VOUCHERS);
  const { keys, vouchers } = healthy;
  const receiver = await startReceiver();
  await receiver.addEndpoint(cluster.db, keys[0].organizationId);
  const redeem = ({ keys: [key] }: Organization, voucher: SuppliedVoucher) =>
    askUntilAnswered(
      { random, apis: cluster.apis, history, signal: AbortSignal.timeout(LAST_ANSWERS_MS) },
      {
        ...{ operation: "redeem", key, voucher, by: { code: voucher.code }, token: null },
        externalRef: `timed-${voucher.id}`,
      },
    );
  const redeemedAtMs = new Map<string, number>();
  for (const [n, voucher] of vouchers.entries()) {
    await Promise.all([
      redeem(hostile, hostile.vouchers.at(-1 - n) as SuppliedVoucher),
      redeem(healthy, voucher).then(() => redeemedAtMs.set(voucher.id, Date.now())),
    ]);
  }
  const all = () => new Set(receiver.received.map(({ voucherId }) => voucherId)).size === vouchers.length;
  await until(all, LAST_ANSWERS_MS).catch(() => undefined);
  await receiver.close();
  const delays = [...redeemedAtMs].map(([id, atMs]) => {
    const first = receiver.received.find(({ voucherId }) => voucherId === id);
    return first === undefined ? Number.POSITIVE_INFINITY : first.atMs - atMs;
  });
  const p99 = delays.sort((one, other) => one - other).at(-2) ?? Number.POSITIVE_INFINITY;
  if (p99 <= DELIVERED_P99_MS) return [];
  const detail = `of ${vouchers.length} webhooks the second slowest took ${p99} ms`;
  return [{ rule: "hostile receivers delay no other organization's webhooks", detail, exchanges: [] }];
}

async function supplyOffers(db: pg.Pool, count: number): Promise<SuppliedOffer[]> {
  const offers: SuppliedOffer[] = [];
  for (let i = 0; i < count; i++) {
    const { productId, batchId, listingId } = await makeOffer(db, OFFER_SUPPLY);
    offers.push({ productId, batchId, listingId, supply: OFFER_SUPPLY });
  }
  return offers;
}

async function supplyOrganization(db: pg.Pool, vouchers: number): Promise<Organization> {
  const partner = await makePartner(db);
  const { organizationId } = partner;
  const keys: SuppliedKey[] = [];
  for (let i = 0; i < KEYS_PER_ORGANIZATION; i++) {
    const { id, key } = await makeKey(db, organizationId);
    keys.push({ id, secret: key, organizationId });
  }
  const issued = await issueVouchers(db, partner, vouchers);
  return {
    keys: keys as [SuppliedKey, ...SuppliedKey[]],
    vouchers: issued.map(({ id, code }) => ({ id, code, organizationId })),
    turn: 0,
  };
}

/** The loops of an organization interleave its vouchers, so that vouchers used at the same time are neighbours in the list. */
function makePartners(
  { apis }: Deployment,
  organization: Organization,
  foreign: Organization,
  loops: number,
  { name: prefix, random, history, signal }: Pick<PartnerOptions, "name" | "random" | "history" | "signal">,
): Partner[] {
  const { keys, vouchers } = organization;
  return Array.from({ length: loops }, (_, loop) => {
    const name = `${prefix}-loop-${loop + 1}`;
    const chooser = random.fork(`${name} contested`);
    let used = 0;
    const voucherAt = (turn: number, of: number) =>
      vouchers[(Math.max(0, turn) * loops + of) % vouchers.length] as SuppliedVoucher;
    const ownFirst = [...keys.slice(loop % keys.length), ...keys.slice(0, loop % keys.length)];
    return new Partner({
      name,
      random: random.fork(name),
      apis,
      history,
      keys: ownFirst as [SuppliedKey, ...SuppliedKey[]],
      nextVoucher: () => {
        organization.turn = Math.max(organization.turn, used + 1);
        return voucherAt(used++, loop);
      },
      contestedVoucher: () => voucherAt(used + chooser.between(-3, 1), (loop + chooser.between(1, loops - 1)) % loops),
      foreignVoucher: () => chooser.pick(foreign.vouchers),
      reservationSeconds: RESERVATION_SECONDS,
      signal,
    });
  });
}

/** Vouchers of the next turns of all loops. */
function upcomingOf({ vouchers, turn }: Organization): string[] {
  const from = (turn * LOOPS_PER_ORGANIZATION) % vouchers.length;
  return vouchers.slice(from, from + UPCOMING_TURNS * LOOPS_PER_ORGANIZATION).map(({ id }) => id);
}

async function checkEnds(work: Promise<unknown>, history: History, loops: number): Promise<Violation[]> {
  if (await endsWithin(work, LAST_ANSWERS_MS)) return [];
  const exchanges = history.exchanges.slice(-loops);
  return [{ rule: "every retry ends", detail: "a caller still waits for an answer", exchanges }];
}

async function endsWithin(work: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, false);
  });
  const ended = await Promise.race([work.then(() => true), late]);
  clearTimeout(timer);
  return ended;
}

function countAnswers(history: History): Pick<Totals, "requests" | "retries" | "confirmed" | "acquired" | "answers"> {
  const answers: Record<string, number> = {};
  const refs = new Set<string>();
  const acquisitions = new Set<string>();
  for (const { status, failure, code, ask } of history.exchanges) {
    const name = status === null ? `no answer: ${failure}` : [status, code].filter(Boolean).join(" ");
    answers[name] = (answers[name] ?? 0) + 1;
    if (status === 200 && ask.operation === "redeem") refs.add(refOf(ask));
    if (status === 200 && ask.operation === "acquire") acquisitions.add(acquisitionOf(ask));
  }
  const retries = history.exchanges.filter((exchange) => exchange.attempt > 1).length;
  return { requests: history.exchanges.length, retries, confirmed: refs.size, acquired: acquisitions.size, answers };
}
