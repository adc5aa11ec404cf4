import { z } from "zod";
import { voucherId } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { text } from "../fields.ts";
import { resumeById, suspendById } from "../suspend-voucher.ts";
import { REASON } from "./void.ts";

/** Why vouchers are suspended. */
export const SUSPENSION_REASON = text("Reason", 200, { hint: "Kept in the sealed history." });

/** The part of the results of `voucher suspend` and `voucher resume` that programs receive. */
export const SUSPENDED = z.object({
  id: voucherId,
  suspended: z.boolean().meta({ description: "Whether the voucher is suspended now.", examples: [true] }),
});

export const suspendVoucher = act({
  name: "voucher suspend",
  on: "voucher",
  role: "operator",
  scope: "issuer",
  title: "Suspend the voucher",
  about: "It cannot be used until it is resumed. Its time runs on, and a reservation goes on.",
  examples: ['7Q4K-9MZX-2HTB-W8RC --org org_… --reason "the letter was stolen"'],
  fields: { reason: SUSPENSION_REASON },
  result: SUSPENDED,
  async run(ctx, id, { reason }) {
    await suspendById(ctx, id, reason);
    return { id, suspended: true };
  },
  said: ({ id }) => `Voucher ${id} is suspended.`,
});

export const resumeVoucher = act({
  name: "voucher resume",
  on: "voucher",
  role: "operator",
  scope: "issuer",
  title: "Resume the voucher",
  about: "It is again what it would be without its suspension. While its batch is suspended, it cannot be resumed.",
  examples: ['7Q4K-9MZX-2HTB-W8RC --org org_… --reason "the letter was found"'],
  fields: { reason: REASON },
  result: SUSPENDED,
  async run(ctx, id, { reason }) {
    await resumeById(ctx, id, reason);
    return { id, suspended: false };
  },
  said: ({ id }) => `Voucher ${id} is not suspended.`,
});
