import type pg from "pg";
import type { DatabaseFence } from "../../platform/db/database-fence.ts";
import type { Bulkhead, Requester } from "../callers/bulkhead.ts";
import { type Confirming, readConfirmed } from "../commit/confirm-reads.ts";
import { advanceCompleteUntil, findCompleteUntil } from "./db/redemptions.ts";

/** Interval at which a process moves the time before which redemptions are complete, at most. Milliseconds. */
const CLOSE_EVERY_MS = 1_000;

/** The owner of calls for which all organizations wait. It has no signal: a caller that leaves must not end them. */
const ALL_ORGANIZATIONS = { organizationId: "" };

/**
 * Reads the time before which redemptions are complete, on a connection of the requester.
 * @throws AppError `unavailable`, `overloaded`.
 */
export type CompleteUntil = (requester: Requester<"organization">) => Promise<Date>;

/**
 * Returns a function that reads the time before which redemptions are complete, and confirms it: with it, every earlier
 * redemption. Before that, it moves the time forward, at most once a second. All processes share the time, so that it
 * never goes back from one to another.
 */
export function openCompleteUntil(
  ctx: Confirming & {
    pool: pg.Pool;
    deployment: Pick<DatabaseFence, "origin" | "clock">;
    partnerCalls: Bulkhead<"organization">;
  },
): CompleteUntil {
  let latest: { closed: Promise<void>; startedAt: number } | undefined;
  const close = () => {
    const now = performance.now();
    if (latest === undefined || now - latest.startedAt > CLOSE_EVERY_MS) {
      const closing = { closed: closeOnce(ctx), startedAt: now };
      latest = closing;
      closing.closed.catch(() => {
        if (latest === closing) latest = undefined;
      });
    }
    return latest.closed;
  };
  return (requester) =>
    readConfirmed(ctx, async () => {
      await close();
      return ctx.partnerCalls(requester, () => findCompleteUntil(ctx.pool));
    });
}

async function closeOnce({ pool, deployment, partnerCalls }: Parameters<typeof openCompleteUntil>[0]): Promise<void> {
  const { clock } = deployment;
  await clock.ready();
  // A clock that jumped ahead would close times that are still ahead, for all organizations.
  await partnerCalls(ALL_ORGANIZATIONS, () => advanceCompleteUntil(pool, clock.steadyNow()));
}
