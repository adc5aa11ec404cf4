import type pg from "pg";
import { findCompleteUntil } from "../core/redeem/db/redemptions.ts";
import { countNextActivity, findTrustedAt } from "./db/activity.ts";

/** Counts redemptions and claims by minute and hour, up to the time before which lists of redemptions are complete. */
export async function countActivity({ pool }: { pool: pg.Pool }, untilMs: number): Promise<void> {
  const trustedAt = await findTrustedAt(pool);
  const completeUntil = await findCompleteUntil(pool);
  while ((await countNextActivity(pool, completeUntil, trustedAt)) && performance.now() < untilMs);
}
