import { type AudienceRule, audienceRule, type Standing } from "./audience.ts";
import type { Audience } from "./voucher.ts";

/** The way in which a window gives vouchers away. */
export type WindowKind = "claim" | "buy";

/** When a batch's window of one kind is open. A null moment is no bound. */
export interface Window {
  opensAt: Date | null;
  closesAt: Date | null;
}

/** A batch as far as it decides who may take from it through one kind of window. */
export interface Offer {
  batchId: string;
  audience: Audience;
  validUntil: Date;
  /** Null: the batch has no window of this kind. */
  window: Window | null;
}

export type SupplyRefusal = "referrers_only" | "window_closed";

/** Batches that a caller may take from, in the order in which they are tried, each with the rule that opens it. */
export type SupplyDecision =
  | { kind: "open"; batches: { batchId: string; audience: Audience; rule: AudienceRule }[] }
  | { kind: "refused"; code: SupplyRefusal };

/** Whether a batch's window is open: from `opensAt` up to, and not at, `closesAt`, and while its vouchers are valid. */
export function isWindowOpen({ window, validUntil }: Offer, now: Date): boolean {
  if (window === null || validUntil <= now) return false;
  return (window.opensAt === null || window.opensAt <= now) && (window.closesAt === null || window.closesAt > now);
}

/**
 * Decides which of several batches a caller may take from, those that expire first being tried first. Refused for audience only
 * when a window is open and none of the open ones is open to the caller. With `link`, the caller comes by a referrer's own link,
 * which opens both audiences.
 */
export function decideSupply(
  offers: readonly Offer[],
  standing: Standing,
  now: Date,
  byLink: boolean = false,
): SupplyDecision {
  const open = offers.filter((offer) => isWindowOpen(offer, now));
  if (open.length === 0) return { kind: "refused", code: "window_closed" };
  const batches = open
    .toSorted((a, b) => a.validUntil.getTime() - b.validUntil.getTime() || (a.batchId < b.batchId ? -1 : 1))
    .flatMap(({ batchId, audience }) => {
      const rule = byLink ? "referral_link" : audienceRule(audience, standing, now);
      return rule === null ? [] : [{ batchId, audience, rule }];
    });
  return batches.length === 0 ? { kind: "refused", code: "referrers_only" } : { kind: "open", batches };
}

/** Whether a buy would be refused for neither audience nor window nor supply (contract, "Listing"). */
export function canBuy(offer: Offer, available: number, standing: Standing, now: Date): boolean {
  return available > 0 && decideSupply([offer], standing, now).kind === "open";
}
