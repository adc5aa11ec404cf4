import type pg from "pg";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import { findCompleteUntil, moveCompleteUntil } from "./db/redemptions.ts";

/** Minimum interval at which a process moves the time before which redemptions are complete. Milliseconds. */
const MOVE_EVERY_MS = 1_000;

/**
 * The owner of a move for all organizations. It has no signal, because a caller that disconnects must not end the move.
 */
const ALL_ORGANIZATIONS = { organizationId: "" };

/**
 * Reads the time before which redemptions are complete, on one of the requester's connections.
 * @throws AppError `unavailable`, `overloaded`.
 */
export type CompleteUntil = (requester: Requester<"organization">) => Promise<Date>;

/**
 * Returns a function that moves the time before which redemptions are complete forward, at most once a second. Then it
 * reads this time and confirms the read, which also confirms every earlier redemption. The time is shared by all
 * processes, so a caller that reaches another process never gets an earlier time.
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
