import { PastTime } from "../acts/assert-future.ts";
import { exportBatch } from "../acts/export-batch.ts";
import { COUNT_MAX, type IssueInput, issueBatch } from "../acts/issue-batch.ts";
import { readBatch } from "../acts/read-batch.ts";
import { type BatchVoidResult, readBatchSize, voidBatch } from "../acts/void-batch.ts";
import type { BatchSummary } from "../core/catalog/db/catalog.ts";
import type { Window } from "../core/catalog/offer.ts";
import { AUDIENCES, type Audience } from "../core/voucher/voucher.ts";
import { AppError } from "../platform/api/errors.ts";
import { isDatabaseUnavailable } from "../platform/db/transaction.ts";
import { openCodesFile } from "./codes-file.ts";
import { type CommandContext, confirmLoss, type Noun, verb } from "./command.ts";
import { Interrupted, UsageError } from "./exit-code.ts";
import { formatCount, formatFields, formatUsd, formatUtc, formatUtcWithZone, paint, pluralize } from "./format.ts";
import { listVerb } from "./list.ts";
import { flag, integer, name, option, required, time, type Values, YES } from "./options.ts";
import { describePrintedCodes, openPrintedCodes } from "./printed-codes.ts";

const OUT_HELP = "write a CSV file with id, code and serial; an existing file is kept under a new name";
const VALID_UNTIL_HELP =
  "last day, such as 2027-12-31, which counts to its end in UTC; or a time: 2027-12-31T18:00:00Z";

const ISSUE_OPTIONS = {
  product: required("<id>", "the product"),
  count: required("<n>", "number of vouchers", integer(1, COUNT_MAX)),
  validUntil: required("<time>", VALID_UNTIL_HELP, time("end")),
  audience: option<Audience>(
    "<audience>",
    "who may claim or buy the vouchers; cannot be changed later",
    AUDIENCES,
    "OpenToAll",
  ),
  claim: flag("let users claim the vouchers, through a window"),
  buy: flag("let users buy the vouchers, through a window"),
  opensAt: option("<time>", "when the windows open (default: immediately)", time("start")),
  closesAt: option(
    "<time>",
    "when the windows close, or their last day (default: when the vouchers expire)",
    time("end"),
  ),
  codes: option("<file>", "use printed codes instead of new ones: a text with one per line, without a heading"),
  out: option("<file.csv>", OUT_HELP),
  force: flag("issue them even if --valid-until or --closes-at is in the past"),
  yes: YES,
};
type IssueOptions = Values<typeof ISSUE_OPTIONS>;

export const batch: Noun = {
  name: "batch",
  description: "batches of vouchers",
  verbs: {
    issue: verb({
      description: "issue vouchers for a product; if it fails, none are issued",
      options: ISSUE_OPTIONS,
      examples: [
        "--product prd_… --count 100000 --valid-until 2027-12-31 --out codes.csv",
        "--product prd_… --count 500 --valid-until 2027-12-31 --codes printed.txt",
        "--product prd_… --count 500 --valid-until 2027-12-31 --buy --audience ReferrerOnly",
      ],
      run: issue,
    }),
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
    "void <id>": verb({
      description: "void all active vouchers of a batch; a second run continues an interrupted one",
      options: { yes: YES, reason: option("<reason>", "why; kept in the vouchers' sealed histories", name) },
      examples: ['bat_… --reason "printed twice"'],
      run: voidAll,
    }),
    list: listVerb("batches", {
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

async function issue(ctx: CommandContext, options: IssueOptions): Promise<void> {
  const { product: productId, count, validUntil, audience } = options;
  const windows = windowsOf(options);
  const codes = options.codes === undefined ? null : await openPrintedCodes(options.codes);
  if (codes !== null) await confirmCodes(ctx, options.yes, await describePrintedCodes(codes, count));
  const out = options.out === undefined ? null : await openCodesFile(options.out, count, "new");
  const progress = ctx.progress("Issuing", "vouchers", count);
  const terms = { productId, count, validUntil, audience, windows, codes, mayBePast: options.force === true };
  const result = await issueBatch(ctx, terms, async (vouchers) => {
    ctx.signal.throwIfAborted();
    progress.advance(vouchers.at(-1)?.serial ?? 0);
    await out?.write(vouchers);
  }).catch(async (error) => {
    // The connection may have failed after the commit, so keep the complete file.
    if (out?.isComplete() && isDatabaseUnavailable(error)) {
      progress.end();
      await out.leave();
    } else await out?.discard();
    if (error instanceof Interrupted) error.message = "Interrupted. Nothing was issued.";
    if (error instanceof PastTime) throw new UsageError(`${error.message} --force issues the vouchers anyway.`);
    throw error;
  });
  progress.end();
  const kept = await out?.keep();
  // Without a file or a window, only `batch export` gives access to the codes.
  const unreachable = !options.out && !options.codes && !options.claim && !options.buy;
  ctx.print(result, () =>
    [
      `${result.sandbox ? "Sandbox batch" : "Batch"} ${result.id}: ${pluralize(count, "voucher")}, serials ` +
        `${formatCount(result.firstSerial)} to ${formatCount(result.lastSerial)}, valid until ` +
        `${formatUtcWithZone(validUntil)}.`,
      kept,
      unreachable &&
        "Warning: these codes were not saved, and users cannot claim or buy the vouchers. Get them with: " +
          `voucherctl batch export ${result.id} --out FILE`,
    ]
      .filter(Boolean)
      .join("\n"),
  );
  ctx.next(options.buy ? `voucherctl listing create --batch ${result.id}` : `voucherctl batch show ${result.id}`);
}

/**
 * Shows what the file of codes contains before they are issued.
 * @throws AppError `invalid_request` when the answer is no.
 */
async function confirmCodes(ctx: CommandContext, yes: true | undefined, codes: string): Promise<void> {
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

async function voidAll(
  ctx: CommandContext,
  { yes, reason }: { yes: true | undefined; reason: string | undefined },
  id: string,
): Promise<void> {
  const size = await readBatchSize(ctx, id);
  const total = `${formatCount(size)} in total`;
  await confirmLoss(ctx, yes, `This permanently voids all active vouchers of batch ${id} (${total}).`);
  const progress = ctx.progress("Voiding", "vouchers", size);
  let soFar: BatchVoidResult = { voided: 0, alreadyFinal: 0 };
  const result = await voidBatch(ctx, id, reason ?? null, (counts) => {
    soFar = counts;
    progress.advance(counts.voided + counts.alreadyFinal);
    ctx.signal.throwIfAborted();
  }).catch((error) => {
    progress.end();
    if (soFar.voided > 0 || error instanceof Interrupted) {
      process.stderr.write(`Voided so far: ${formatCount(soFar.voided)}. The same command voids the rest.\n`);
    }
    throw error;
  });
  ctx.print(result, () => {
    const others =
      result.alreadyFinal === 0 ? "" : ` ${formatCount(result.alreadyFinal)} were redeemed, voided or expired before.`;
    return `Batch ${id}: ${pluralize(result.voided, "voucher")} voided.${others}`;
  });
}

function describeBatch(batch: BatchSummary): string {
  const { active, expired, redeemed, voided, count } = batch;
  const byStatus = Object.entries({ active, expired, redeemed, voided }).map(
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
    Vouchers: `${formatCount(count)}: ${byStatus.join(", ")}`,
    "Claim window": describeWindow(batch.windows.claim, batch.validUntil),
    "Buy window": describeWindow(batch.windows.buy, batch.validUntil),
    Available: batch.left === null ? null : pluralize(batch.left, "voucher"),
  });
}

/** A window closes at `closesAt` or when the vouchers expire, whichever is earlier. */
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

function windowsOf({ claim, buy, opensAt, closesAt, validUntil }: IssueOptions): IssueInput["windows"] {
  if (!claim && !buy && (opensAt !== undefined || closesAt !== undefined)) {
    throw new UsageError("--opens-at and --closes-at need a window: add --claim, --buy or both.");
  }
  if (opensAt !== undefined && closesAt !== undefined && closesAt <= opensAt) {
    throw new UsageError("--closes-at must be later than --opens-at.");
  }
  if (opensAt !== undefined && opensAt >= validUntil) {
    throw new UsageError("--opens-at must be earlier than --valid-until: otherwise the windows never open.");
  }
  const window = { opensAt: opensAt ?? null, closesAt: closesAt ?? null };
  return { ...(claim && { claim: window }), ...(buy && { buy: window }) };
}
