import { setTimeout as sleep } from "node:timers/promises";
import { of, p99, startRedeems } from "./drop.ts";
import type { Player } from "./play-case.ts";

/** Redeems of one organization, beside those of another one whose rows a transaction from outside holds locked. */
export interface Locked {
  title: string;
  rows: number;
  /** Concurrent redeems of the organization whose rows are free. */
  redeems: number;
}

export const LOCKED = {
  "locked-1000": {
    title: "16 redeems at once, beside 1 000 locked vouchers of another organization",
    rows: 1_000,
    redeems: 16,
  },
} as const satisfies Record<string, Locked>;

export interface LockedRound {
  /** Answers to the organization whose rows are locked. */
  busy: number;
  /** The slowest of them. Seconds. */
  slowestSeconds: number;
  beforeMs: number;
  duringMs: number;
}

/** Calls for locked vouchers per second: what the default limit of a key lets through. */
const CALLS_PER_SECOND = 200;
/** How long the rows stay locked: several times the longest wait for a row. Seconds. */
const LOCKED_SECONDS = 20;

/**
 * Plays it once.
 * @throws Error when a redeem of a free voucher is refused, or one of a locked voucher gets another answer than `voucher_busy`.
 */
export async function playLocked(
  locked: Locked,
  { running, stage }: Player,
  signal: AbortSignal,
): Promise<LockedRound> {
  const { key, vouchers } = await stage.makeOther(locked.rows);
  const redeems = await startRedeems(locked, { running, stage }, signal);
  const outside = await stage.db.connect();
  const calls: Promise<number>[] = [];
  let lockedAt = Number.NaN;
  let freeAt = Number.NaN;
  try {
    await outside.query("BEGIN");
    await outside.query("SELECT id FROM vouchers WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE", [
      vouchers.map(({ id }) => id),
    ]);
    lockedAt = performance.now();
    for (let count = 0; performance.now() < lockedAt + LOCKED_SECONDS * 1_000; count++) {
      signal.throwIfAborted();
      await sleep(Math.max(0, lockedAt + (count * 1_000) / CALLS_PER_SECOND - performance.now()));
      const code = vouchers[count % vouchers.length]?.code ?? "";
      const call = redeemLocked(running.ports[0] ?? 0, key, { code, externalRef: `locked-${code}` });
      // A failure is thrown where all calls are awaited.
      call.catch(() => undefined);
      calls.push(call);
    }
    freeAt = performance.now();
    // Each call is answered while the rows are still locked.
    const latencies = await Promise.all(calls);
    const units = await redeems.stop();
    running.check();
    const endOf = ({ startedAt, latencyMs }: (typeof units)[number]) => startedAt + latencyMs;
    return {
      busy: latencies.length,
      slowestSeconds: Math.max(...latencies) / 1_000,
      beforeMs: p99(units.filter((unit) => endOf(unit) < lockedAt)),
      duringMs: p99(units.filter((unit) => endOf(unit) > lockedAt && unit.startedAt < freeAt)),
    };
  } finally {
    await outside.query("ROLLBACK");
    outside.release();
  }
}

async function redeemLocked(port: number, key: string, body: { code: string; externalRef: string }): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`http://127.0.0.1:${port}/partner/vouchers/redeem`, {
    method: "POST",
    headers: { "X-Api-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = await response.text();
  if (response.status !== 503 || JSON.parse(answer).code !== "voucher_busy") {
    throw new Error(`a redeem of a locked voucher was answered ${response.status} ${answer}`);
  }
  return performance.now() - startedAt;
}

/** The columns of its table. */
export const LOCKED_COLUMNS: Record<string, (rounds: readonly LockedRound[]) => string> = {
  "told busy": (rounds) => of(rounds, ({ busy }) => busy),
  "slowest s": (rounds) => of(rounds, ({ slowestSeconds }) => slowestSeconds, 1),
  "redeem p99 ms before": (rounds) => of(rounds, ({ beforeMs }) => beforeMs),
  during: (rounds) => of(rounds, ({ duringMs }) => duringMs),
  "×": (rounds) => of(rounds, ({ beforeMs, duringMs }) => duringMs / beforeMs, 1),
};
