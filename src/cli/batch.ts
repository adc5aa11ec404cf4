import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Option } from "commander";
import type { BatchSummary } from "../db/catalog.ts";
import { isDatabaseUnavailable } from "../db/transaction.ts";
import type { Window } from "../domain/offer.ts";
import { AUDIENCES, type Audience } from "../domain/voucher.ts";
import { exportBatch } from "../services/admin/export-batch.ts";
import { COUNT_MAX, type IssueInput, issueBatch } from "../services/admin/issue-batch.ts";
import { readBatch } from "../services/admin/read-batch.ts";
import { type BatchVoidResult, readBatchSize, voidBatch } from "../services/admin/void-batch.ts";
import { openCodesFile } from "./codes-file.ts";
import { action, type CommandContext, type Noun } from "./command.ts";
import { confirmLoss, withYes } from "./confirm.ts";
import { Interrupted, UsageError } from "./exit-code.ts";
import { formatCount, formatUsd, formatUtc, formatUtcWithZone, pluralize } from "./format.ts";
import { formatFields } from "./layout.ts";
import { addList } from "./list.ts";
import { integer, isoDate, name } from "./option-parsers.ts";
import { paint } from "./paint.ts";
import type { Progress } from "./progress.ts";

interface IssueOptions {
  product: string;
  count: number;
  validUntil: Date;
  audience: Audience;
  claim?: boolean;
  buy?: boolean;
  opensAt?: Date;
  closesAt?: Date;
  codes?: string;
  out?: string;
  force?: boolean;
}

export const batch: Noun = {
  name: "batch",
  description: "batches of vouchers",
  addVerbs(noun) {
    action<IssueOptions>(
      noun
        .command("issue")
        .description("issue vouchers for a product; if it fails, none are issued")
        .requiredOption("--product <id>", "the product")
        .requiredOption("--count <n>", "number of vouchers", integer(1, COUNT_MAX))
        .requiredOption(
          "--valid-until <time>",
          "expiry time, e.g. 2027-12-31T23:59:59Z; a date alone means 00:00 UTC at the start of that day",
          isoDate,
        )
        .addOption(
          new Option("--audience <audience>", "who may claim or buy the vouchers; cannot be changed later")
            .choices(AUDIENCES)
            .default("OpenToAll"),
        )
        .option("--claim", "let users claim the vouchers, through a window")
        .option("--buy", "let users buy the vouchers, through a window")
        .option("--opens-at <time>", "when the windows open (default: immediately)", isoDate)
        .option("--closes-at <time>", "when the windows close (default: when the vouchers expire)", isoDate)
        .option("--codes <file>", "use printed codes, one per line, instead of new ones")
        .option(
          "--out <file.csv>",
          "write a CSV file with id, code and serial; an existing file is kept under a new name",
        )
        .option("--force", "issue them even if --valid-until is in the past"),
      [
        "batch issue --product prd_… --count 100000 --valid-until 2027-12-31 --out codes.csv",
        "batch issue --product prd_… --count 500 --valid-until 2027-12-31 --codes printed.txt",
        "batch issue --product prd_… --count 500 --valid-until 2027-12-31 --buy --audience ReferrerOnly",
      ],
      issue,
    );
    action(
      noun.command("show <id>").description("show a batch and count its vouchers by status"),
      ["batch show bat_…"],
      async (ctx, _options, id = "") => {
        const found = await readBatch(ctx, id);
        ctx.print(found, () => describeBatch(found));
      },
    );
    action<{ out: string }>(
      noun
        .command("export <id>")
        .description("write the codes of a batch to a file again; recorded in the audit log")
        .requiredOption(
          "--out <file.csv>",
          "the CSV file with id, code and serial; an existing file is kept under a new name",
        ),
      ["batch export bat_… --out codes.csv"],
      exportCodes,
    );
    action<{ reason?: string; yes?: true }>(
      withYes(noun.command("void <id>"))
        .description("void all active vouchers of a batch; a second run continues an interrupted one")
        .option("--reason <reason>", "why; kept in the vouchers' sealed histories", name),
      ['batch void bat_… --reason "printed twice"'],
      voidAll,
    );
    addList(noun, {
      list: "batches",
      cursor: /^bat_/,
      headings: ["ID", "VOUCHERS", "VALID UNTIL (UTC)", "PRODUCT"],
      toRow: ({ id, count, validUntil, audience, windows, productName, productId }) => ({
        cells: [id, formatCount(count), formatUtc(validUntil), productName],
        note: `${productId}, ${audience}, ${windows.length === 0 ? "no window" : `window: ${windows.join(" and ")}`}`,
      }),
      examples: ["batch list --product prd_…", "batch list --org org_… --limit 20 --json"],
    });
  },
};

async function issue(ctx: CommandContext, options: IssueOptions): Promise<void> {
  const { product: productId, count, validUntil, audience } = options;
  const windows = windowsOf(options);
  if (validUntil <= new Date() && !options.force) {
    throw new UsageError(
      "--valid-until is in the past, so these vouchers could never be used. --force issues them anyway.",
    );
  }
  const out = options.out === undefined ? null : await openCodesFile(options.out, count, "new");
  const codes = options.codes === undefined ? null : linesOf(options.codes);
  const progress = ctx.progress("Issuing", "vouchers", count);
  const result = await issueBatch(ctx, { productId, count, validUntil, audience, windows, codes }, async (vouchers) => {
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
    throw error;
  });
  const kept = out && (await keepFile(out, progress));
  // Without a file or a window, only `batch export` gives access to the codes.
  const unreachable = !options.out && !options.codes && !options.claim && !options.buy;
  ctx.print(result, () =>
    [
      `${result.sandbox ? "Sandbox batch" : "Batch"} ${result.id}: ${pluralize(count, "voucher")}, serials ${formatCount(result.firstSerial)} to ${formatCount(result.lastSerial)}, valid until ${formatUtcWithZone(validUntil)}.`,
      kept && describeFile(kept),
      unreachable &&
        `Warning: these codes were not saved, and users cannot claim or buy the vouchers. Get them with: voucherctl batch export ${result.id} --out FILE`,
      validUntil <= new Date() && "Warning: these vouchers have already expired.",
    ]
      .filter(Boolean)
      .join("\n"),
  );
  ctx.next(options.buy ? `voucherctl listing create --batch ${result.id}` : `voucherctl batch show ${result.id}`);
}

async function exportCodes(ctx: CommandContext, { out: file }: { out: string }, id = ""): Promise<void> {
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
  const kept = await keepFile(out, progress);
  ctx.print({ id, count }, () => `Batch ${id}: ${pluralize(count, "voucher")}.\n${describeFile(kept)}`);
}

async function voidAll(ctx: CommandContext, options: { reason?: string; yes?: true }, id = ""): Promise<void> {
  const size = await readBatchSize(ctx, id);
  const total = `${formatCount(size)} in total`;
  await confirmLoss(ctx, options, `This permanently voids all active vouchers of batch ${id} (${total}).`);
  const progress = ctx.progress("Voiding", "vouchers", size);
  let soFar: BatchVoidResult = { voided: 0, alreadyFinal: 0 };
  const result = await voidBatch(ctx, id, options.reason ?? null, (counts) => {
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

type CodesFile = Awaited<ReturnType<typeof openCodesFile>>;
type KeptFile = Awaited<ReturnType<CodesFile["keep"]>>;

async function keepFile(out: CodesFile, progress: Progress): Promise<KeptFile> {
  const kept = await out.keep();
  if (kept.problem !== null) {
    progress.end();
    process.stderr.write(`The file could not be renamed (${kept.problem}). The codes are in ${kept.file}.\n`);
  }
  return kept;
}

function describeFile({ file, older }: KeptFile): string {
  const renamed = older === null ? "" : `\nThe existing file was renamed to ${older}.`;
  return `The codes are in ${file}. Only you can read this file.${renamed}`;
}

function describeBatch(batch: BatchSummary): string {
  const { active, expired, redeemed, voided, count } = batch;
  return formatFields(`Batch ${paint("bold", batch.id)}`, {
    Sandbox: batch.sandbox ? "for tests, has no value" : null,
    Product: `${batch.productName} (${batch.productId})`,
    Price: `${formatUsd(batch.priceUsd)}, list price ${formatUsd(batch.retailPriceUsd)}`,
    Duration: batch.benefitMonths === 0 ? null : pluralize(batch.benefitMonths, "month"),
    "Usage unit": batch.usageUnitLabel,
    Audience: batch.audience === "OpenToAll" ? "open to all" : "referrers only",
    Issued: formatUtcWithZone(batch.createdAt),
    "Valid until": formatUtcWithZone(batch.validUntil),
    Vouchers: `${formatCount(count)}: ${[
      `${formatCount(active)} active`,
      `${formatCount(expired)} expired`,
      `${formatCount(redeemed)} redeemed`,
      `${formatCount(voided)} voided`,
    ].join(", ")}`,
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

async function* linesOf(file: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });
}
