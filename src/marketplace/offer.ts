import type { Audience, Window } from "../core/voucher/voucher.ts";
import { type AudienceRule, audienceRule, type Eligibility } from "./audience.ts";

/** The facts of a batch that decide which users may claim its vouchers, or which users may buy them. */
export interface Offer {
  batchId: string;
  audience: Audience;
  validUntil: Date;
  suspended: boolean;
  /** When users may claim, or buy, the batch's vouchers. Null if they never may. */
  window: Window | null;
}

export type OfferRefusal = "referrers_only" | "window_closed" | "voucher_suspended";

/** A batch that is open to a caller, and the rule that opens it. */
export interface OpenBatch {
  batchId: string;
  audience: Audience;
  rule: AudienceRule;
}

/** The batches that are open to a caller, in the order in which to try them, or the reason why there are none. */
type OfferDecision = { kind: "open"; batches: OpenBatch[] } | { kind: "refused"; code: OfferRefusal };

/** Whether `now` is from `opensAt` inclusive to `closesAt` exclusive, and the batch's vouchers are valid. */
export function isWindowOpen({ window, validUntil }: Offer, now: Date): boolean {
  if (window === null || validUntil <= now) return false;
  return (window.opensAt ?? now) <= now && (window.closesAt === null || window.closesAt > now);
}

/**
 * Decides which batches are open to a caller, in order of expiry, the earliest first. Refusals:
 * - `window_closed`: no window is open.
 * - `referrers_only`: windows are open, but not to this caller.
 * - `voucher_suspended`: all batches that are open to the caller are suspended.
 * @param byLink whether the caller uses a referral link, which opens batches of every audience.
 */
export function decideOffers(
  offers: readonly Offer[],
  eligibility: Eligibility,
  now: Date,
  byLink: boolean = false,
): OfferDecision {
  const open = offers.filter((offer) => isWindowOpen(offer, now));
  if (open.length === 0) return { kind: "refused", code: "window_closed" };
  const eligible = open
    .toSorted((a, b) => a.validUntil.getTime() - b.validUntil.getTime() || (a.batchId < b.batchId ? -1 : 1))
    .flatMap(({ batchId, audience, suspended }) => {
      const rule = byLink ? "referral_link" : audienceRule(audience, eligibility, now);
      return rule === null ? [] : [{ suspended, batch: { batchId, audience, rule } }];
    });
  if (eligible.length === 0) return { kind: "refused", code: "referrers_only" };
  const batches = eligible.flatMap(({ suspended, batch }) => (suspended ? [] : [batch]));
  return batches.length === 0 ? { kind: "refused", code: "voucher_suspended" } : { kind: "open", batches };
}

/** Whether the audience, the window and the number of available vouchers all allow a purchase. */
export function canBuy(offer: Offer, available: number, eligibility: Eligibility, now: Date): boolean {
  return available > 0 && decideOffers([offer], eligibility, now).kind === "open";
}
