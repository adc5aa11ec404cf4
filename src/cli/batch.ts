import { createReadStream, lstatSync, renameSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import { type BatchSummary, findBatch } from "../db/catalogue.ts";
import { isDatabaseUnavailable } from "../db/transaction.ts";
import { AppError } from "../domain/errors.ts";
import type { Window } from "../domain/supply.ts";
import { AUDIENCES, type Audience } from "../domain/voucher.ts";
import { type IssuedVoucher, type IssueInput, issueBatch } from "../services/issue-batch.ts";
import { action } from "./command.ts";
import { UsageError } from "./exit-code.ts";
import { showCount, showDollars, showMomentUtc, showNumberOf } from "./figures.ts";
import { layFields } from "./layout.ts";
import { integer, isoDate } from "./option-parsers.ts";
import { paint } from "./paint.ts";

/** Largest batch. */
const COUNT_MAX = 10_000_000;

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
}

/** `batch`: supply. */
export function addBatchCommands(program: Command): void {
  const batch = program.command("batch").description("batches of vouchers");
  action<IssueOptions>(
    batch
      .command("issue")
      .description("issue vouchers for a product; a batch that fails leaves nothing behind")
      .requiredOption("--product <id>", "the product they stand for")
      .requiredOption("--count <n>", "how many", integer(1, COUNT_MAX))
      .requiredOption(
        "--valid-until <moment>",
        "from when on they are expired: 2027-12-31T23:59:59Z, or a date, which is its midnight in UTC",
        isoDate,
      )
      .addOption(
        new Option("--audience <audience>", "who may take them from an open window; fixed for ever")
          .choices(AUDIENCES)
          .default("OpenToAll"),
      )
      .option("--claim", "open a window through which users claim them")
      .option("--buy", "open a window through which users buy them")
      .option("--opens-at <moment>", "when the windows open; without it they are open at once", isoDate)
      .option("--closes-at <moment>", "when the windows close; without it they stay open", isoDate)
      .option("--codes <file>", "use these printed codes, one a line, instead of new ones")
      .option("--out <file.csv>", "write id,code,serial of every voucher; an older file of this name is renamed"),
    [
      "batch issue --product prd_… --count 100000 --valid-until 2027-12-31 --out codes.csv",
      "batch issue --product prd_… --count 500 --valid-until 2027-12-31 --codes printed.txt",
      "batch issue --product prd_… --count 500 --valid-until 2027-12-31 --buy --audience ReferrerOnly",
    ],
    async (ctx, options) => {
      const windows = windowsOf(options);
      const out = options.out === undefined ? null : await openCsv(options.out);
      const progress = ctx.progress("Issuing", "vouchers", options.count);
      const result = await issueBatch(
        ctx,
        {
          productId: options.product,
          count: options.count,
          validUntil: options.validUntil,
          audience: options.audience,
          windows,
          codes: options.codes === undefined ? null : linesOf(options.codes),
        },
        async (vouchers) => {
          ctx.signal.throwIfAborted();
          progress.advance(vouchers.at(-1)?.serial ?? 0);
          await out?.write(vouchers);
        },
      ).catch(async (error) => {
        // The commit may have been carried out, and only its answer lost.
        if (out?.count() === options.count && isDatabaseUnavailable(error)) {
          progress.end();
          process.stderr.write(`If the batch was issued after all, its codes are in ${await out.leave()}.\n`);
        } else await out?.discard();
        throw error;
      });
      const kept = await out?.keep();
      if (kept?.problem) {
        progress.end();
        process.stderr.write(
          `The file could not be given its name (${kept.problem}): the codes are in ${kept.file}.\n`,
        );
      }
      await ctx.print(result, () =>
        [
          `Batch ${result.id}: ${showNumberOf(result.count, "voucher")}, serials ${showCount(result.firstSerial)} to ${showCount(result.lastSerial)}, valid until ${showMomentUtc(options.validUntil)}.`,
          ...(kept === undefined ? [] : [`Their codes are in ${kept.file}, readable by you alone.`]),
          ...(kept?.older ? [`The file that had this name is ${kept.older} now.`] : []),
          ...(isForNobody(options)
            ? ["Nobody gets their codes: that takes --out, --codes or a window, --claim or --buy."]
            : []),
          ...(options.validUntil <= new Date() ? ["They are expired already."] : []),
        ].join("\n"),
      );
    },
  );
  action(
    batch.command("show <id>").description("show a batch and how its vouchers stand"),
    ["batch show bat_…"],
    async (ctx, _options, id = "") => {
      const found = await findBatch(ctx.pool, id);
      if (found === null) throw new AppError("not_found", `There is no batch ${id}.`);
      await ctx.print(found, () => describeBatch(found));
    },
  );
}

function describeBatch(batch: BatchSummary): string {
  const { active, expired, redeemed, voided, count } = batch;
  return layFields(`Batch ${paint("bold", batch.id)}`, {
    Product: `${batch.productName} (${batch.productId})`,
    Price: `${showDollars(batch.priceUsd)}, list price ${showDollars(batch.retailPriceUsd)}`,
    Term: batch.benefitMonths === 0 ? null : showNumberOf(batch.benefitMonths, "month"),
    "One use": batch.usageUnitLabel,
    Audience: batch.audience === "OpenToAll" ? "open to all" : "referrers only",
    Issued: showMomentUtc(batch.createdAt),
    "Valid until": showMomentUtc(batch.validUntil),
    Vouchers: `${showCount(count)}: ${[
      `${showCount(active)} active`,
      `${showCount(expired)} expired`,
      `${showCount(redeemed)} redeemed`,
      `${showCount(voided)} voided`,
    ].join(", ")}`,
    "Claim window": describeWindow(batch.windows.claim, batch.validUntil),
    "Buy window": describeWindow(batch.windows.buy, batch.validUntil),
    "Left to take": batch.left === null ? null : showNumberOf(batch.left, "voucher"),
  });
}

/** How a window stands; it closes when the vouchers expire, at the latest. */
function describeWindow(window: Window | null, validUntil: Date): string | null {
  if (window === null) return null;
  const now = new Date();
  const { opensAt } = window;
  const closesAt = window.closesAt !== null && window.closesAt < validUntil ? window.closesAt : validUntil;
  if (closesAt <= now) return `closed since ${showMomentUtc(closesAt)}`;
  if (opensAt !== null && opensAt > now) return `opens at ${showMomentUtc(opensAt)}, until ${showMomentUtc(closesAt)}`;
  return `open until ${showMomentUtc(closesAt)}`;
}

/** Whether no command and no window ever tells the codes of a batch. */
function isForNobody({ out, codes, claim, buy }: IssueOptions): boolean {
  return out === undefined && codes === undefined && !claim && !buy;
}

function windowsOf({ claim, buy, opensAt, closesAt, validUntil }: IssueOptions): IssueInput["windows"] {
  if (!claim && !buy && (opensAt !== undefined || closesAt !== undefined)) {
    throw new UsageError("--opens-at and --closes-at are for windows: give --claim, --buy or both.");
  }
  if (opensAt !== undefined && closesAt !== undefined && closesAt <= opensAt) {
    throw new UsageError("--closes-at must be later than --opens-at.");
  }
  if (opensAt !== undefined && opensAt >= validUntil) {
    throw new UsageError("--opens-at must be earlier than --valid-until, or the windows never open.");
  }
  const window = { opensAt: opensAt ?? null, closesAt: closesAt ?? null };
  return { ...(claim && { claim: window }), ...(buy && { buy: window }) };
}

async function* linesOf(file: string): AsyncGenerator<string> {
  yield* createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Number.POSITIVE_INFINITY });
}

/**
 * A CSV file that appears under its name only when it is kept, with every code in it. Readable by its owner alone. What was
 * written is with the file system, so that nothing is left that could fail once the vouchers exist but the new name.
 *
 * No file is ever written over: nothing else tells the codes in it. One of that name gets another. Who made the unfinished file holds the
 * name until it is kept or discarded.
 * @throws AppError `invalid_request` when the name is a directory's, or that of the unfinished file is taken.
 */
async function openCsv(file: string) {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new AppError("invalid_request", `${file} is a directory.`);
  }
  const unfinished = `${file}.unfinished`;
  const handle = await openNew(unfinished);
  const discard = async () => {
    await handle.close();
    rmSync(unfinished, { force: true });
  };
  try {
    await handle.appendFile("id,code,serial\n");
  } catch (error) {
    await discard();
    throw error;
  }
  let count = 0;
  return {
    /** How many vouchers were written. */
    count: () => count,
    async write(vouchers: readonly IssuedVoucher[]): Promise<void> {
      // Writes all of it or fails, while one write to a disk that is nearly full may end early.
      await handle.appendFile(vouchers.map(({ id, code, serial }) => `${id},${quote(code)},${serial}\n`).join(""));
      count += vouchers.length;
    },
    /** Leaves the unfinished file as it is, and says which that is. */
    async leave(): Promise<string> {
      await handle.close();
      return unfinished;
    },
    /**
     * Never throws, as the vouchers exist by now: says where the codes are, what an older file of that name is called now, and what kept
     * the codes from their own name.
     */
    async keep(): Promise<{ file: string; older: string | null; problem: string | null }> {
      let older: string | null = null;
      try {
        await handle.close();
        older = setAside(file);
        renameSync(unfinished, file);
        return { file, older, problem: null };
      } catch (error) {
        return { file: unfinished, older, problem: (error as Error).message };
      }
    },
    discard,
  };
}

/** Renames a file that has something in it, to the first of `FILE.1`, `FILE.2` … that is free; null when there is none. */
function setAside(file: string): string | null {
  const found = lstatSync(file, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size === 0) return null;
  for (let n = 1; ; n++) {
    const older = `${file}.${n}`;
    if (lstatSync(older, { throwIfNoEntry: false }) !== undefined) continue;
    renameSync(file, older);
    return older;
  }
}

/** Makes a file that was not there. */
async function openNew(file: string): Promise<FileHandle> {
  try {
    return await open(file, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new AppError(
      "invalid_request",
      `${file} exists already: another run is writing there, or one was killed. Give another name, or remove it if no batch has its codes.`,
      { cause: error },
    );
  }
}

/** RFC 4180. */
function quote(field: string): string {
  return /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
