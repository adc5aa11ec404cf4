import type pg from "pg";
import { countNextActivity, findTrustedAt } from "../../db/activity.ts";
import type { Deployment } from "../../db/deployment.ts";
import { closeRedemptions } from "../../db/redemptions.ts";

/** Counts redemptions and claims by minute and hour, up to the time before which lists of redemptions are complete. */
export async function countActivity(
  { pool, deployment }: { pool: pg.Pool; deployment: Pick<Deployment, "clock"> },
  untilMs: number,
): Promise<void> {
  await deployment.clock.ready();
  const trustedAt = await findTrustedAt(pool);
  const completeUntil = await closeRedemptions(pool, deployment.clock.steadyNow());
  while ((await countNextActivity(pool, completeUntil, trustedAt)) && performance.now() < untilMs);
}
