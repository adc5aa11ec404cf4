import { findLineage } from "../../core/catalog/db/catalog.ts";
import { act } from "../act.ts";
import { extendBatch as extendAll } from "../extend-batch.ts";
import { EXTENSION, presentEnd } from "../voucher/extend.ts";
import { formatCount, pluralize } from "../words.ts";

export const extendBatch = act({
  name: "batch extend",
  on: "batch",
  role: "admin",
  scope: "issuer",
  title: "Extend the batch",
  about:
    "Its active and expired vouchers get a later end, and its windows with the last of them. If you " +
    "stop the run, another one continues it.",
  examples: ['bat_… --valid-until 2028-12-31 --reason "shop closed for repairs"'],
  fields: EXTENSION,
  present: async (db, id) => presentEnd((await findLineage(db, id))?.validUntil),
  refused: "validUntil",
  progress: { doing: "Extending", of: "vouchers", done: "extended" },
  run: (ctx, id, { validUntil, reason }, advance) => extendAll(ctx, id, validUntil, reason, advance),
  said: ({ extended, alreadyFinal, damaged = 0 }, _values, id) =>
    `Batch ${id}: ${pluralize(extended, "voucher")} extended.${
      alreadyFinal === 0 ? "" : ` Redeemed, voided or extended as far before: ${formatCount(alreadyFinal)}.`
    }${damaged === 0 ? "" : ` Damaged, so not extended: ${formatCount(damaged)}.`}`,
  partly: ({ extended }) => `Extended so far: ${formatCount(extended)}. The same command extends the rest.`,
  isReport: true,
});
