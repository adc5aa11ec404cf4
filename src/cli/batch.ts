import { type Codes, issueBatch } from "../acts/batch/issue.ts";
import { readBatchSize } from "../acts/change-batch.ts";
import { LISTS } from "../acts/db/lists.ts";
import { exportBatch } from "../acts/export-batch.ts";
import { readBatch } from "../acts/read-batch.ts";
import type { BatchSummary } from "../core/catalog/db/catalog.ts";
import type { Window } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { isDatabaseAway } from "../platform/db/transaction.ts";
import { type CommandFace, verbOf } from "./act-verb.ts";
import { openCodesFile } from "./codes-file.ts";
import { type CommandContext, type Noun, verb } from "./command.ts";
import { formatCount, formatFields, formatUsd, formatUtc, formatUtcWithZone, paint, pluralize } from "./format.ts";
import { listVerb } from "./list.ts";
import { option, required, YES } from "./options.ts";
import { describePrintedCodes, openPrintedCodes } from "./printed-codes.ts";

const OUT_HELP = "write a CSV file with id, code and serial; an existing file is kept under a new name";
/** How `batch issue` reads printed codes from one file, and writes the codes of the new batch to another. */
const ISSUE: CommandFace<{ id: string }, Codes> = {
  options: {
    codes: option("<file>", "use printed codes instead of new ones: a text with one per line, without a heading"),
    out: option("<file.csv>", OUT_HELP),
    yes: YES,
  },
  async around(ctx, { codes: file, out: outFile, count, yes, claim, buy }, perform) {
    const size = Number(count);
    const codes = file === undefined ? null : await openPrintedCodes(String(file));
    if (codes !== null) await confirmCodes(ctx, yes === true, await describePrintedCodes(codes, size));
    const out = outFile === undefined ? null : await openCodesFile(String(outFile), size, "new");
    const result = await perform({ codes, onChunk: (vouchers) => out?.write(vouchers) }).catch(async (error) => {
      // The connection may have failed after the commit. Then a complete file may be the only copy of the codes, so it
      // is kept.
      if (out?.isComplete() && isDatabaseAway(error)) await out.leave();
      else await out?.discard();
      throw error;
    });
    // If the codes are in no file, and users can neither claim nor buy, only `batch export` shows the codes.
    const unreachable = !out && !codes && !claim && !buy;
    const warning =
      "Warning: these codes were not saved, and users cannot claim or buy the vouchers. Get them with: " +
      `voucherctl batch export ${result.id} --out FILE`;
    return { result, notes: [await out?.keep(), unreachable && warning] };
  },
};

export const batch: Noun = {
  name: "batch",
  description: "batches of vouchers",
  verbs: {
    ...verbOf(issueBatch, ISSUE),
    "show <id>": verb({
      description: "show a batch and count its vouchers by status",
      examples: ["bat_…"],
      async run(ctx, _options, id) {
        const found = await readBatch(ctx, id);
        ctx.print(found, () => describeBatch(found));
      },
    }),
    "export <id>": verb({
      description: "write the codes of a batch to a file again; recorded in the audit log",
      options: { out: required("<file.csv>", OUT_HELP.replace("write a", "the")) },
      examples: ["bat_… --out codes.csv"],
      run: exportCodes,
    }),
    list: listVerb(LISTS.batches, {
      cursor: /^bat_/,
      headings: ["ID", "VOUCHERS", "VALID UNTIL (UTC)", "PRODUCT"],
      toRow: ({ id, count, validUntil, audience, windows, productName, productId }) => ({
        cells: [id, formatCount(count), formatUtc(validUntil), productName],
        note: `${productId}, ${audience}, ${windows.length === 0 ? "no window" : `window: ${windows.join(" and ")}`}`,
      }),
      examples: ["--product prd_…", "--org org_… --limit 20 --json"],
    }),
  },
};

/** Shows what the file of codes contains, and asks whether to issue them. */
async function confirmCodes(ctx: CommandContext, yes: boolean, codes: string): Promise<void> {
  const answer = yes ? null : await ctx.confirm(`${codes}\nIssue them?`);
  if (answer === false) throw new AppError("invalid_request", "Nothing was issued.");
  if (answer === null) ctx.note(codes);
}

async function exportCodes(ctx: CommandContext, { out: file }: { out: string }, id: string): Promise<void> {
  const size = await readBatchSize(ctx, id);
  const out = await openCodesFile(file, size, "issued");
  const progress = ctx.progress("Exporting", "vouchers", size);
  let written = 0;
  const count = await exportBatch(ctx, id, async (vouchers) => {
    ctx.signal.throwIfAborted();
    await out.write(vouchers);
    written += vouchers.length;
    progress.advance(written);
  }).catch(async (error) => {
    await out.discard();
    throw error;
  });
  progress.end();
  const kept = await out.keep();
  ctx.print({ id, count }, () => `Batch ${id}: ${pluralize(count, "voucher")}.\n${kept}`);
}

function describeBatch(batch: BatchSummary): string {
  const { active, suspended, expired, redeemed, voided, count } = batch;
  const byStatus = Object.entries({ active, suspended, expired, redeemed, voided }).map(
    ([name, n]) => `${formatCount(n)} ${name}`,
  );
  return formatFields(`Batch ${paint("bold", batch.id)}`, {
    Sandbox: batch.sandbox ? "for tests, has no value" : null,
    Product: `${batch.productName} (${batch.productId})`,
    Price: `${formatUsd(batch.priceUsd)}, list price ${formatUsd(batch.retailPriceUsd)}`,
    Duration: batch.benefitMonths === 0 ? null : pluralize(batch.benefitMonths, "month"),
    "Usage unit": batch.usageUnitLabel,
    Audience: batch.audience === "OpenToAll" ? "open to all" : "referrers only",
    Issued: formatUtcWithZone(batch.createdAt),
    "Valid until": formatUtcWithZone(batch.validUntil),
    "Suspended since": batch.suspendedAt && `${formatUtcWithZone(batch.suspendedAt)}: ${batch.suspensionReason}`,
    Vouchers: `${formatCount(count)}: ${byStatus.join(", ")}`,
    "Claim window": describeWindow(batch.windows.claim, batch.validUntil),
    "Buy window": describeWindow(batch.windows.buy, batch.validUntil),
    Available: batch.left === null ? null : pluralize(batch.left, "voucher"),
  });
}

/**
 * Describes when claims or purchases begin and end. They end at `closesAt` or when the vouchers expire, whichever is
 * earlier. Null without a window.
 */
function describeWindow(window: Window | null, validUntil: Date): string | null {
  if (window === null) return null;
  const now = new Date();
  const { opensAt } = window;
  const closesAt = window.closesAt !== null && window.closesAt < validUntil ? window.closesAt : validUntil;
  if (closesAt <= now) return `closed since ${formatUtcWithZone(closesAt)}`;
  if (opensAt !== null && opensAt > now)
    return `opens at ${formatUtcWithZone(opensAt)}, closes at ${formatUtcWithZone(closesAt)}`;
  return `open until ${formatUtcWithZone(closesAt)}`;
}
