import type { Logger } from "pino";
import type { SealJob, SealReply } from "../core/chain/seal-job.ts";
import { sealQueue } from "../core/chain/seal-job.ts";
import { awaitConfirmation, type Confirmations } from "../core/commit/confirm-reads.ts";
import { answerAfterCommit } from "../core/commit/proofs.ts";
import { type VoucherReads, verifyUrl, viewVoucher } from "../core/voucher/resolve-voucher.ts";
import { hasFinalStatus } from "../core/voucher/voucher.ts";
import { AppError, voucherBusy } from "../platform/api/errors.ts";
import { markSandbox } from "../platform/api/fields.ts";
import type { Config } from "../platform/config.ts";
import { isLockTimeout } from "../platform/db/transaction.ts";
import type { DeploymentIdentity } from "../platform/deployment-identity.ts";
import type { AwaitedQueue } from "../platform/queues/awaited-queue.ts";
import type { Traces } from "../platform/traces/traces.ts";
import type { AcquisitionCommitter } from "./acquisition-committer.ts";
import type { AcquireResponse } from "./api/acquire.ts";
import type { Acquired, AcquisitionRequest, Refused } from "./decide-acquisitions.ts";
import { MARKETPLACE_ERRORS } from "./declared.ts";

/** Maximum wait for the event's seal. The voucher is acquired in any case, and the seal job continues. Milliseconds. */
const SEAL_WAIT_MS = 1_000;

interface Deps {
  deployment: DeploymentIdentity;
  acquisitions: AcquisitionCommitter;
  sealQueue: AwaitedQueue<SealJob, SealReply>;
  voucherReads: VoucherReads;
  confirmations: Confirmations;
  config: Config;
  log: Logger;
  traces: Traces;
}

/**
 * Gives a user a voucher of an open batch, once per claim or payment. A repeat returns the same voucher, even if a new
 * request would now be refused.
 * @throws AppError `listing_not_found`, `product_not_found`, `link_not_found`, `referrers_only`, `window_closed`,
 * `voucher_suspended`, `sold_out`, `voucher_busy`, `unavailable`; BatcherFull if the user gets no voucher.
 */
export async function acquireVoucher(ctx: Deps, request: AcquisitionRequest): Promise<AcquireResponse> {
  const readFrom = ctx.deployment.serverId;
  const outcome = await ctx.acquisitions.submit(request).catch((error: unknown) => {
    throw isLockTimeout(error) ? voucherBusy() : error;
  });
  // Confirms the refusal first, because a failover could undo the acquisition of the last voucher.
  if (outcome.kind === "refused" && outcome.code === "sold_out") await awaitConfirmation(ctx, readFrom);
  if (outcome.kind === "refused") throw new AppError(kindOf(outcome.code));
  return answerAfterCommit(() => answerWith(ctx, outcome, readFrom));
}

async function answerWith(
  ctx: Deps,
  { alreadyConfirmed, sandbox, voucher: { id, organizationId, codeKey } }: Acquired,
  readFrom: string,
): Promise<AcquireResponse> {
  if (!alreadyConfirmed) await awaitSeal(ctx, id);
  const { now, voucher } = await ctx.voucherReads.submit({ organizationId, codeKey, ticket: null, externalRef: null });
  if (voucher === null) throw new Error(`the acquired voucher ${id} was not found`);
  if (alreadyConfirmed || hasFinalStatus(voucher)) await awaitConfirmation(ctx, readFrom);
  return {
    voucher: viewVoucher(voucher, now),
    alreadyConfirmed,
    verifyUrl: verifyUrl(ctx, id),
    ...markSandbox(sandbox),
  };
}

/** Waits for the seal of the acquisition's event for a short time. Does not wait if the queue is full. */
async function awaitSeal(ctx: Deps, voucherId: string): Promise<void> {
  if (!ctx.sealQueue.askForPlace({ voucherId })) {
    ctx.log.warn({ voucherId }, "the seal queue is full: an event will be sealed later");
    return;
  }
  const sealed = await ctx.traces.sendJob(sealQueue.name, (traceparent) =>
    ctx.sealQueue.addAndWait(`${voucherId}-${crypto.randomUUID()}`, { voucherId }, SEAL_WAIT_MS, { traceparent }),
  );
  if (sealed.kind !== "reply") ctx.log.warn({ voucherId, sealed: sealed.kind }, "an event will be sealed later");
}

/** The marketplace's declaration of a refusal code. For a code that the core declares, the code itself. */
function kindOf(code: Refused["code"]) {
  return isOwn(code) ? MARKETPLACE_ERRORS[code] : code;
}

function isOwn(code: Refused["code"]): code is Extract<Refused["code"], keyof typeof MARKETPLACE_ERRORS> {
  return Object.hasOwn(MARKETPLACE_ERRORS, code);
}
