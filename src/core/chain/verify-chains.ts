import { setImmediate as nextTurn } from "node:timers/promises";
import type pg from "pg";
import { AppError } from "../../platform/api/errors.ts";
import { onSnapshot } from "../../platform/db/transaction.ts";
import { findRangeEnd, selectChainHeadsOfRange } from "../voucher/db/voucher-ranges.ts";
import { findChainHead } from "../voucher/db/vouchers.ts";
import type { ChainHead } from "../voucher/voucher.ts";
import { type StoredEvent, verifyChain } from "./chain.ts";
import { selectEventsOfRange, selectEventsPage } from "./db/events.ts";

/** Number of vouchers verified from one snapshot. Their payloads take a few megabytes. */
const RANGE_VOUCHERS = 2_000;
/** Number of ranges in progress at the same time. With two, Postgres reads one while the process verifies the other. */
const CONCURRENCY = 2;

/** Number of chains verified in one turn of the event loop: about 2 ms, so that redemptions need not wait for long. */
const PIECE_CHAINS = 100;

/** The largest SQL integer. No chain has so many events. */
const ALL_EVENTS = 2 ** 31 - 1;

export interface VerifyResult {
  vouchers: number;
  events: number;
  /** Erased events of intact chains. `events` includes them. */
  erased: number;
  broken: { voucherId: string; sequence: number; problem: string }[];
}

/** Adds the result of a range to the total. */
export function addResult(total: VerifyResult, result: VerifyResult): void {
  total.vouchers += result.vouchers;
  total.events += result.events;
  total.erased += result.erased;
  total.broken.push(...result.broken);
}

/** Verifies the chain of one voucher. @throws AppError `not_found`. */
export async function verifyOneChain(ctx: { pool: pg.Pool }, voucherId: string): Promise<VerifyResult> {
  const { head, events } = await onSnapshot(ctx.pool, async (tx) => ({
    head: await findChainHead(tx, voucherId),
    events: await selectEventsPage(tx, { voucherId, after: 0, limit: ALL_EVENTS }),
  }));
  if (head === null) throw new AppError("not_found", `There is no voucher ${voucherId}.`);
  return verifySnapshot([{ voucherId, ...head }], events);
}

/** Verifies every chain without blocking writers. `onRange` gets the totals so far. If it throws, the run ends. */
export async function verifyAllChains(
  ctx: { pool: pg.Pool },
  onRange: (soFar: VerifyResult) => void = () => undefined,
): Promise<VerifyResult> {
  const total: VerifyResult = { vouchers: 0, events: 0, erased: 0, broken: [] };
  const ranges = allRanges(ctx);
  const verifyRanges = async () => {
    // Both loops take ranges from one generator. A loop that fails closes the generator, which ends the other loop.
    for await (const [afterId, lastId] of ranges) {
      const result = await verifyRange(ctx, afterId, lastId);
      addResult(total, result);
      onRange(total);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, verifyRanges));
  total.broken.sort((a, b) => (a.voucherId < b.voucherId ? -1 : 1));
  return total;
}

/** Verifies the chains of the next `limit` vouchers in id order, all in memory, and returns the last id. */
export async function verifyNextChains(
  ctx: { pool: pg.Pool },
  afterId: string,
  limit: number,
): Promise<{ result: VerifyResult; last: string }> {
  const lastId = await findRangeEnd(ctx.pool, { after: afterId, limit });
  if (lastId === null) return { result: { vouchers: 0, events: 0, erased: 0, broken: [] }, last: afterId };
  return { result: await verifyRange(ctx, afterId, lastId), last: lastId };
}

/** In one snapshot, verifies the chains of the vouchers after one id and up to another. */
async function verifyRange(ctx: { pool: pg.Pool }, afterId: string, lastId: string): Promise<VerifyResult> {
  const { heads, events } = await onSnapshot(ctx.pool, async (tx) => ({
    heads: await selectChainHeadsOfRange(tx, { after: afterId, last: lastId }),
    events: await selectEventsOfRange(tx, { after: afterId, last: lastId }),
  }));
  return verifySnapshot(heads, events);
}

async function* allRanges(ctx: { pool: pg.Pool }): AsyncGenerator<[afterId: string, lastId: string], void, void> {
  for (let afterId = ""; ; ) {
    const lastId = await findRangeEnd(ctx.pool, { after: afterId, limit: RANGE_VOUCHERS });
    if (lastId === null) return;
    yield [afterId, lastId];
    afterId = lastId;
  }
}

/** @param events all events of these chains in the same snapshot, in chain order. */
async function verifySnapshot(
  heads: (ChainHead & { voucherId: string })[],
  events: StoredEvent[],
): Promise<VerifyResult> {
  const chains = Map.groupBy(events, ({ voucherId }) => voucherId);
  const broken: VerifyResult["broken"] = [];
  for (const [index, { voucherId, ...head }] of heads.entries()) {
    if (index > 0 && index % PIECE_CHAINS === 0) await nextTurn();
    const problem = verifyChain(voucherId, head, chains.get(voucherId) ?? []);
    if (problem !== null) broken.push({ voucherId, ...problem });
  }
  const isBroken = new Set(broken.map(({ voucherId }) => voucherId));
  const lacking = events.filter(({ sealStatus, payload }) => sealStatus === "Sealed" && payload === null);
  const erased = lacking.filter(({ voucherId }) => !isBroken.has(voucherId)).length;
  return { vouchers: heads.length, events: events.length, erased, broken };
}
