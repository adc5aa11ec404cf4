import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { checkAnswersAgain, checkEverything } from "./checker.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { History, type SuppliedKey, type SuppliedVoucher } from "./history.ts";
import { type FaultCounts, inflictFaults, planFaults } from "./nemesis.ts";
import { Partner } from "./partner.ts";
import { SeededRandom } from "./seeded-random.ts";
import type { Violation } from "./violation.ts";

export interface CampaignOptions {
  seed: number;
  /** How long faults go on; healing and checking come on top. */
  faultsMs: number;
  keepLogsIn?: string | undefined;
  /** Ends the campaign early; nothing is checked then. */
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
  /** Requests by what came of them. */
  answers: Record<string, number>;
  faults: FaultCounts;
  /** From the last fault until every API process burnt a voucher again. */
  answeredAgainMs: number;
  violations: Violation[];
}

const REDEEM_WAIT_MS = 3_000;
const RESERVATION_SECONDS = 3;
const ORGANIZATIONS = 2;
const KEYS_PER_ORGANIZATION = 3;
const LOOPS_PER_ORGANIZATION = 10;
/** What a loop uses up in a second on a fast machine; when a loop has none left it begins again with its first, which are used. */
const VOUCHERS_PER_LOOP_SECOND = 25;
const PROGRESS_MS = 10_000;
/** Time for every partner to get the answer that it still waits for, once all is healed. Milliseconds. */
const LAST_ANSWERS_MS = 20_000;

interface Organization {
  keys: [SuppliedKey, ...SuppliedKey[]];
  vouchers: SuppliedVoucher[];
}

/**
 * Partners at work while faults go on; then everything is healed, every open retry finished and everything checked. The seed
 * decides what partners choose and what the faults are; how they meet is up to the machine.
 */
export async function runCampaign(options: CampaignOptions): Promise<Totals> {
  const cluster = await openCluster({
    redeemWaitMs: REDEEM_WAIT_MS,
    reservationSeconds: RESERVATION_SECONDS,
    keepLogsIn: options.keepLogsIn,
  });
  try {
    return await runOn(cluster, options);
  } finally {
    await cluster.close();
  }
}

async function runOn(cluster: Cluster, options: CampaignOptions): Promise<Totals> {
  const { seed, faultsMs, signal = new AbortController().signal } = options;
  const random = new SeededRandom(seed);
  const history = new History();
  const faults: FaultCounts = {};
  const vouchersPerLoop = Math.ceil((faultsMs / 1_000) * VOUCHERS_PER_LOOP_SECOND);
  const organizations: Organization[] = [];
  for (let i = 0; i < ORGANIZATIONS; i++)
    organizations.push(await supplyOrganization(cluster, vouchersPerLoop * LOOPS_PER_ORGANIZATION));
  const [first] = organizations as [Organization, ...Organization[]];
  const lastVouchers = first.vouchers.splice(-cluster.apis.length);

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
    const loops = makePartners(cluster, organizations, history, random, over.signal);
    const working = Promise.all(loops.map((partner) => partner.work(() => open)));
    // Whether it failed is asked at the end.
    working.catch(() => undefined);
    await inflictFaults(cluster, planFaults(random.fork("plan"), faultsMs), random.fork("victims"), faults, signal);
    signal.throwIfAborted();
    await cluster.heal();
    open = false;
    const { tookMs, violations } = await checkAnswersAgain(cluster, first.keys[0], lastVouchers, history);
    if (!(await endsWithin(working, LAST_ANSWERS_MS))) {
      const unanswered = history.exchanges.slice(-loops.length);
      violations.push({ rule: "every retry ends", detail: "somebody still gets no answer", exchanges: unanswered });
    }
    violations.push(...(await checkEverything(cluster, history)));
    return { ...countAnswers(history), seed, elapsedMs: elapsedMs(), faults, answeredAgainMs: tookMs, violations };
  } finally {
    clearInterval(progress);
    open = false;
    over.abort();
  }
}

async function supplyOrganization({ db }: Cluster, vouchers: number): Promise<Organization> {
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
  };
}

/** Loops of an organization take turns in its vouchers, so that neighbours in time are neighbours in the list. */
function makePartners(
  cluster: Cluster,
  organizations: readonly Organization[],
  history: History,
  random: SeededRandom,
  signal: AbortSignal,
): Partner[] {
  return organizations.flatMap(({ keys, vouchers }, which) => {
    const foreign = organizations[(which + 1) % organizations.length]?.vouchers ?? [];
    return Array.from({ length: LOOPS_PER_ORGANIZATION }, (_, loop) => {
      const name = `org-${which + 1}-loop-${loop + 1}`;
      const own = random.fork(name);
      const chooser = random.fork(`${name} contested`);
      let used = 0;
      const take = (turn: number, of: number) =>
        vouchers[(Math.max(0, turn) * LOOPS_PER_ORGANIZATION + of) % vouchers.length] as SuppliedVoucher;
      const ownFirst = [...keys.slice(loop % keys.length), ...keys.slice(0, loop % keys.length)];
      return new Partner({
        name,
        random: own,
        apis: cluster.apis,
        history,
        keys: ownFirst as [SuppliedKey, ...SuppliedKey[]],
        nextVoucher: () => take(used++, loop),
        contestedVoucher: () =>
          take(
            used + chooser.between(-3, 1),
            (loop + chooser.between(1, LOOPS_PER_ORGANIZATION - 1)) % LOOPS_PER_ORGANIZATION,
          ),
        foreignVoucher: () => chooser.pick(foreign),
        reservationSeconds: RESERVATION_SECONDS,
        signal,
      });
    });
  });
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

function countAnswers(history: History): Pick<Totals, "requests" | "retries" | "confirmed" | "answers"> {
  const answers: Record<string, number> = {};
  const refs = new Set<string>();
  for (const { status, failure, code, ask } of history.exchanges) {
    const name = status === null ? `no answer: ${failure}` : [status, code].filter(Boolean).join(" ");
    answers[name] = (answers[name] ?? 0) + 1;
    if (status === 200 && ask.operation === "redeem") refs.add(`${ask.key.organizationId} ${ask.externalRef}`);
  }
  const retries = history.exchanges.filter((exchange) => exchange.attempt > 1).length;
  return { requests: history.exchanges.length, retries, confirmed: refs.size, answers };
}
