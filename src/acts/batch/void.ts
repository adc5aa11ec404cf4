import { normaliseText } from "../../platform/text.ts";
import { act } from "../act.ts";
import { readBatchSize } from "../change-batch.ts";
import { voidBatch as voidAll } from "../void-batch.ts";
import { REASON } from "../voucher/void.ts";
import { formatCount, pluralize } from "../words.ts";

/** The name as browsers show it: several spaces in a row become one space. */
const asShown = (name: string) => normaliseText(name, "NFC")?.trim().replaceAll(/\s+/g, " ");

export const voidBatch = act({
  name: "batch void",
  on: "batch",
  role: "admin",
  scope: "issuer",
  title: "Void the batch",
  about: "All its active vouchers can never be used again. If you stop the run, another one continues it.",
  examples: ['bat_… --reason "printed twice"'],
  fields: { reason: REASON },
  confirm: {
    async loss(ctx, id) {
      const total = `${formatCount(await readBatchSize(ctx, id))} in total`;
      return `This permanently voids all active vouchers of batch ${id} (${total}).`;
    },
    typed: {
      name: "product",
      label: "The product's name (to confirm)",
      isNot: "is another one",
      matches: (typed, { productName }) => asShown(typed) === asShown(String(productName)),
    },
  },
  progress: { doing: "Voiding", of: "vouchers", done: "voided" },
  run: (ctx, id, { reason }, advance) => voidAll(ctx, id, reason, advance),
  said: ({ voided, alreadyFinal, damaged = 0 }, _values, id) =>
    `Batch ${id}: ${pluralize(voided, "voucher")} voided.${
      alreadyFinal === 0 ? "" : ` Redeemed, voided or expired before: ${formatCount(alreadyFinal)}.`
    }${damaged === 0 ? "" : ` Damaged, so not voided: ${formatCount(damaged)}.`}`,
  partly: ({ voided }) => `Voided so far: ${formatCount(voided)}. The same command voids the rest.`,
  isReport: true,
});
