import { Agent } from "node:http";
import type pg from "pg";
import {
  ALWAYS,
  findBrokenChains,
  findBrokenRows,
  OF_THE_SERVICE,
  ON_A_STEADY_CLOCK,
  SOON,
} from "../../support/invariants.ts";
import { until, untilStarted } from "../../support/until.ts";
import type { ApiProcess, Cluster, Deployment } from "./cluster.ts";
import { exchangeOnce } from "./exchange.ts";
import {
  acquisitionOf,
  type Exchange,
  History,
  refOf,
  restoreReferences,
  type SuppliedKey,
  type SuppliedVoucher,
  type Violation,
} from "./history.ts";
import { judge } from "./judge.ts";
import { restoreTimes } from "./lists.ts";
import { readRecords } from "./records.ts";
import type { SteppedClock } from "./stepped-clock.ts";

const REPEATS_AT_ONCE = 16;
/** Maximum number of exchanges or rows in a violation. */
const SHOWN_MAX = 10;

/** Makes a violation that no single request shows. */
export function violation(rule: string, detail: string): Violation {
  return { rule, detail, exchanges: [] };
}

/** Waits until every API process is ready and redeems a voucher. Returns a violation if this takes too long. */
export async function checkAnswersAgain(
  cluster: Cluster,
  key: SuppliedKey,
  vouchers: readonly SuppliedVoucher[],
  history: History,
): Promise<{ tookMs: number; violations: Violation[] }> {
  const startedAt = performance.now();
  const exchanges: Exchange[] = [];
  const redeemsAgain = async (api: ApiProcess, index: number) => {
    const voucher = vouchers[index];
    if (voucher === undefined) throw new Error("no voucher is left for the final check");
    const externalRef = `answers-again-${api.process.name}`;
    const ask = { operation: "redeem", key, voucher, externalRef, by: { code: voucher.code }, token: null } as const;
    await until(() => isReady(api));
    await until(async () => {
      const exchange = history.add(await exchangeOnce(ask, api, 1));
      exchanges.push(exchange);
      return exchange.status === 200;
    });
  };
  const results = await Promise.allSettled(cluster.apis.map(redeemsAgain));
  const tookMs = Math.round(performance.now() - startedAt);
  const silent = cluster.apis.filter((_, index) => results[index]?.status === "rejected");
  const detail = `not ${silent.map((api) => api.process.name).join(" and ")} within ${tookMs} ms`;
  const rule = "everything answers again";
  return { tookMs, violations: silent.length > 0 ? [{ rule, detail, exchanges: exchanges.slice(-SHOWN_MAX) }] : [] };
}

/** Waits until every API process of a newly started deployment is ready. */
export async function untilReady({ apis }: Pick<Deployment, "apis">): Promise<void> {
  for (const api of apis) await untilStarted(() => isReady(api));
}

async function isReady(api: ApiProcess): Promise<boolean> {
  const response = await fetch(`${api.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}

/** Checks every answer and the database. The servers must run, and no caller may be active. */
export async function checkEverything(
  { db, apis, options, accidents }: Deployment,
  history: History,
  clock: SteppedClock,
): Promise<Violation[]> {
  const violations: Violation[] = [];
  await until(async () => (await findBrokenRows(db, SOON)).length === 0).catch(() => undefined);
  restoreReferences(history);
  const records = await readRecords(db, clock, history);
  restoreTimes(history, records);
  const freezes = new Map(apis.map(({ process }) => [process.name, process.freezes]));
  violations.push(...judge(history, records, { redeemWaitMs: options.redeemWaitMs, freezes }));
  // Last, because the repeat of a false answer changes the database.
  violations.push(...(await repeatConfirmed(apis, history)));
  const rules = { ...SOON, ...ALWAYS, ...OF_THE_SERVICE, ...(!clock.hasStepped && ON_A_STEADY_CLOCK) };
  for (const { rule, rows } of [...(await findBrokenRows(db, rules)), ...(await findBrokenChains(db))])
    violations.push(violation(rule, `${rows.length} times: ${rows.slice(0, SHOWN_MAX).join(", ")}`));
  return [...violations, ...accidents.map((accident) => violation("no process ends by itself", accident))];
}

/**
 * Expects no redemption in a copy from before the first redemption. The copy's worker must not run the original's jobs.
 */
export async function checkUntouched(db: pg.Pool): Promise<Violation[]> {
  const { rows } = await db.query("SELECT FROM redemptions");
  return rows.length === 0 ? [] : [violation("a copy redeems nothing", `the copy has ${rows.length} redemptions`)];
}

/** Repeats each confirmed redeem, claim and purchase, and expects the same answer with `alreadyConfirmed` true. */
async function repeatConfirmed(apis: readonly ApiProcess[], history: History): Promise<Violation[]> {
  const made = [
    ...history.of("redeem").map((first): [string, Exchange] => [refOf(first.ask), first]),
    ...history.of("acquire").map((first): [string, Exchange] => [acquisitionOf(first.ask), first]),
  ];
  const confirmed = [...new Map(made.filter(([, first]) => first.status === 200)).values()];
  const agent = new Agent({ keepAlive: true, maxSockets: REPEATS_AT_ONCE });
  const violations: Violation[] = [];
  const repeats = new History();
  const repeatNext = async (): Promise<void> => {
    for (let first = confirmed.pop(); first !== undefined; first = confirmed.pop()) {
      const api = apis[confirmed.length % apis.length] as ApiProcess;
      const again = repeats.add(await exchangeOnce(first.ask, api, 1, { agent }));
      const isSame = JSON.stringify({ ...first.body, alreadyConfirmed: true }) === JSON.stringify(again.body);
      if (again.status !== 200 || !isSame)
        violations.push({ rule: "a 200 stays true", detail: "its repeat differs", exchanges: [first, again] });
    }
  };
  await Promise.all(Array.from({ length: REPEATS_AT_ONCE }, repeatNext));
  agent.destroy();
  return violations;
}
