import { z } from "zod";

/** One step that `voucherctl sandbox check` asks of a partner's client: JSON on standard input and in the environment variable STEP. */
export interface ClientStep {
  /**
   * checkout: redeem the voucher for the order. reserve: reserve it until the customer has paid. pay: the customer has paid, redeem it.
   * cancel: the customer has left.
   */
  step: "checkout" | "reserve" | "pay" | "cancel";
  /** The address for every call of this step. */
  api: string;
  key: string;
  /** The shop's order number. A step with the same order and code is a repeat, for instance after a crash. */
  order: string;
  /** The code that the customer entered. */
  code: string;
  /** A `state` that the client returned earlier for this order, or null. */
  state: unknown;
}

/** The last line that the client prints on standard output, as JSON. */
export const clientResult = z.object({
  /**
   * redeemed, reserved, released: done. refused: the voucher cannot be used. unknown: no final response yet; the step is run again.
   * unsupported: the client has no such step.
   */
  outcome: z.enum(["redeemed", "reserved", "released", "refused", "unknown", "unsupported"]),
  /** For redeemed: the code for the customer. */
  redeemCode: z.string().optional(),
  /** Passed to the next step of the order. */
  state: z.unknown().optional(),
});
export type ClientResult = z.output<typeof clientResult>;
