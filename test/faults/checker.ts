import { Agent } from "node:http";
import type pg from "pg";
import { until } from "../support/until.ts";
import { checkAnswers } from "./answer-rules.ts";
import type { ApiProcess, Cluster } from "./cluster.ts";
import { checkDatabase } from "./database-rules.ts";
import { type AskFor, type Exchange, History, refOf, type SuppliedKey, type SuppliedVoucher } from "./history.ts";
import { checkHolds } from "./hold-rules.ts";
import { exchangeOnce } from "./partner.ts";
import { readRecords } from "./records.ts";
import { checkRedeems } from "./redeem-rules.ts";
import type { Violation } from "./violation.ts";

/** Everything answers again within this time after the last fault. Milliseconds. */
const ANSWERS_AGAIN_MS = 10_000;
/** A hold past its time is recorded as expired by then: many passes of a sweeper that passes twice a second. Milliseconds. */
const SWEPT_WITHIN_MS = 10_000;
/** Repeats under way at once. */
const REPEATS_AT_ONCE = 16;

/** Waits until every API process is ready and burns a voucher; a violation when that takes too long. */
export async function checkAnswersAgain(
  cluster: Cluster,
  key: SuppliedKey,
  vouchers: readonly SuppliedVoucher[],
  history: History,
): Promise<{ tookMs: number; violations: Violation[] }> {
  const startedAt = performance.now();
  const works = async (api: ApiProcess, index: number) => {
    const voucher = vouchers[index];
    if (voucher === undefined) throw new Error("no voucher was kept for the end");
    const externalRef = `answers-again-${api.process.name}`;
    await until(() => isReady(api), ANSWERS_AGAIN_MS);
    await until(async () => {
      const ask = { operation: "redeem", key, voucher, externalRef, by: { code: voucher.code }, token: null } as const;
      return history.add(await exchangeOnce(ask, api, 1)).status === 200;
    }, ANSWERS_AGAIN_MS);
  };
  const results = await Promise.allSettled(cluster.apis.map(works));
  const tookMs = Math.round(performance.now() - startedAt);
  const silent = cluster.apis.filter((_, index) => results[index]?.status === "rejected");
  if (silent.length === 0 && tookMs <= ANSWERS_AGAIN_MS) return { tookMs, violations: [] };
  const detail = `${silent.map((api) => api.process.name).join(" and ") || "everything"} took ${tookMs} ms`;
  return { tookMs, violations: [{ rule: "everything answers again within 10 s", detail, exchanges: [] }] };
}

async function isReady(api: ApiProcess): Promise<boolean> {
  const response = await fetch(`${api.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}

/** Checks everything that partners were told, and the database by itself. The service is whole and nobody uses it any more. */
export async function checkEverything(cluster: Cluster, history: History): Promise<Violation[]> {
  const violations = await repeatConfirmed(cluster.apis, history);
  violations.push(...(await checkSwept(cluster.db)));
  const records = await readRecords(cluster.db);
  violations.push(
    ...checkRedeems(history, records),
    ...checkHolds(history, records),
    ...checkAnswers(history, records),
  );
  violations.push(...(await checkDatabase(cluster.db)));
  for (const accident of cluster.accidents)
    violations.push({ rule: "no process ends by itself", detail: accident, exchanges: [] });
  return violations;
}

/** Sends each redeem that was ever confirmed once more: it must give the same answer, as one that was confirmed before. */
async function repeatConfirmed(apis: readonly ApiProcess[], history: History): Promise<Violation[]> {
  const confirmed = [
    ...new Map(history.of("redeem").flatMap((told) => (told.status === 200 ? [[refOf(told.ask), told]] : []))).values(),
  ];
  const agent = new Agent({ keepAlive: true, maxSockets: REPEATS_AT_ONCE });
  const violations: Violation[] = [];
  const repeats = new History();
  const repeatNext = async (): Promise<void> => {
    for (let told = confirmed.pop(); told !== undefined; told = confirmed.pop()) {
      const api = apis[confirmed.length % apis.length] as ApiProcess;
      const again = repeats.add(await exchangeOnce(told.ask, api, 1, { agent })) as Exchange<AskFor<"redeem">>;
      if (again.status !== 200 || !isSameAnswer(told, again)) {
        violations.push({ rule: "a 200 stays true", detail: "its repeat says otherwise", exchanges: [told, again] });
      }
    }
  };
  await Promise.all(Array.from({ length: REPEATS_AT_ONCE }, repeatNext));
  agent.destroy();
  return violations;
}

function isSameAnswer(told: Exchange, again: Exchange): boolean {
  return JSON.stringify({ ...told.body, alreadyConfirmed: true }) === JSON.stringify(again.body);
}

async function checkSwept(db: pg.Pool): Promise<Violation[]> {
  const overdue = async () =>
    (
      await db.query<{ ticket: string }>(
        "SELECT ticket FROM reservations WHERE state = 'Live' AND expires_at < clock_timestamp() - interval '2 seconds'",
      )
    ).rows;
  try {
    await until(async () => (await overdue()).length === 0, SWEPT_WITHIN_MS);
    return [];
  } catch {
    const left = await overdue();
    const detail = `${left.length} rows are still Live, ${left[0]?.ticket} among them`;
    return [{ rule: "no hold outlives its time", detail, exchanges: [] }];
  }
}
