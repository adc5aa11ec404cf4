import { Agent } from "node:http";
import type pg from "pg";
import { assertInvariants } from "../../support/invariants.ts";
import { until, untilStarted } from "../../support/until.ts";
import { checkAnswers } from "./answer-rules.ts";
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
import { checkErasures, checkIssuers } from "./issuer-rules.ts";
import { restoreTimes } from "./lists.ts";
import { checkOrder } from "./order.ts";
import { readRecords } from "./records.ts";
import { checkAcquisitions, checkRedeems, checkReservations } from "./rules.ts";
import type { SteppedClock } from "./stepped-clock.ts";

/**
 * Maximum time from the last fault until everything answers again. A dozen processes start meanwhile, on cores that may
 * run another campaign. Milliseconds.
 */
const ANSWERS_AGAIN_MS = 30_000;
/**
 * Time for the sweeper, which runs twice a second, to expire overdue reservations and to request seals after 5 s.
 * Milliseconds.
 */
const SWEPT_WITHIN_MS = 15_000;
/** Concurrent repeats. */
const REPEATS_AT_ONCE = 16;
/** Maximum number of rows in a violation. */
const NAMED_MAX = 10;

/** Queries that must return no rows soon after recovery, once the sweeper has done its work. */
const MUST_BECOME_EMPTY: Record<string, string> = {
  "no reservation outlives its end": `
    SELECT ticket FROM reservations WHERE state = 'Live' AND expires_at < clock_timestamp() - interval '2 seconds'`,
  "every event gets sealed": `
    SELECT voucher_id || ' ' || sequence FROM voucher_events WHERE seal_status = 'Pending'`,
};

/** Queries that must return no rows. The invariants of every test contain further queries. */
const MUST_BE_EMPTY: Record<string, string> = {
  "at most one redemption per voucher": `
    SELECT voucher_id FROM redemptions GROUP BY voucher_id HAVING count(*) > 1`,
  "each redemption has its sealed event": `
    SELECT d.voucher_id FROM redemptions d
     WHERE (SELECT count(*) FROM voucher_events e
             WHERE e.voucher_id = d.voucher_id AND e.event_type = 'voucher.instance.redeemed'
               AND e.seal_status = 'Sealed'
               AND CASE WHEN d.external_ref LIKE 'erased:%' THEN e.payload IS NULL
                        ELSE (e.payload::json -> 'data' ->> 'externalRef') = d.external_ref
                         AND (e.payload::json -> 'data' ->> 'redeemCode') = d.redeem_code END
               AND e.occurred_at = d.redeemed_at) <> 1`,
  "an expired reservation ended at its expiresAt": `
    SELECT ticket FROM reservations WHERE state = 'Expired' AND ended_at <> expires_at`,
  "a consumed reservation was consumed by a redemption": `
    SELECT r.ticket FROM reservations r LEFT JOIN redemptions d ON d.ticket = r.ticket
     WHERE r.state = 'Consumed' AND (d.ticket IS NULL OR d.redeemed_at <> r.ended_at)`,
};

/**
 * Holds while the clock never steps back. Otherwise only the constraint must hold: a voucher has one Live reservation.
 * A redemption at the closed time may consume a reservation with an earlier end.
 */
const ON_A_STEADY_CLOCK: Record<string, string> = {
  "a consumed or released reservation ended before its expiresAt": `
    SELECT ticket FROM reservations WHERE state IN ('Consumed', 'Released') AND ended_at >= expires_at`,
  "a voucher has one reservation at a time": `
    SELECT one.ticket || ' ' || other.ticket
      FROM reservations one JOIN reservations other ON other.voucher_id = one.voucher_id AND other.ticket > one.ticket
     WHERE tstzrange(one.started_at, least(one.ended_at, one.expires_at))
        && tstzrange(other.started_at, least(other.ended_at, other.expires_at))`,
};

/** A violation without a request that shows it. */
export function violation(rule: string, detail: string): Violation {
  return { rule, detail, exchanges: [] };
}

/** Waits until every API process is ready and redeems a voucher. Returns a violation if that takes too long. */
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
    await until(() => isReady(api), ANSWERS_AGAIN_MS);
    await until(async () => {
      const exchange = history.add(await exchangeOnce(ask, api, 1));
      exchanges.push(exchange);
      return exchange.status === 200;
    }, ANSWERS_AGAIN_MS);
  };
  const results = await Promise.allSettled(cluster.apis.map(redeemsAgain));
  const tookMs = Math.round(performance.now() - startedAt);
  const silent = cluster.apis.filter((_, index) => results[index]?.status === "rejected");
  const detail = `${silent.map((api) => api.process.name).join(" and ") || "everything"} took ${tookMs} ms`;
  const isLate = silent.length > 0 || tookMs > ANSWERS_AGAIN_MS;
  const rule = `everything answers again within ${ANSWERS_AGAIN_MS / 1_000} s`;
  return { tookMs, violations: isLate ? [{ rule, detail, exchanges: exchanges.slice(-NAMED_MAX) }] : [] };
}

/** Waits until the API processes of a newly started deployment are ready. */
export async function untilReady({ apis }: Pick<Deployment, "apis">): Promise<void> {
  for (const api of apis) await untilStarted(() => isReady(api));
}

async function isReady(api: ApiProcess): Promise<boolean> {
  const response = await fetch(`${api.url}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  await response?.body?.cancel();
  return response?.ok ?? false;
}

/** Checks every answer and the database. The service must be healthy and idle. */
export async function checkEverything(
  { db, apis, options, accidents }: Deployment,
  history: History,
  clock: SteppedClock,
): Promise<Violation[]> {
  const violations: Violation[] = [];
  const check = async (queries: Record<string, string>, waitMs: number) => {
    for (const [rule, text] of Object.entries(queries)) {
      const read = async () => (await db.query({ text, rowMode: "array" })).rows;
      await until(async () => (await read()).length === 0, waitMs).catch(() => undefined);
      const rows = await read();
      const named = rows.slice(0, NAMED_MAX).flat().join(", ");
      if (rows.length > 0) violations.push(violation(rule, `${rows.length} times: ${named}`));
    }
  };
  await check(MUST_BECOME_EMPTY, SWEPT_WITHIN_MS);
  restoreReferences(history);
  const records = await readRecords(db, clock, history);
  restoreTimes(history, records);
  const freezes = new Map(apis.map(({ process }) => [process.name, process.freezes]));
  violations.push(
    ...checkOrder(history, clock, records),
    ...checkRedeems(history, records, options.redeemWaitMs, freezes),
    ...checkAcquisitions(history, records),
    ...checkReservations(history, records),
    ...checkIssuers(history, records),
    ...checkErasures(history, records),
    ...checkAnswers(history, records),
  );
  // Last, because repeats of false answers change the database.
  violations.push(...(await repeatConfirmed(apis, history)));
  await check({ ...MUST_BE_EMPTY, ...(!clock.hasStepped && ON_A_STEADY_CLOCK) }, 0);
  await assertInvariants(db).catch((error: Error) => {
    violations.push(violation("the invariants of every test", error.message));
  });
  return [...violations, ...accidents.map((accident) => violation("no process ends by itself", accident))];
}

/**
 * Expects that a copy from before the first redemption has no redemption, because its worker must not run the
 * original's jobs.
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
