import { AppError, type ERRORS_OF } from "../../platform/api/errors.ts";
import { BatcherFull } from "../../platform/batching/batcher.ts";

/** What the service must make certain before it sends a refusal. */
type Proof =
  /** Nothing: the refusal states no fact, or only facts that may change at any time. */
  | "none"
  /** The synchronous standbys have the data that was read. */
  | "confirmed"
  /** Like `confirmed`. In addition, no attempt up to now has redeemed or will redeem under the request's reference. */
  | "ended";

type Refusals<Operation extends keyof typeof ERRORS_OF> = Record<(typeof ERRORS_OF)[Operation][number], Proof>;

/**
 * The proof that each refusal needs, for the operations that change what a voucher is worth to a caller. The compiler
 * rejects an error of `ERRORS_OF` without a proof. After a refusal about the voucher or the reference, a caller of
 * redeem may give the money back, so the refusal needs the proof `ended`, which is a write. Other refusals, such as
 * those of a caller above its limits, need no write: they only mean that this attempt did nothing.
 */
const PROOFS = {
  redeemVoucher: {
    voucher_not_found: "ended",
    too_many_misses: "none",
    voucher_used: "ended",
    voucher_voided: "ended",
    voucher_expired: "ended",
    voucher_suspended: "ended",
    reservation_ended: "ended",
    token_mismatch: "ended",
    voucher_reserved: "ended",
    cap_reached: "ended",
    voucher_busy: "ended",
    overloaded: "none",
    redeem_timeout: "ended",
    redeem_unknown: "none",
    unavailable: "none",
  } satisfies Refusals<"redeemVoucher">,
  reserveVoucher: {
    voucher_not_found: "none",
    too_many_misses: "none",
    voucher_used: "confirmed",
    voucher_voided: "confirmed",
    voucher_expired: "none",
    voucher_suspended: "none",
    reservation_ended: "confirmed",
    voucher_reserved: "none",
    voucher_busy: "none",
    overloaded: "none",
    unavailable: "none",
  } satisfies Refusals<"reserveVoucher">,
};

/** The proof that a refusal of the operation needs. @throws Error for a refusal that the operation does not declare. */
export function proofOf(operation: keyof typeof PROOFS, refused: AppError): Proof {
  const proof = (PROOFS[operation] as Partial<Record<string, Proof>>)[refused.code];
  if (proof === undefined) throw new Error(`${operation} does not declare ${refused.code}`, { cause: refused });
  return proof;
}

/**
 * Converts an error of a use case to the refusal that it stands for, which then needs the same proof as any other
 * refusal.
 * @throws the error itself if it stands for no refusal.
 */
export function toRefusal(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof BatcherFull) return new AppError("overloaded", undefined, { cause: error });
  throw error;
}

/** The codes that leave the outcome of a call open. Every other error means that the attempt has changed nothing. */
const OPEN_OUTCOMES: ReadonlySet<string> = new Set(["unavailable", "redeem_unknown", "internal_error"]);

/**
 * Answers a call whose change was committed, by this attempt or an earlier one. No answer may now claim that nothing
 * was changed. So an error that would claim this becomes `unavailable`, and the caller gets the result by repeating the
 * call.
 */
export function answerAfterCommit<T>(work: () => Promise<T>): Promise<T> {
  return work().catch((error: unknown) => {
    const isOpen = error instanceof AppError ? OPEN_OUTCOMES.has(error.code) : !(error instanceof BatcherFull);
    throw isOpen ? error : new AppError("unavailable", undefined, { cause: error });
  });
}
