import type { RefusalCode } from "./errors.ts";
import { finalRefusal, type VoucherState } from "./voucher.ts";

/** How long a hold lasts by contract, in seconds (contract, "Limits"). */
export const RESERVATION_SECONDS = 900;

/** A reservation's row in state Live. It is a live hold only while `expiresAt` is ahead of the database's clock. */
export interface Hold {
  ticket: string;
  keyId: string;
  startedAt: Date;
  expiresAt: Date;
  tokenSecretId: string;
}

/** The hold that counts at `now`, or null. */
export function liveHold(hold: Hold | null, now: Date): Hold | null {
  return hold !== null && hold.expiresAt > now ? hold : null;
}

export type HoldOutcome =
  | { kind: "opened"; hold: Hold }
  | { kind: "repeated"; hold: Hold }
  | { kind: "refused"; code: RefusalCode };

export interface HoldRequest {
  /** The ticket that the hold gets if it is opened. */
  ticket: string;
  keyId: string;
  tokenSecretId: string;
  seconds: number;
}

/**
 * Decides one reserve call: a repeat by the holder answers its own hold unchanged, anyone else is turned away while it lives.
 * Reads nothing but its arguments; `now` is the database's clock after the voucher's row is locked.
 */
export function decideHold(voucher: VoucherState, hold: Hold | null, request: HoldRequest, now: Date): HoldOutcome {
  const final = finalRefusal(voucher, now);
  if (final !== null) return { kind: "refused", code: final };
  const live = liveHold(hold, now);
  if (live !== null) {
    return live.keyId === request.keyId
      ? { kind: "repeated", hold: live }
      : { kind: "refused", code: "voucher_reserved" };
  }
  return {
    kind: "opened",
    hold: {
      ticket: request.ticket,
      keyId: request.keyId,
      startedAt: now,
      expiresAt: new Date(now.getTime() + request.seconds * 1000),
      tokenSecretId: request.tokenSecretId,
    },
  };
}
