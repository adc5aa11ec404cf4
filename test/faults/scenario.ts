import { Redis } from "ioredis";
import { PREFIX } from "../../src/queues/catalog.ts";
import { countJobs } from "../support/redeem-jobs.ts";
import { issueVouchers, makeKey, makePartner } from "../support/supply.ts";
import { until } from "../support/until.ts";
import { type ApiProcess, type Cluster, openCluster } from "./cluster.ts";
import { type Answer, type Outcome, sendCall } from "./http-call.ts";

/** A cluster with one organization, its two keys and vouchers, for tests that do one thing to it. */
export interface Scenario {
  cluster: Cluster;
  /** The key that calls unless told otherwise, and another of the same organization. */
  till: string;
  webShop: string;
  redeemWaitMs: number;
  /** A voucher that no test has touched. */
  takeVoucher(): { id: string; code: string };
  newRef(): string;
  lookUp(api: ApiProcess, codeOrTicket: string): Promise<Outcome>;
  reserve(api: ApiProcess, code: string, key?: string): Promise<Outcome>;
  redeem(api: ApiProcess, body: Record<string, string>, key?: string): Promise<Outcome>;
  ready(api: ApiProcess): Promise<Outcome>;
  /** Heals everything and waits until each API process is ready and some worker burns. */
  makeWhole(): Promise<void>;
  /** The redeem jobs that no worker has taken. */
  countWaitingJobs(): Promise<number>;
  /** The redeem jobs that wait or are in some worker's hands. */
  countJobs(): Promise<number>;
  countBurns(voucherIds: readonly string[]): Promise<number>;
  close(): Promise<void>;
}

const REDEEM_WAIT_MS = 4_000;
/** Holds outlive every test here. */
const RESERVATION_SECONDS = 120;
const VOUCHERS = 5_000;
/** Longer than any answer may take. */
const CALL_TIMEOUT_MS = 20_000;

export async function openScenario(): Promise<Scenario> {
  const cluster = await openCluster({
    redeemWaitMs: REDEEM_WAIT_MS,
    reservationSeconds: RESERVATION_SECONDS,
    // One line a request: what was accepted is known from it.
    env: { LOG_LEVEL: "info" },
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
    takeVoucher() {
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
        await until(async () => statusOf(await scenario.ready(api)) === 200, 20_000);
        const body = { code: scenario.takeVoucher().code, externalRef: scenario.newRef() };
        await until(async () => statusOf(await scenario.redeem(api, body)) === 200, 20_000);
      }
    },
    async countWaitingJobs() {
      const redis = new Redis(cluster.redis.url);
      return redis.llen(`${PREFIX}:redeem:wait`).finally(() => redis.disconnect());
    },
    async countJobs() {
      const redis = new Redis(cluster.redis.url);
      return countJobs(redis, "redeem").finally(() => redis.disconnect());
    },
    async countBurns(voucherIds) {
      const { rows } = await cluster.db.query<{ burns: number }>(
        "SELECT count(*)::int AS burns FROM redemptions WHERE voucher_id = ANY ($1)",
        [voucherIds],
      );
      return rows[0]?.burns ?? 0;
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
