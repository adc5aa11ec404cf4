import { createReadStream, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import { findBatch } from "../db/catalogue.ts";
import { AppError } from "../domain/errors.ts";
import { AUDIENCES, type Audience } from "../domain/voucher.ts";
import { type IssuedVoucher, type IssueInput, issueBatch } from "../services/issue-batch.ts";
import { action, integer, isoDate } from "./command.ts";

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
      .requiredOption("--valid-until <moment>", "from when on they are expired", isoDate)
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
      .option("--out <file.csv>", "write id,code,serial of every voucher"),
    async (ctx, options) => {
      const windows = windowsOf(options);
      const out = options.out === undefined ? null : await openCsv(options.out);
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
          ctx.progress(`${vouchers.at(-1)?.serial} of ${options.count} vouchers`);
          await out?.write(vouchers);
        },
      ).catch(async (error) => {
        await out?.discard();
        throw error;
      });
      await out?.keep();
      ctx.progress("");
      ctx.print(
        result,
        `Batch ${result.id}: ${result.count} vouchers, serials ${result.firstSerial} to ${result.lastSerial}.`,
      );
    },
  );
  action(
    batch.command("show <id>").description("show a batch and how its vouchers stand"),
    async (ctx, _options, id = "") => {
      const found = await findBatch(ctx.pool, id);
      if (found === null) throw new AppError("not_found", `There is no batch ${id}.`);
      const { active, expired, redeemed, voided } = found;
      ctx.print(
        found,
        [
          `Batch ${found.id} of ${found.productName} (${found.productId})`,
          `${found.audience}, valid until ${found.validUntil.toISOString()}, ${found.priceUsd} USD (list ${found.retailPriceUsd} USD)`,
          `${found.count} vouchers: ${active} active, ${expired} expired, ${redeemed} redeemed, ${voided} voided`,
        ].join("\n"),
      );
    },
  );
}

function windowsOf({ claim, buy, opensAt, closesAt, validUntil }: IssueOptions): IssueInput["windows"] {
  if (!claim && !buy && (opensAt !== undefined || closesAt !== undefined)) {
    throw new AppError("invalid_request", "--opens-at and --closes-at are for windows: give --claim, --buy or both.");
  }
  if (opensAt !== undefined && closesAt !== undefined && closesAt <= opensAt) {
    throw new AppError("invalid_request", "--closes-at must be later than --opens-at.");
  }
  if (opensAt !== undefined && opensAt >= validUntil) {
    throw new AppError("invalid_request", "--opens-at must be earlier than --valid-until, or the windows never open.");
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
 */
async function openCsv(file: string) {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new AppError("invalid_request", `${file} is a directory.`);
  }
  const unfinished = `${file}.unfinished`;
  const handle = await open(unfinished, "w", 0o600);
  await handle.write("id,code,serial\n");
  return {
    async write(vouchers: readonly IssuedVoucher[]): Promise<void> {
      await handle.write(vouchers.map(({ id, code, serial }) => `${id},${quote(code)},${serial}\n`).join(""));
    },
    async keep(): Promise<void> {
      await handle.close();
      renameSync(unfinished, file);
    },
    async discard(): Promise<void> {
      await handle.close();
      rmSync(unfinished, { force: true });
    },
  };
}

/** RFC 4180. */
function quote(field: string): string {
  return /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
