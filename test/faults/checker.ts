import { Agent } from "node:http";
import type pg from "pg";
import { until } from "../support/until.ts";
import { checkAcquisitions } from "./acquisition-rules.ts";
import { checkAnswers } from "./answer-rules.ts";
import type { ApiProcess, Cluster, Deployment } from "./cluster.ts";
import { checkDatabase } from "./database-rules.ts";
import { acquisitionOf, type Exchange, History, refOf, type SuppliedKey, type SuppliedVoucher } from "./history.ts";
import { exchangeOnce } from "./partner.ts";
import { readRecords } from "./records.ts";
import { checkRedeems } from "./redeem-rules.ts";
import { checkReservations } from "./reservation-rules.ts";
import type { SteppedClock } from "./stepped-clock.ts";
import type { Violation } from "./violation.ts";

/** Time in which everything must answer again after the last fault. Milliseconds. */
const ANSWERS_AGAIN_MS = 10_000;
/**
 * Time for the sweeper, which runs twice a second, to expire overdue reservations and to request seals, which it does after 5 s.
 * Milliseconds.
 */
const SWEPT_WITHIN_MS = 15_000;
/** Time for a start on a busy machine. Milliseconds. */
const STARTED_WITHIN_MS = 60_000;
/** Concurrent repeats. */
const REPEATS_AT_ONCE = 16;

/** Waits until every API process is ready and redeems a voucher. Returns a violation when that takes too long. */
export async function checkAnswersAgain(
  cluster: Cluster,
  key: SuppliedKey,
  vouchers: readonly SuppliedVoucher[],
  history: History,
): Promise<{ tookMs: number; violations: Violation[] }> {
  const startedAt = performance.now();
  const redeemsAgain = async (api: ApiProcess, index: number) => {
    const voucher = vouchers[index];
    if (voucher === undefined) throw new Error("no voucher is left for the final check");
    const externalRef = `answers-again-${api.process.name}`;
    await until(() => isReady(api), ANSWERS_AGAIN_MS);
    await until(async () => {
      const ask = { operation: "redeem", key, voucher, externalRef, by: { code: voucher.code }, token: null } as const;
      return history.add(await exchangeOnce(ask, api, 1)).status === 200;
    }, ANSWERS_AGAIN_MS);
  };
  const results = await Promise.allSettled(cluster.apis.map(redeemsAgain));
  const tookMs = Math.round(performance.now() - startedAt);
  const silent = cluster.apis.filter((_, index) => results[index]?.status === "rejected");
  if (silent.length === 0 && tookMs <= ANSWERS_AGAIN_MS) return { tookMs, violations: [] };
  const detail = `${silent.map((api) => api.process.name).join(" and ") || "everything"} took ${tookMs} ms`;
  return { tookMs, violations: [{ rule: "everything answers again within 10 s", detail, exchanges: [] }] };
}

/** Waits until the API processes of a newly started deployment are ready. */
export async function untilReady({ apis }: Deployment): Promise<void> {
  for (const api of apis) await until(() => isReady(api), STARTED_WITHIN_MS);
}

async function isReady(api: ApiProcess): Promise<boolean> {
  const response = await fetch(`${api.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}

/** Checks every answer and the database. The service must be healthy and idle. */
export async function checkEverything(
  deployment: Deployment,
  history: History,
  clock: SteppedClock,
): Promise<Violation[]> {
  const violations: Violation[] = [];
  for (const [rule, query] of Object.entries(MUST_BECOME_EMPTY))
    violations.push(...(await checkSwept(deployment.db, rule, query)));
  const records = await readRecords(deployment.db, clock);
  violations.push(
    ...checkRedeems(history, records, deployment.options.redeemWaitMs),
    ...checkAcquisitions(history, records),
    ...checkReservations(history, records),
    ...checkAnswers(history, records),
  );
  // Last, because repeats of false answers change the database.
  violations.push(...(await repeatConfirmed(deployment.apis, history)));
  violations.push(...(await checkDatabase(deployment.db, clock)));
  for (const accident of deployment.accidents)
    violations.push({ rule: "no process ends by itself", detail: accident, exchanges: [] });
  return violations;
}

/** A copy made before the first redemption must stay without redemptions: its worker must not run the original's jobs. */
export async function checkUntouched(db: pg.Pool): Promise<Violation[]> {
  const { rows } = await db.query<{ voucherId: string }>(`SELECT voucher_id AS "voucherId" FROM redemptions`);
  if (rows.length === 0) return [];
  const detail = `the copy has ${rows.length} redemptions, for example of ${rows[0]?.voucherId}`;
  return [{ rule: "a copy of the database redeems nothing", detail, exchanges: [] }];
}

/** Repeats each confirmed redeem, claim and purchase. The answer must be the same, with `alreadyConfirmed` true. */
async function repeatConfirmed(apis: readonly ApiProcess[], history: History): Promise<Violation[]> {
  const confirmed = [
    ...new Map(
      [
        ...history.of("redeem").map((first): [string, Exchange] => [refOf(first.ask), first]),
        ...history.of("acquire").map((first): [string, Exchange] => [acquisitionOf(first.ask), first]),
      ].filter(([, first]) => first.status === 200),
    ).values(),
  ];
  const agent = new Agent({ keepAlive: true, maxSockets: REPEATS_AT_ONCE });
  const violations: Violation[] = [];
  const repeats = new History();
  const repeatNext = async (): Promise<void> => {
    for (let first = confirmed.pop(); first !== undefined; first = confirmed.pop()) {
      const api = apis[confirmed.length % apis.length] as ApiProcess;
      const again = repeats.add(await exchangeOnce(first.ask, api, 1, { agent }));
      if (again.status !== 200 || !isSameAnswer(first, again)) {
        violations.push({ rule: "a 200 stays true", detail: "its repeat differs", exchanges: [first, again] });
      }
    }
  };
  await Promise.all(Array.from({ length: REPEATS_AT_ONCE }, repeatNext));
  agent.destroy();
  return violations;
}

function isSameAnswer(first: Exchange, again: Exchange): boolean {
  return JSON.stringify({ ...first.body, alreadyConfirmed: true }) === JSON.stringify(again.body);
}

/** Queries that must return no rows soon after recovery, once the sweeper has done its work. */
const MUST_BECOME_EMPTY: Record<string, string> = {
  "no reservation outlives its end": `
    SELECT ticket FROM reservations WHERE state = 'Live' AND expires_at < clock_timestamp() - interval '2 seconds'`,
  "every event gets sealed": `
    SELECT voucher_id || ' ' || sequence FROM voucher_events WHERE seal_status = 'Pending'`,
};

async function checkSwept(db: pg.Pool, rule: string, query: string): Promise<Violation[]> {
  const left = async () => (await db.query({ text: query, rowMode: "array" })).rows.flat();
  try {
    await until(async () => (await left()).length === 0, SWEPT_WITHIN_MS);
    return [];
  } catch {
    const rows = await left();
    return [{ rule, detail: `${rows.length} are left, for example ${rows[0]}`, exchanges: [] }];
  }
}
