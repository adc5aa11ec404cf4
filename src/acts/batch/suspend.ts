import { act } from "../act.ts";
import { resumeBatch as resumeAll, suspendBatch as suspendAll } from "../suspend-batch.ts";
import { SUSPENSION_REASON } from "../voucher/suspend.ts";
import { REASON } from "../voucher/void.ts";
import { formatCount, pluralize } from "../words.ts";

export const suspendBatch = act({
  name: "batch suspend",
  on: "batch",
  role: "operator",
  scope: "issuer",
  title: "Suspend the batch",
  about:
    "None of its vouchers can be used until the batch is resumed. This holds at once; their histories follow. If you " +
    "stop the run, the service continues it.",
  examples: ['bat_… --reason "the parcel was stolen"'],
  fields: { reason: SUSPENSION_REASON },
  progress: { doing: "Suspending", of: "vouchers", done: "suspended" },
  run: (ctx, id, { reason }, advance) => suspendAll(ctx, id, reason, advance),
  said: ({ suspended, alreadyFinal, damaged = 0 }, _values, id) =>
    `Batch ${id} is suspended: ${pluralize(suspended, "voucher")}.${
      alreadyFinal === 0 ? "" : ` Redeemed, voided or suspended before: ${formatCount(alreadyFinal)}.`
    }${damaged === 0 ? "" : ` Suspended, but damaged: ${formatCount(damaged)}.`}`,
  partly: ({ suspended }) =>
    `The batch is suspended. Histories that say so: ${formatCount(suspended)}; the service adds the rest.`,
  isReport: true,
});

export const resumeBatch = act({
  name: "batch resume",
  on: "batch",
  role: "operator",
  scope: "issuer",
  title: "Resume the batch",
  about:
    "Its vouchers are again what they would be without its suspension, except those that were suspended " +
    "individually. If you stop the run, another one continues it.",
  examples: ['bat_… --reason "the parcel was found"'],
  fields: { reason: REASON },
  progress: { doing: "Resuming", of: "vouchers", done: "resumed" },
  run: (ctx, id, { reason }, advance) => resumeAll(ctx, id, reason, advance),
  said: ({ resumed, alreadyFinal, damaged = 0 }, _values, id) =>
    `Batch ${id} is resumed: ${pluralize(resumed, "voucher")}.${
      alreadyFinal === 0
        ? ""
        : ` Redeemed, voided, suspended individually or not suspended: ${formatCount(alreadyFinal)}.`
    }${damaged === 0 ? "" : ` Damaged, so not resumed: ${formatCount(damaged)}.`}`,
  partly: ({ resumed }) => `Resumed so far: ${formatCount(resumed)}. The same command resumes the rest.`,
  isReport: true,
});
