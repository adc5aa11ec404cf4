import type pg from "pg";
import { parsePolicy } from "#tlog/policy.ts";
import { formatProof, verifyProof } from "#tlog/receipt.ts";
import type { Bulkhead, Requester } from "../core/callers/bulkhead.ts";
import { isErased } from "../core/chain/chain.ts";
import { findLoggedEvent, findLoggedRedemption, type LoggedEvent, selectEventsPage } from "../core/chain/db/events.ts";
import { type Confirming, readConfirmed } from "../core/commit/confirm-reads.ts";
import type { Caller } from "../core/keys/caller.ts";
import { formsOf } from "../core/voucher/references.ts";
import { resolveVoucher, type VoucherReads } from "../core/voucher/resolve-voucher.ts";
import { ENTITY_TYPE } from "../core/voucher/voucher.ts";
import { AppError, voucherNotFound } from "../platform/api/errors.ts";
import { INTEGER_MAX } from "../platform/api/fields.ts";
import type { Limits } from "../platform/limits/open-limits.ts";
import { findPublished } from "./db/log-checkpoints.ts";
import { TLOG_ERRORS } from "./declared.ts";
import { proveInclusion } from "./tree-proofs.ts";

type PartnerDeps = Confirming & { pool: pg.Pool; partnerCalls: Bulkhead<"organization"> };

// Before any response about an event, the standbys must confirm the event. Even the error `not_logged_yet` tells that
// the event has happened. The log itself contains only confirmed events.

/** The refusals of {@link readRedemptionReceipt}. */
export const REDEMPTION_RECEIPT_ERRORS = [
  "redemption_not_found",
  TLOG_ERRORS.not_logged_yet,
  TLOG_ERRORS.payload_erased,
  "overloaded",
  "unavailable",
] as const;

/** Reads the receipt of a redemption by its reference. @throws AppError of {@link REDEMPTION_RECEIPT_ERRORS}. */
export async function readRedemptionReceipt(ctx: PartnerDeps, caller: Caller, externalRef: string): Promise<string> {
  const event = await readConfirmed(ctx, () =>
    ctx.partnerCalls(caller, () => findRedeemed(ctx.pool, caller.organizationId, externalRef)),
  );
  if (event === null) throw new AppError("redemption_not_found");
  return ctx.partnerCalls(caller, () => proveEvent(ctx.pool, event, true));
}

/**
 * Reads a receipt for `voucherctl`, which may read any organization, or for the portal, which passes its caller's
 * organization. Does not confirm the receipt, and sets no limit on concurrent reads.
 * @throws AppError `redemption_not_found`, `not_logged_yet`, `payload_erased`.
 */
export async function receiptOfRedemption(pool: pg.Pool, organizationId: string, externalRef: string): Promise<string> {
  const event = await findRedeemed(pool, organizationId, externalRef);
  if (event === null) throw new AppError("redemption_not_found");
  return proveEvent(pool, event, true);
}

/**
 * Reads an event's receipt.
 * @throws AppError `voucher_not_found`, `too_many_misses`, `not_found` (no such event), `not_logged_yet`,
 * `payload_erased`, `overloaded`, `unavailable`.
 */
export async function readEventReceipt(
  ctx: PartnerDeps & { voucherReads: VoucherReads; limits: Limits },
  caller: Caller,
  codeOrTicket: string,
  sequence: string,
): Promise<string> {
  const { voucher } = await resolveVoucher(ctx, caller, codeOrTicket);
  if (voucher === null) throw voucherNotFound();
  const event = await readConfirmed(ctx, () =>
    ctx.partnerCalls(caller, () => findEvent(ctx.pool, voucher.id, sequence)),
  );
  if (event === null) throw new AppError("not_found");
  return ctx.partnerCalls(caller, () => proveEvent(ctx.pool, event, true));
}

/**
 * Reads the proof of an event without its payload, which anyone may see.
 * @throws AppError `entity_not_found`, `not_logged_yet`, `overloaded`, `unavailable`.
 */
export async function readEventProof(
  ctx: Confirming & { pool: pg.Pool; publicReads: Bulkhead<"visitor"> },
  visitor: Requester<"visitor">,
  entityType: string,
  entityId: string,
  sequence: string,
): Promise<string> {
  const isPossible = entityType === ENTITY_TYPE && !entityId.includes("\0");
  const event = isPossible
    ? await readConfirmed(ctx, () => ctx.publicReads(visitor, () => findEvent(ctx.pool, entityId, sequence)))
    : null;
  if (event === null) throw new AppError("entity_not_found");
  return ctx.publicReads(visitor, () => proveEvent(ctx.pool, event, false));
}

async function findRedeemed(pool: pg.Pool, organizationId: string, externalRef: string): Promise<LoggedEvent | null> {
  for (const form of formsOf(externalRef)) {
    const event = await findLoggedRedemption(pool, { organizationId, externalRef: form });
    if (event !== null) return event;
  }
  return null;
}

async function findEvent(pool: pg.Pool, voucherId: string, sequence: string): Promise<LoggedEvent | null> {
  const isSequence = /^[1-9]\d{0,9}$/.test(sequence) && Number(sequence) <= INTEGER_MAX;
  return isSequence ? findLoggedEvent(pool, { voucherId, sequence: Number(sequence) }) : null;
}

/** A payload counts as erased only if an erasing event lists it. Otherwise the chain is broken. */
async function explainMissingPayload(pool: pg.Pool, { voucherId, sequence }: LoggedEvent): Promise<Error> {
  const later = await selectEventsPage(pool, { voucherId, after: sequence, limit: INTEGER_MAX });
  if (isErased(sequence, later)) return new AppError(TLOG_ERRORS.payload_erased);
  return new Error(`event ${sequence} of ${voucherId} has no payload, and no later event says that it was erased`);
}

/** Builds the proof that the served checkpoint contains an event. Verifies the proof before it returns it. */
async function proveEvent(pool: pg.Pool, event: LoggedEvent, withPayload: boolean): Promise<string> {
  const { payload, recordHash, logIndex } = event;
  if (withPayload && recordHash !== null && payload === null) throw await explainMissingPayload(pool, event);
  const published = await findPublished(pool);
  if (published === null || recordHash === null || logIndex === null || logIndex >= published.size) {
    throw new AppError(TLOG_ERRORS.not_logged_yet);
  }
  const proof = formatProof({
    extra: withPayload && payload !== null ? Buffer.from(payload) : null,
    index: logIndex,
    hashes: await proveInclusion(pool, logIndex, published.size),
    checkpoint: published.note,
  });
  await verifyProof(proof, await parsePolicy(published.policy), recordHash);
  return proof;
}
