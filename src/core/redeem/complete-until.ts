import type pg from "pg";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import { findCompleteUntil, moveCompleteUntil } from "./db/redemptions.ts";

/** Minimum interval between two calls of `moveCompleteUntil` by one process. Milliseconds. */
const MOVE_EVERY_MS = 1_000;

/** The requester of a move for all organizations, without a signal, because the move serves several callers. */
const ALL_ORGANIZATIONS = { organizationId: "" };

/**
 * Reads the time before which redemptions are complete, on one of the requester's connections.
 * @throws AppError `unavailable`, `overloaded`.
 */
export type CompleteUntil = (requester: Requester<"organization">) => Promise<Date>;

/**
 * Returns a function that moves forward the time before which redemptions are complete, at most once a second, then
 * reads it and waits until the standbys have it. They then also have every earlier redemption. All processes share the
 * time, so a caller never gets an earlier time from another process.
 */
export function openCompleteUntil(
  ctx: Confirming & {
    pool: pg.Pool;
    deployment: Pick<DatabaseFence, "serverId" | "clock">;
    partnerCalls: Bulkhead<"organization">;
  },
): CompleteUntil {
  let latest: { moved: Promise<void>; startedAt: number } | undefined;
  const moveOnce = () => {
    const now = performance.now();
    if (latest === undefined || now - latest.startedAt > MOVE_EVERY_MS) {
      const moving = { moved: ctx.partnerCalls(ALL_ORGANIZATIONS, () => moveCompleteUntil(ctx)), startedAt: now };
      latest = moving;
      moving.moved.catch(() => {
        if (latest === moving) latest = undefined;
      });
    }
    return latest.moved;
  };
  return (requester) =>
    readConfirmed(ctx, async () => {
      await moveOnce();
      return ctx.partnerCalls(requester, () => findCompleteUntil(ctx.pool));
    });
}
