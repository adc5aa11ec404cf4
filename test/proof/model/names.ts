import fc from "fast-check";
import { variable } from "./bindings.ts";
import {
  isActive,
  type KeyName,
  type Model,
  type Named,
  reservationOf,
  VOUCHER_NAMES,
  VOUCHERS,
  type VoucherName,
} from "./model.ts";
import type { Word } from "./step.ts";

/**
 * How a generated call names its voucher. Which ticket is meant depends on the history so far. Most calls skip
 * redeemed, voided and expired vouchers, which always have the same outcome.
 */
export type NameChoice =
  | { by: "code"; voucher: VoucherName; typed: boolean; evenIfFinal: boolean }
  /** The ticket of the voucher's newest reservation, or of an earlier one. */
  | { by: "ticket"; voucher: VoucherName; before: number; evenIfFinal: boolean }
  | { by: "nothing"; like: "code" | "ticket" };

/** A voucher's name for the model, in the request, and in the step's title. */
export interface Name {
  named: Named;
  word: Word;
  title: string;
}

/** Never issued. */
const UNKNOWN = { code: "0000-0000-0000-0000", ticket: "rsv_01jzbq0000e00a4g0g00000000" };

/** Resolves a choice. Null if the step must be skipped, or if the voucher has too few reservations. */
export function resolveName(model: Model, choice: NameChoice): Name | null {
  if (choice.by !== "nothing" && !choice.evenIfFinal && !isActive(model, choice.voucher)) return null;
  switch (choice.by) {
    case "code": {
      const { code } = VOUCHERS[choice.voucher];
      return {
        named: { by: "code", voucher: choice.voucher },
        word: variable(choice.typed ? `TYPED_${code}` : code),
        title: `${choice.voucher} by its code${choice.typed ? ", typed" : ""}`,
      };
    }
    case "ticket": {
      const reservation = reservationOf(model, choice.voucher, choice.before);
      if (reservation === null) return null;
      return {
        named: { by: "ticket", reservation },
        word: variable(`TICKET_${reservation}`),
        title: `the ticket of ${reservation}`,
      };
    }
    case "nothing":
      return { named: { by: "nothing" }, word: UNKNOWN[choice.like], title: `an unknown ${choice.like}` };
  }
}

/** Most calls concern voucher A, so that they affect each other. */
export const someVoucher: fc.Arbitrary<VoucherName> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<VoucherName>("A") },
  { weight: 3, arbitrary: fc.constantFrom(...VOUCHER_NAMES) },
);

/** Usually a key that may read and redeem. */
export const someKey: fc.Arbitrary<KeyName> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom<KeyName>("SHOP", "TILL") },
  { weight: 5, arbitrary: fc.constant<KeyName>("CAPPED") },
  { weight: 2, arbitrary: fc.constant<KeyName>("OTHER") },
  { weight: 1, arbitrary: fc.constant<KeyName>("AUDIT") },
);

/** How many reservations are newer. */
export const someAge: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2) },
);

/** True in one of six cases. fast-check shrinks it to true. */
export const seldom: fc.Arbitrary<boolean> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(true) },
  { weight: 5, arbitrary: fc.constant(false) },
);
const byCode = fc.record({
  by: fc.constant("code" as const),
  voucher: someVoucher,
  typed: fc.boolean(),
  evenIfFinal: seldom,
});
const byTicket = fc.record({
  by: fc.constant("ticket" as const),
  voucher: someVoucher,
  before: someAge,
  evenIfFinal: seldom,
});
const byNothing = fc.record({ by: fc.constant("nothing" as const), like: fc.constantFrom("code", "ticket") });

/** A code, or a ticket. */
export const someName: fc.Arbitrary<NameChoice> = fc.oneof(
  { weight: 9, arbitrary: byCode },
  { weight: 11, arbitrary: byTicket },
  { weight: 1, arbitrary: byNothing },
);

/** Usually a ticket, sometimes a code. */
export const someTicket: fc.Arbitrary<NameChoice> = fc.oneof(
  { weight: 14, arbitrary: byTicket },
  { weight: 1, arbitrary: byCode },
  { weight: 1, arbitrary: byNothing },
);
