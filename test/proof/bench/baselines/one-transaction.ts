import type pg from "pg";
import { GENESIS_HASH } from "../../../../src/core/chain/chain.ts";
import { appendEvents, openSinks, readPending } from "../../../../src/core/chain/seal-events.ts";
import type { Caller } from "../../../../src/core/keys/caller.ts";
import type { LookUpResponse } from "../../../../src/core/look-up/api/look-up.ts";
import type { RedeemResponse } from "../../../../src/core/redeem/api/redeem.ts";
import { type Redemption, readRedemptions } from "../../../../src/core/redeem/db/redemptions.ts";
import { decideRedeem } from "../../../../src/core/redeem/redeem.ts";
import { redemptionResponse } from "../../../../src/core/redeem/redeem-voucher.ts";
import type { ReserveResponse } from "../../../../src/core/reserve/api/reserve.ts";
import { endReservations, openReservations } from "../../../../src/core/reserve/db/reservations.ts";
import { lifetimeSeconds } from "../../../../src/core/reserve/reservation-lifetime.ts";
import {
  hashToken,
  reservationToken,
  signingSecret,
  type TokenSecret,
} from "../../../../src/core/reserve/reservation-token.ts";
import { makeRedeemCode, normaliseCode } from "../../../../src/core/voucher/codes.ts";
import type { Voucher } from "../../../../src/core/voucher/db/vouchers.ts";
import { isTicket, newId } from "../../../../src/core/voucher/ids.ts";
import { decideReservation, liveReservation, type Reservation } from "../../../../src/core/voucher/reservation.ts";
import { verifyUrl, viewVoucher } from "../../../../src/core/voucher/resolve-voucher.ts";
import type { ChainHead } from "../../../../src/core/voucher/voucher.ts";
import { refusal, voucherBusy, voucherNotFound } from "../../../../src/platform/api/errors.ts";
import type { RandomBytes } from "../../../../src/platform/base32.ts";
import type { Config } from "../../../../src/platform/config.ts";
import { integer, orNull, text, timestamptz } from "../../../../src/platform/db/columns.ts";
import type { Transaction } from "../../../../src/platform/db/pool.ts";
import { Statements } from "../../../../src/platform/db/statements.ts";
import { isLockTimeout, readThenWrite, violates, write } from "../../../../src/platform/db/transaction.ts";
import { sealRedemption } from "./seal-redemption.ts";

// A simple service with the same guarantees and one transaction per request. It sends BEGIN, the lock and the read
// together, then the statement that writes the redemption, and COMMIT after the statement has succeeded. It uses the
// service's rules, seals, tables, pool settings and answers.

const sql = new Statements(new URL("./one-transaction.sql", import.meta.url));
const lockNamed = sql.prepare("lock_named", { organizationId: text, codeKey: orNull(text), ticket: orNull(text) });
const readNamed = sql.prepare("read_named", {
  organizationId: text,
  codeKey: orNull(text),
  ticket: orNull(text),
  externalRef: orNull(text),
});
const writeRedemption = sql.prepare("write_redemption", {
  voucherId: text,
  organizationId: text,
  keyId: text,
  attemptId: text,
  ticket: orNull(text),
  redeemCode: text,
  externalRef: text,
  redeemedAt: timestamptz,
  sequence: integer,
  previousHash: text,
  recordHash: text,
  payload: text,
});
const lookUp = sql.prepare("look_up", { organizationId: text, codeKey: orNull(text) });

/** The body of a redeem, validated by the service's schema. */
export interface RedeemBody {
  code?: string | null;
  ticket?: string | null;
  externalRef: string;
  token?: string | null;
  note?: string | null;
}

export interface OneTransactionContext {
  pool: pg.Pool;
  tokenSecrets: TokenSecret[];
  randomBytes: RandomBytes;
  config: Config;
}

/** The columns of a voucher's live reservation, or nulls without one. */
type ReservationColumns = Omit<Reservation, "ticket"> & { ticket: string | null };

/** A locked voucher with its terms, its live reservation and the time. */
export interface LockedRow extends ReservationColumns, Voucher, ChainHead {
  now: Date;
  /** The id of the attempt that confirmed the reference, or null. */
  attemptId: string | null;
}

/**
 * Redeems a voucher in one transaction.
 * @param attempt identifies the request. After a failure, the same attempt gets the first run's answer.
 * @param runTransaction runs the transaction, by default `transact`.
 * @throws AppError like the service's redeem.
 */
export async function redeemInOneTransaction(
  ctx: OneTransactionContext,
  caller: Caller,
  body: RedeemBody,
  attempt: string = crypto.randomUUID(),
  runTransaction: RunTransaction = transact,
): Promise<RedeemResponse> {
  const ref = { organizationId: caller.organizationId, externalRef: body.externalRef };
  const codeOrTicket = body.code ?? body.ticket ?? "";
  try {
    const response = await runTransaction(
      ctx,
      (tx) => lockAndRead(tx, caller, codeOrTicket, body.externalRef),
      async (tx, row) => {
        const redemption = await redeem(ctx, tx, caller, body, row, attempt);
        return redemption && redemptionResponse(ctx, redemption, false);
      },
    );
    if (response !== null) return response;
  } catch (error) {
    if (!violates(error, "redemptions_external_ref")) throw error;
  }
  const confirmed = (await readRedemptions(ctx.pool, [ref]))[0]?.redemption ?? null;
  if (confirmed === null) throw voucherNotFound();
  return redemptionResponse(ctx, confirmed, confirmed.attemptId !== attemptIdOf(confirmed.voucherId, attempt));
}

const attemptIdOf = (voucherId: string, attempt: string) => `${voucherId}-${attempt}`;

/** Redeems, or returns null if the reference is already confirmed or the voucher is unknown. */
async function redeem(
  ctx: OneTransactionContext,
  tx: Transaction,
  caller: Caller,
  { ticket: named = null, externalRef, token = null, note = null }: RedeemBody,
  row: LockedRow | null,
  attempt: string,
): Promise<Redemption | null> {
  if (row === null || row.attemptId !== null) return null;
  const attemptId = attemptIdOf(row.id, attempt);
  const request = {
    attemptId,
    isEnded: false,
    voucherId: row.id,
    organizationId: caller.organizationId,
    keyId: caller.keyId,
    externalRef,
    ticket: named,
    tokenHash: token === null ? null : hashToken(token),
    note,
    deadlineMs: Number.POSITIVE_INFINITY,
  };
  const reservation = toReservation(row);
  const decision = decideRedeem(row, reservation, null, request, row.now, (live) =>
    hashToken(reservationToken(ctx.tokenSecrets, live.ticket, live.tokenSecretId)),
  );
  if (decision.kind === "refused") throw refusal(decision.code);
  if (decision.kind !== "redeem") throw new Error(`a first attempt cannot be ${decision.kind}`);
  const ticket = decision.consumed?.ticket ?? null;
  const ended =
    reservation === null ? [] : [{ ticket: reservation.ticket, state: ticket ? "Consumed" : "Expired" } as const];
  const pending = await readPending(tx, [row]);
  const { writes, advances } = appendEvents(await openSinks(tx), [row], pending);
  await write(tx, writes);
  const sealedHash = advances[0]?.after.sealedHash ?? GENESIS_HASH;
  const redeemCode = makeRedeemCode(ctx.randomBytes);
  const sequence = row.lastSequence + 1;
  const words = { externalRef, redeemCode, ticket, note: note ?? undefined };
  const seal = sealRedemption(ctx, caller, row, words, sealedHash);
  const written = {
    voucherId: row.id,
    organizationId: caller.organizationId,
    keyId: caller.keyId,
    attemptId,
    ticket,
    redeemCode,
    externalRef,
    redeemedAt: row.now,
    sequence,
    previousHash: seal.previousHash,
    recordHash: seal.recordHash,
    payload: seal.payload,
  };
  const [{ rowCount }] = await Promise.all([
    tx.query(writeRedemption(written)),
    write(tx, endReservations(ended, row.now)),
  ]);
  if (rowCount !== 1) throw new Error("a voucher to redeem was not Active");
  return { ...row, voucherId: row.id, attemptId, redeemCode, redeemedAt: row.now };
}

/**
 * Reserves a voucher in one transaction, without a lease.
 * @throws AppError like the service's reserve.
 */
export async function reserveInOneTransaction(
  ctx: OneTransactionContext,
  caller: Caller,
  codeOrTicket: string,
): Promise<ReserveResponse> {
  const read = (tx: Transaction) => lockAndRead(tx, caller, codeOrTicket, null);
  return transact(ctx, read, async (tx, row) => {
    if (row === null) throw voucherNotFound();
    const current = toReservation(row);
    if (isTicket(codeOrTicket) && liveReservation(current, row.now)?.ticket !== codeOrTicket)
      throw refusal("reservation_ended");
    const outcome = decideReservation(
      row,
      current,
      {
        namedTicket: null,
        ticket: newId("rsv"),
        keyId: caller.keyId,
        tokenSecretId: signingSecret(ctx.tokenSecrets).id,
        seconds: lifetimeSeconds(ctx.config),
      },
      row.now,
    );
    if (outcome.kind === "refused") throw refusal(outcome.code);
    if (outcome.kind === "opened") {
      if (current !== null) await write(tx, endReservations([{ ticket: current.ticket, state: "Expired" }], row.now));
      const reservation = { ...outcome.reservation, voucherId: row.id, organizationId: caller.organizationId };
      await write(tx, openReservations([reservation]));
    }
    return {
      ticket: outcome.reservation.ticket,
      token: reservationToken(ctx.tokenSecrets, outcome.reservation.ticket, outcome.reservation.tokenSecretId),
      expiresAt: outcome.reservation.expiresAt.toISOString(),
      voucher: row.id,
    };
  });
}

/**
 * Looks up a voucher by its code in one query.
 * @throws AppError `voucher_not_found`.
 */
export async function lookUpInOneQuery(
  ctx: OneTransactionContext,
  caller: Caller,
  code: string,
): Promise<LookUpResponse> {
  const { rows } = await ctx.pool.query<Voucher & ReservationColumns & { now: Date }>(
    lookUp({ organizationId: caller.organizationId, codeKey: normaliseCode(code) }),
  );
  const row = rows[0];
  if (row === undefined) throw voucherNotFound();
  const reservation = toReservation(row);
  const heldByCaller = reservation?.keyId === caller.keyId;
  return {
    voucher: viewVoucher(row, row.now),
    reservation: reservation && {
      ticket: heldByCaller ? reservation.ticket : null,
      startedAt: reservation.startedAt.toISOString(),
      expiresAt: reservation.expiresAt.toISOString(),
      heldByCaller,
    },
    verifyUrl: verifyUrl(ctx, row.id),
  };
}

/** Runs `read`, then `work`, in one transaction. `work` returns null if it redeems nothing. */
export type RunTransaction = <State>(
  ctx: OneTransactionContext,
  read: (tx: Transaction) => Promise<State>,
  work: (tx: Transaction, state: State) => Promise<RedeemResponse | null>,
) => Promise<RedeemResponse | null>;

/** Runs a transaction. @throws AppError `voucher_busy` after a lock timeout, like the service. */
export async function transact<State, T>(
  ctx: OneTransactionContext,
  read: (tx: Transaction) => Promise<State>,
  work: (tx: Transaction, state: State) => Promise<T>,
): Promise<T> {
  try {
    return await readThenWrite(ctx.pool, read, async (state, tx) => ({ result: await work(tx, state), writes: [] }));
  } catch (error) {
    throw isLockTimeout(error) ? voucherBusy() : error;
  }
}

async function lockAndRead(
  tx: Transaction,
  caller: Caller,
  codeOrTicket: string,
  externalRef: string | null,
): Promise<LockedRow | null> {
  const isByTicket = isTicket(codeOrTicket);
  const wanted = {
    organizationId: caller.organizationId,
    codeKey: isByTicket ? null : normaliseCode(codeOrTicket),
    ticket: isByTicket ? codeOrTicket : null,
  };
  const [, { rows }] = await Promise.all([
    tx.query(lockNamed(wanted)),
    tx.query<LockedRow>(readNamed({ ...wanted, externalRef })),
  ]);
  return rows[0] ?? null;
}

function toReservation(row: ReservationColumns): Reservation | null {
  return row.ticket === null ? null : { ...row, ticket: row.ticket };
}
