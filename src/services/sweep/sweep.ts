import type pg from "pg";
import type { Logger } from "pino";
import type { Config } from "../../config.ts";
import type { SweepReport } from "../../contract/jobs.ts";
import { endOverdueContracts } from "../../db/contracts.ts";
import type { Deployment } from "../../db/deployment.ts";
import { deleteOldEnds } from "../../db/redemptions.ts";
import type { RandomBytes } from "../../domain/codes.ts";
import type { Leases } from "../../holds/lease.ts";
import type { SealRequests } from "../../queues/seal-requests.ts";
import type { WebhookRequests } from "../../queues/webhook-requests.ts";
import { recordExpiries } from "../chain/record-expiries.ts";
import { checkChains } from "./check-chains.ts";
import { countActivity } from "./count-activity.ts";
import { expireReservations } from "./expire-reservations.ts";
import { removeOrphanLeases, restoreLeases } from "./reconcile-leases.ts";
import { removeDeliveries } from "./remove-deliveries.ts";
import { requestSeals } from "./request-seals.ts";
import { requestWebhooks } from "./request-webhooks.ts";

/** Time limit of each task that works in several steps. So a pass ends within the time that a stopping process has. Milliseconds. */
const TASK_MAX_MS = 2_000;

/** Most contracts that one pass ends. */
const CONTRACTS_MAX = 1_000;

/** Most ends of references that one pass deletes: more than an organization's calls write between two passes, and some 100 ms. */
const ENDS_MAX = 10_000;

interface Deps {
  pool: pg.Pool;
  deployment: Pick<Deployment, "clock">;
  leases: Leases;
  sealRequests: SealRequests;
  webhookRequests: WebhookRequests;
  randomBytes: RandomBytes;
  config: Config;
  log: Logger;
}

/** One pass of the sweeper. Passes may overlap; a failed task does not stop the others, and the next pass retries it. */
export async function sweep(ctx: Deps): Promise<SweepReport> {
  const startedAt = performance.now();
  const failures: Record<string, string> = {};
  const run = async <T>(task: string, work: (untilMs: number) => Promise<T>, fallback: T): Promise<T> => {
    try {
      return await work(performance.now() + TASK_MAX_MS);
    } catch (error) {
      ctx.log.error({ err: error, task }, "a task of the sweeper failed");
      failures[task] = error instanceof Error ? error.message : String(error);
      return fallback;
    }
  };
  const reservationsExpired = await run("expireReservations", (until) => expireReservations(ctx, until), 0);
  const leasesRestored = await run("restoreLeases", (until) => restoreLeases(ctx, until), 0);
  const leasesRemoved = await run("removeOrphanLeases", (until) => removeOrphanLeases(ctx, until), 0);
  const expiriesRecorded = await run("recordExpiries", (until) => recordExpiries(ctx, until), 0);
  const contractsEnded = await run("endContracts", () => endOverdueContracts(ctx.pool, CONTRACTS_MAX), 0);
  const sealsRequested = await run("requestSeals", () => requestSeals(ctx), 0);
  const webhooksRequested = await run("requestWebhooks", () => requestWebhooks(ctx), 0);
  const deliveriesRemoved = await run("removeDeliveries", (until) => removeDeliveries(ctx, until), 0);
  const endsRemoved = await run("removeEnds", () => deleteOldEnds(ctx.pool, ENDS_MAX), 0);
  await run("countActivity", (until) => countActivity(ctx, until), undefined);
  const checked = await run("checkChains", () => checkChains(ctx), { vouchers: 0, events: 0, broken: [] });
  return {
    reservationsExpired,
    leasesRestored,
    leasesRemoved,
    expiriesRecorded,
    contractsEnded,
    sealsRequested,
    webhooksRequested,
    deliveriesRemoved,
    endsRemoved,
    chainsChecked: checked.vouchers,
    chainsBroken: checked.broken.length,
    failures,
    durationMs: Math.round(performance.now() - startedAt),
  };
}
