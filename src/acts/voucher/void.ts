import { z } from "zod";
import { normaliseCode } from "../../core/voucher/codes.ts";
import { text as shown } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { optional, text } from "../fields.ts";
import { voidById } from "../void-voucher.ts";
import type { AuditContext } from "../with-audit-entry.ts";

/** Why a voucher is voided. */
export const REASON = optional(text("Reason", 200, { hint: "Kept in the sealed history." }));

export const voidVoucher = act({
  name: "voucher void",
  on: "voucher",
  role: "operator",
  scope: "issuer",
  title: "Void the voucher",
  about: "It can never be used again, and its reservation ends.",
  examples: ['7Q4K-9MZX-2HTB-W8RC --org org_… --reason "printed twice"'],
  fields: { reason: REASON },
  confirm: {
    loss: (_ctx, id) => `This permanently voids the voucher ${id}.`,
    typed: {
      name: "code",
      label: "The voucher's code (to confirm)",
      isNot: "is another one",
      matches: (typed, { code }) => normaliseCode(typed) === normaliseCode(String(code)),
    },
  },
  result: z.object({ id: shown("The voucher's id."), status: z.literal("Voided") }),
  async run(ctx: AuditContext, id, { reason }) {
    await voidById(ctx, id, reason);
    return { id, status: "Voided" as const };
  },
  said: ({ id }) => `Voucher ${id} is voided.`,
});
