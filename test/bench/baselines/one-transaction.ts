import type pg from "pg";
import type { Config } from "../../../src/config.ts";
import type { Transaction } from "../../../src/db/pool.ts";
import { findRedemption, type Redemption } from "../../../src/db/redemptions.ts";
import { type EndedHold, endHolds, openHolds } from "../../../src/db/reservations.ts";
import { bind, loadStatements } from "../../../src/db/statements.ts";
import { inTransaction, isLockTimeout, lookThenWrite, violates, write } from "../../../src/db/transaction.ts";
import { GENESIS_HASH, makeNonce, sealEvent } from "../../../src/domain/chain.ts";
import { makeRedeemCode, normaliseCode, type RandomBytes } from "../../../src/domain/codes.ts";
import { refusal } from "../../../src/domain/errors.ts";
import { decideHold, type Hold, liveHold } from "../../../src/domain/hold.ts";
import { isTicket, newId } from "../../../src/domain/ids.ts";
import { decideRedeem } from "../../../src/domain/redeem.ts";
import { hashToken, reservationToken, type TokenSecret } from "../../../src/domain/reservation-token.ts";
import type { StoredStatus, VoucherType } from "../../../src/domain/voucher.ts";
import type { Caller } from "../../../src/services/caller.ts";
import { type LookUpResult, verifyUrl, viewVoucher } from "../../../src/services/look-up-voucher.ts";
import { voucherBusy } from "../../../src/services/move-holds.ts";
import { type RedeemInput, type RedeemResult, redeemResult } from "../../../src/services/redeem-voucher.ts";
import type { ReserveResult } from "../../../src/services/reserve-voucher.ts";
import { voucherNotFound } from "../../../src/services/resolve-voucher.ts";
import { headsOf, sealPending, selectUnsealed } from "../../../src/services/seal-events.ts";

// What one would write by hand with care: a transaction for each request, in few statements and trips that keep the service's
// guarantees. BEGIN, the lock and the read behind it are sent together; the three writes of a burn are one statement, and COMMIT comes
// when it has been answered. Rules, seals, tables, pool settings and answers are the service's own, so that only the shape differs. And what one would write at first: the
// same in steps, each statement sent when the one before it has been answered.

const sql = loadStatements(new URL("./one-transaction.sql", import.meta.url), [
  "lock_named",
  "read_named",
  "write_burn",
  "write_redemption",
  "write_event",
  "write_voucher",
  "look_up",
]);

/** What the functions below need. */
export interface OneTransactionContext {
  pool: pg.Pool;
  /** Each statement in a trip of its own. */
  inSteps: boolean;
  tokenSecrets: TokenSecret[];
  randomBytes: RandomBytes;
  config: Config;
}

interface HoldColumns {
  hold_ticket: string | null;
  hold_key_id: string;
  hold_started_at: Date;
  hold_expires_at: Date;
  hold_token_secret_id: string;
}

interface LockedRow extends HoldColumns {
  now: Date;
  voucher_id: string;
  code: string;
  serial: number;
  status: StoredStatus;
  last_sequence: number;
  sealed_sequence: number;
  sealed_hash: string | null;
  valid_until: Date;
  retail_price_usd: number;
  price_usd: number;
  benefit_months: number;
  product_name: string;
  product_key: string;
  attempt_id: string | null;
  redeem_code: string;
  redeemed_at: Date;
}

/**
 * Burns a voucher in a transaction of its own.
 * @throws AppError as the service's redeem does.
 */
export async function redeemInOneTransaction(
  ctx: OneTransactionContext,
  caller: Caller,
  input: RedeemInput,
): Promise<RedeemResult> {
  const ref = { organizationId: caller.organizationId, externalRef: input.externalRef };
  try {
    const burnt = await transact(
      ctx,
      (tx) => lockAndRead(ctx, tx, caller, input.codeOrTicket, input.externalRef),
      (tx, row) => burn(ctx, tx, caller, input, row),
    );
    if (burnt !== null) return redeemResult(ctx, burnt, false);
  } catch (error) {
    if (!violates(error, "redemptions_external_ref")) throw error;
  }
  const confirmed = await findRedemption(ctx.pool, ref);
  if (confirmed === null) throw voucherNotFound();
  return redeemResult(ctx, confirmed, true);
}

/** Burns, or returns null when the reference is confirmed already or the voucher is unknown. */
async function burn(
  ctx: OneTransactionContext,
  tx: Transaction,
  caller: Caller,
  input: RedeemInput,
  row: LockedRow | null,
): Promise<Redemption | null> {
  if (row === null || row.attempt_id !== null) return null;
  const attemptId = `${row.voucher_id}-${crypto.randomUUID()}`;
  const request = {
    attemptId,
    voucherId: row.voucher_id,
    organizationId: caller.organizationId,
    keyId: caller.keyId,
    externalRef: input.externalRef,
    ticket: isTicket(input.codeOrTicket) ? input.codeOrTicket : null,
    tokenHash: input.token === null ? null : hashToken(input.token),
    note: input.note,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
  const hold = toHold(row);
  const decision = decideRedeem(
    { status: row.status, validUntil: row.valid_until },
    hold,
    null,
    request,
    row.now,
    (held) => hashToken(reservationToken(ctx.tokenSecrets, held.ticket, held.tokenSecretId)),
  );
  if (decision.kind === "refused") throw refusal(decision.code);
  if (decision.kind !== "burn") throw new Error(`a first attempt cannot be ${decision.kind}`);
  const ticket = decision.consumed?.ticket ?? null;
  const ended = hold === null ? [] : [{ ticket: hold.ticket, state: ticket ? "Consumed" : "Expired" } as const];
  const head = {
    id: row.voucher_id,
    lastSequence: row.last_sequence,
    sealedSequence: row.sealed_sequence,
    sealedHash: row.sealed_hash,
  };
  const heads = headsOf([head]);
  await write(tx, sealPending(heads, await selectUnsealed(tx, [head])));
  const sealedHash = heads.get(row.voucher_id)?.sealedHash ?? GENESIS_HASH;
  const redeemCode = makeRedeemCode(ctx.randomBytes);
  const sequence = row.last_sequence + 1;
  const seal = sealEvent(
    {
      voucherId: row.voucher_id,
      sequence,
      eventType: "voucher.instance.redeemed",
      occurredAt: row.now,
      actorConnectedId: caller.keyId,
      actorIsEmployee: null,
      data: {
        nonce: makeNonce(ctx.randomBytes),
        voucherCode: row.code,
        serial: row.serial,
        externalRef: input.externalRef,
        redeemCode,
        ticket,
        note: input.note ?? undefined,
        retailPriceUsd: row.retail_price_usd,
        priceUsd: row.price_usd,
      },
    },
    sealedHash,
  );
  const burnt = { ...request, ticket, redeemCode, redeemedAt: row.now, sequence, ...seal };
  const rowCount = ctx.inSteps ? await writeInSteps(tx, burnt, ended) : await writeAtOnce(tx, burnt, ended);
  if (rowCount !== 1) throw new Error("a voucher to redeem was not Active");
  return {
    voucherId: row.voucher_id,
    attemptId,
    redeemCode,
    redeemedAt: row.now,
    serial: row.serial,
    productName: row.product_name,
    productKey: row.product_key,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
  };
}

/** What a burn writes. */
interface Burnt {
  voucherId: string;
  organizationId: string;
  keyId: string;
  attemptId: string;
  ticket: string | null;
  redeemCode: string;
  externalRef: string;
  redeemedAt: Date;
  sequence: number;
  previousHash: string;
  recordHash: string;
  payload: string;
}

/** Returns how many vouchers were moved. */
async function writeAtOnce(tx: Transaction, burnt: Burnt, ended: readonly EndedHold[]): Promise<number | null> {
  const values = [
    burnt.voucherId,
    burnt.organizationId,
    burnt.keyId,
    burnt.attemptId,
    burnt.ticket,
    burnt.redeemCode,
    burnt.externalRef,
    burnt.redeemedAt,
    burnt.sequence,
    burnt.previousHash,
    burnt.recordHash,
    burnt.payload,
  ];
  const [{ rowCount }] = await Promise.all([
    tx.query(bind(sql.write_burn, values)),
    write(tx, endHolds(ended, burnt.redeemedAt)),
  ]);
  return rowCount;
}

/** The same, one after another. */
async function writeInSteps(tx: Transaction, burnt: Burnt, ended: readonly EndedHold[]): Promise<number | null> {
  const { voucherId, organizationId, keyId, attemptId, ticket, redeemCode, externalRef, redeemedAt, sequence } = burnt;
  await tx.query(
    bind(sql.write_redemption, [
      redeemedAt,
      voucherId,
      organizationId,
      keyId,
      attemptId,
      ticket,
      redeemCode,
      externalRef,
    ]),
  );
  await tx.query(
    bind(sql.write_event, [
      redeemedAt,
      voucherId,
      keyId,
      sequence,
      burnt.previousHash,
      burnt.recordHash,
      burnt.payload,
    ]),
  );
  const { rowCount } = await tx.query(bind(sql.write_voucher, [redeemedAt, voucherId, sequence, burnt.recordHash]));
  await write(tx, endHolds(ended, redeemedAt));
  return rowCount;
}

/**
 * Holds a voucher in a transaction of its own. The row lock alone keeps contenders apart; there is no lease.
 * @throws AppError as the service's reserve does.
 */
export async function reserveInOneTransaction(
  ctx: OneTransactionContext,
  caller: Caller,
  codeOrTicket: string,
): Promise<ReserveResult> {
  const look = (tx: Transaction) => lockAndRead(ctx, tx, caller, codeOrTicket, null);
  return transact(ctx, look, async (tx, row) => {
    if (row === null) throw voucherNotFound();
    const held = toHold(row);
    if (isTicket(codeOrTicket) && liveHold(held, row.now)?.ticket !== codeOrTicket) throw refusal("reservation_ended");
    const outcome = decideHold(
      { status: row.status, validUntil: row.valid_until },
      held,
      {
        ticket: newId("rsv"),
        keyId: caller.keyId,
        tokenSecretId: ctx.tokenSecrets[0]?.id ?? "",
        seconds: ctx.config.reservationSeconds,
      },
      row.now,
    );
    if (outcome.kind === "refused") throw refusal(outcome.code);
    if (outcome.kind === "opened") {
      if (held !== null) await write(tx, endHolds([{ ticket: held.ticket, state: "Expired" }], row.now));
      const hold = { ...outcome.hold, voucherId: row.voucher_id, organizationId: caller.organizationId };
      await write(tx, openHolds([hold]));
    }
    return {
      ticket: outcome.hold.ticket,
      token: reservationToken(ctx.tokenSecrets, outcome.hold.ticket, outcome.hold.tokenSecretId),
      expiresAt: outcome.hold.expiresAt.toISOString(),
      voucher: row.voucher_id,
    };
  });
}

/**
 * Looks a voucher up by its code, in one query per request.
 * @throws AppError `voucher_not_found`.
 */
export async function lookUpInOneQuery(
  ctx: OneTransactionContext,
  caller: Caller,
  code: string,
): Promise<LookUpResult> {
  const { rows } = await ctx.pool.query<
    HoldColumns & {
      now: Date;
      id: string;
      code: string;
      serial: number;
      status: StoredStatus;
      redeemed_at: Date | null;
      valid_until: Date;
      retail_price_usd: number;
      price_usd: number;
      benefit_months: number;
      usage_unit_label: string | null;
      product_name: string;
      product_key: string;
      type: VoucherType;
      brand: string;
    }
  >(bind(sql.look_up, [caller.organizationId, normaliseCode(code)]));
  const row = rows[0];
  if (row === undefined) throw voucherNotFound();
  const voucher = {
    id: row.id,
    code: row.code,
    serial: row.serial,
    status: row.status,
    redeemedAt: row.redeemed_at,
    validUntil: row.valid_until,
    retailPriceUsd: row.retail_price_usd,
    priceUsd: row.price_usd,
    benefitMonths: row.benefit_months,
    usageUnitLabel: row.usage_unit_label,
    productName: row.product_name,
    productKey: row.product_key,
    type: row.type,
    brand: row.brand,
  };
  const heldByCaller = row.hold_key_id === caller.keyId;
  return {
    voucher: viewVoucher(voucher, row.now),
    reservation:
      row.hold_ticket === null
        ? null
        : {
            ticket: heldByCaller ? row.hold_ticket : null,
            startedAt: row.hold_started_at.toISOString(),
            expiresAt: row.hold_expires_at.toISOString(),
            heldByCaller,
          },
    verifyUrl: verifyUrl(ctx, row.id),
  };
}

/** Like the service, gives up a row that others hold for too long, and says so. */
async function transact<Seen, T>(
  ctx: OneTransactionContext,
  look: (tx: Transaction) => Promise<Seen>,
  work: (tx: Transaction, seen: Seen) => Promise<T>,
): Promise<T> {
  try {
    return ctx.inSteps
      ? await inTransaction(ctx.pool, async (tx) => work(tx, await look(tx)))
      : await lookThenWrite(ctx.pool, look, async (seen, tx) => ({ result: await work(tx, seen), writes: [] }));
  } catch (error) {
    throw isLockTimeout(error) ? voucherBusy() : error;
  }
}

async function lockAndRead(
  ctx: OneTransactionContext,
  tx: Transaction,
  caller: Caller,
  codeOrTicket: string,
  externalRef: string | null,
): Promise<LockedRow | null> {
  const named = isTicket(codeOrTicket) ? [null, codeOrTicket] : [normaliseCode(codeOrTicket), null];
  const wanted = [caller.organizationId, ...named];
  const lock = tx.query(bind(sql.lock_named, wanted));
  if (ctx.inSteps) await lock;
  const read = tx.query<LockedRow>(bind(sql.read_named, [...wanted, externalRef]));
  const [, { rows }] = await Promise.all([lock, read]);
  return rows[0] ?? null;
}

function toHold(row: HoldColumns): Hold | null {
  if (row.hold_ticket === null) return null;
  return {
    ticket: row.hold_ticket,
    keyId: row.hold_key_id,
    startedAt: row.hold_started_at,
    expiresAt: row.hold_expires_at,
    tokenSecretId: row.hold_token_secret_id,
  };
}
