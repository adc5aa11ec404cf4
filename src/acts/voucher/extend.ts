import { z } from "zod";
import { findVoucherFace } from "../../core/catalog/db/brand-faces.ts";
import { EXAMPLE } from "../../platform/api/example.ts";
import { timestamp, voucherId } from "../../platform/api/fields.ts";
import { act } from "../act.ts";
import { extendById } from "../extend-voucher.ts";
import { time } from "../fields.ts";
import { formatUtcWithZone } from "../words.ts";
import { REASON } from "./void.ts";

/** A later end, and why. */
export const EXTENSION = { validUntil: time("Valid until", "end", { future: true }), reason: REASON };

/** The present end of a voucher or batch, as a person types it. */
export const presentEnd = (end: Date | null | undefined) => ({
  validUntil: end?.toISOString().replace("T23:59:59.999Z", "") ?? "",
});

/** The part of the result that programs receive. */
export const EXTENDED = z.object({
  id: voucherId,
  validUntil: timestamp("The voucher's end.", EXAMPLE.validUntil),
  extended: z.literal(true).meta({ description: "The voucher has this end.", examples: [true] }),
});

export const extendVoucher = act({
  name: "voucher extend",
  on: "voucher",
  role: "operator",
  scope: "issuer",
  title: "Extend the voucher",
  about: "It gets a later end. An expired one is active again, and a reservation goes on.",
  examples: ['7Q4K-9MZX-2HTB-W8RC --org org_… --valid-until 2028-12-31 --reason "she was ill"'],
  fields: EXTENSION,
  present: async (db, id) => presentEnd((await findVoucherFace(db, id))?.validUntil),
  refused: "validUntil",
  result: EXTENDED,
  async run(ctx, id, { validUntil, reason }) {
    await extendById(ctx, id, validUntil, reason);
    return { id, validUntil: validUntil.toISOString(), extended: true as const };
  },
  said: ({ id, validUntil }) => `Voucher ${id} is valid until ${formatUtcWithZone(new Date(validUntil))}.`,
});
