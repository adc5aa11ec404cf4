import { Redis } from "ioredis";
import { countJobs, readQueuePrefix } from "../support/redeem-jobs.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { untilStarted } from "../support/until.ts";
import { type ApiProcess, type Cluster, type ClusterOptions, openCluster } from "./cluster.ts";
import { type Answer, type Outcome, sendCall } from "./http-call.ts";

/** A cluster with one organization, two keys and vouchers, for tests of a single fault. */
export interface Scenario {
  cluster: Cluster;
  /** The default key of calls, and another key of the same organization. */
  till: string;
  webShop: string;
  redeemWaitMs: number;
  /** Returns an unused voucher. */
  nextVoucher(): { id: string; code: string };
  newRef(): string;
  lookUp(api: ApiProcess, codeOrTicket: string): Promise<Outcome>;
  reserve(api: ApiProcess, code: string, key?: string): Promise<Outcome>;
  redeem(api: ApiProcess, body: Record<string, string>, key?: string): Promise<Outcome>;
  ready(api: ApiProcess): Promise<Outcome>;
  /** Heals the cluster and waits until each API process is ready and can redeem, and each worker works. */
  makeWhole(): Promise<void>;
  /** Counts the redeem jobs that no worker has started. */
  countWaitingJobs(): Promise<number>;
  /** Counts the redeem jobs that wait or run. */
  countJobs(): Promise<number>;
  countRedemptions(voucherIds: readonly string[]): Promise<number>;
  close(): Promise<void>;
}

const REDEEM_WAIT_MS = 4_000;
/** Reservations outlive every test here. */
const RESERVATION_SECONDS = 120;
const VOUCHERS = 5_000;
/** Longer than any answer may take. Milliseconds. */
const CALL_TIMEOUT_MS = 20_000;

export async function openScenario(
  env: Record<string, string> = {},
  options: Partial<ClusterOptions> = {},
): Promise<Scenario> {
  const cluster = await openCluster({
    ...options,
    redeemWaitMs: REDEEM_WAIT_MS,
    reservationSeconds: RESERVATION_SECONDS,
    // Logs each accepted request.
    env: { LOG_LEVEL: "info", ...env },
  });
  return supplyScenario(cluster).catch(async (error) => {
    await cluster.close();
    throw error;
  });
}

async function supplyScenario(cluster: Cluster): Promise<Scenario> {
  const partner = await makePartner(cluster.db);
  const till = (await makeKey(cluster.db, partner.organizationId)).key;
  const webShop = (await makeKey(cluster.db, partner.organizationId)).key;
  const vouchers = await issueVouchers(cluster.db, partner, VOUCHERS);
  let refs = 0;

  const post = (api: ApiProcess, path: string, body: unknown, key: string) =>
    sendCall({ method: "POST", url: `${api.url}/partner/vouchers/${path}`, key, body, timeoutMs: CALL_TIMEOUT_MS });
  const get = (api: ApiProcess, path: string) =>
    sendCall({ method: "GET", url: `${api.url}${path}`, key: till, timeoutMs: CALL_TIMEOUT_MS });
  const scenario: Scenario = {
    cluster,
    till,
    webShop,
    redeemWaitMs: REDEEM_WAIT_MS,
    nextVoucher() {
      const voucher = vouchers.pop();
      if (voucher === undefined) throw new Error("no voucher is left");
      return voucher;
    },
    newRef() {
      refs += 1;
      return `scenario-${refs}`;
    },
    lookUp: (api, codeOrTicket) => get(api, `/partner/vouchers/${codeOrTicket}`),
    reserve: (api, code, key = till) => post(api, "reserve", { code }, key),
    redeem: (api, body, key = till) => post(api, "redeem", body, key),
    ready: (api) => get(api, "/readyz"),
    async makeWhole() {
      await cluster.heal();
      for (const api of cluster.apis) {
        await untilStarted(async () => statusOf(await scenario.ready(api)) === 200);
        const body = { code: scenario.nextVoucher().code, externalRef: scenario.newRef() };
        await untilStarted(async () => statusOf(await scenario.redeem(api, body)) === 200);
      }
      for (const worker of cluster.workers) await untilStarted(() => worker.hasLogged("working"));
    },
    async countWaitingJobs() {
      const redis = new Redis(cluster.redis.url);
      return redis.llen(`${await readQueuePrefix(cluster.db)}:redeem:wait`).finally(() => redis.disconnect());
    },
    async countJobs() {
      const redis = new Redis(cluster.redis.url);
      return countJobs({ redis, queuePrefix: await readQueuePrefix(cluster.db) }, "redeem").finally(() =>
        redis.disconnect(),
      );
    },
    async countRedemptions(voucherIds) {
      const { rows } = await cluster.db.query<{ redemptions: number }>(
        "SELECT count(*)::int AS redemptions FROM redemptions WHERE voucher_id = ANY ($1)",
        [voucherIds],
      );
      return rows[0]?.redemptions ?? 0;
    },
    close: () => cluster.close(),
  };
  return scenario;
}

export function statusOf(outcome: Outcome): number | null {
  return outcome.kind === "answer" ? outcome.answer.status : null;
}

/** @throws Error when there was no answer. */
export function answerOf(outcome: Outcome): Answer {
  if (outcome.kind === "failure") throw new Error(`there was no answer: ${outcome.failure}`);
  return outcome.answer;
}
