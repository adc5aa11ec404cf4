import fc from "fast-check";
import {
  canMove,
  holdOf,
  type KeyName,
  type Model,
  type Named,
  VOUCHER_NAMES,
  VOUCHERS,
  type VoucherName,
} from "./model.ts";
import type { Word } from "./request.ts";
import { variable } from "./template.ts";

/**
 * How a generated call names its voucher; which ticket that is depends on what happened before. Most calls leave out vouchers
 * that cannot move any more, because they all come to the same.
 */
export type NameChoice =
  | { by: "code"; voucher: VoucherName; typed: boolean; evenIfOver: boolean }
  /** The ticket of the voucher's newest hold, or of one before it. */
  | { by: "ticket"; voucher: VoucherName; before: number; evenIfOver: boolean }
  | { by: "nothing"; like: "code" | "ticket" };

/** A name for the model, for the request, and for people. */
export interface Name {
  named: Named;
  word: Word;
  title: string;
}

/** Never given to anybody. */
const UNKNOWN = { code: "0000-0000-0000-0000", ticket: "rsv_01jzbq0000e00a4g0g00000000" };

/** What a choice stands for now, or null when the voucher has not had so many holds or is left out. */
export function resolveName(model: Model, choice: NameChoice): Name | null {
  if (choice.by !== "nothing" && !choice.evenIfOver && !canMove(model, choice.voucher)) return null;
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
      const hold = holdOf(model, choice.voucher, choice.before);
      if (hold === null) return null;
      return { named: { by: "ticket", hold }, word: variable(`TICKET_${hold}`), title: `the ticket of ${hold}` };
    }
    case "nothing":
      return { named: { by: "nothing" }, word: UNKNOWN[choice.like], title: `a ${choice.like} that nobody ever got` };
  }
}

/** Most calls are about one voucher, so that they meet. */
export const someVoucher: fc.Arbitrary<VoucherName> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<VoucherName>("A") },
  { weight: 3, arbitrary: fc.constantFrom(...VOUCHER_NAMES) },
);

/** A key that may do everything, nearly always. */
export const someKey: fc.Arbitrary<KeyName> = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom<KeyName>("SHOP", "TILL") },
  { weight: 2, arbitrary: fc.constant<KeyName>("OTHER") },
  { weight: 1, arbitrary: fc.constant<KeyName>("AUDIT") },
);

/** How many holds before the newest. */
export const somewhatBefore: fc.Arbitrary<number> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(0) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2) },
);

/** True now and then, and in the end of shrinking. */
export const seldom: fc.Arbitrary<boolean> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(true) },
  { weight: 5, arbitrary: fc.constant(false) },
);
const byCode = fc.record({
  by: fc.constant("code" as const),
  voucher: someVoucher,
  typed: fc.boolean(),
  evenIfOver: seldom,
});
const byTicket = fc.record({
  by: fc.constant("ticket" as const),
  voucher: someVoucher,
  before: somewhatBefore,
  evenIfOver: seldom,
});
const byNothing = fc.record({ by: fc.constant("nothing" as const), like: fc.constantFrom("code", "ticket") });

/** A code, or a ticket. */
export const someName: fc.Arbitrary<NameChoice> = fc.oneof(
  { weight: 9, arbitrary: byCode },
  { weight: 11, arbitrary: byTicket },
  { weight: 1, arbitrary: byNothing },
);

/** A ticket mostly, or a code. */
export const someTicket: fc.Arbitrary<NameChoice> = fc.oneof(
  { weight: 14, arbitrary: byTicket },
  { weight: 1, arbitrary: byCode },
  { weight: 1, arbitrary: byNothing },
);
