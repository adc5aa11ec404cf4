import { lstatSync, renameSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { AppError } from "../contract/errors.ts";
import type { IssuedVoucher } from "../services/admin/issue-batch.ts";

/**
 * Opens the CSV file for the codes of a batch of `total` vouchers, readable by its owner alone. Until it is complete it is named
 * `FILE.unfinished`, which also keeps a second run from writing. An older file is renamed, never overwritten: it may hold the only copy of its codes.
 * @param whose `new`: of a batch that is being issued, so a complete file may hold its only copy. `issued`: of an older batch.
 * @throws AppError `invalid_request` when the name is a directory's, or the unfinished file already exists.
 */
export async function openCodesFile(file: string, total: number, whose: "new" | "issued") {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new AppError("invalid_request", `${file} is a directory.`);
  }
  const unfinished = `${file}.unfinished`;
  const handle = await createUnfinished(file, unfinished);
  let count = 0;
  // The commit follows the last code. Before that, no code of a new batch is valid, so the file is removed on exit.
  const onExit = () => {
    if (count < total || whose === "issued") rmSync(unfinished, { force: true });
    else warnOfUncertainIssue(unfinished);
  };
  process.once("exit", onExit);
  const close = () => {
    process.removeListener("exit", onExit);
    return handle.close();
  };
  const discard = async () => {
    await close();
    rmSync(unfinished, { force: true });
  };
  try {
    await handle.appendFile("id,code,serial\n");
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    /** Whether every voucher was written. Until then nothing is committed. */
    isComplete: () => count === total,
    async write(vouchers: readonly IssuedVoucher[]): Promise<void> {
      // appendFile writes everything or fails; a single write to a nearly full disk may end early.
      await handle.appendFile(vouchers.map(({ id, code, serial }) => `${id},${quote(code)},${serial}\n`).join(""));
      count += vouchers.length;
    },
    /** Keeps the unfinished file of a batch that may or may not have been committed, and tells the user. */
    async leave(): Promise<void> {
      await close();
      warnOfUncertainIssue(unfinished);
    },
    /** Gives the file its final name. Never throws, because the vouchers already exist: `problem` says why it has the old one. */
    async keep(): Promise<{ file: string; older: string | null; problem: string | null }> {
      let older: string | null = null;
      try {
        await close();
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

function warnOfUncertainIssue(unfinished: string): void {
  process.stderr.write(`If the batch was issued after all, its codes are in ${unfinished}.\n`);
}

/** Renames a file that is not empty to the first free name of `FILE.1`, `FILE.2` …; returns null when there is no such file. */
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

async function createUnfinished(file: string, unfinished: string): Promise<FileHandle> {
  try {
    return await open(unfinished, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new AppError(
      "invalid_request",
      [
        `${unfinished} exists: another run is writing the codes for ${file}, or one was killed. If another run is in progress, wait for it to end.`,
        "If not, look up the last code in that file: voucherctl voucher show CODE --org ID. If it is found, its batch was issued and the",
        "file holds its codes: rename it. If it is not found, the file has no code, or a batch export wrote it, remove it. Then run this again.",
      ].join("\n"),
      { cause: error },
    );
  }
}

/** Quotes a field as RFC 4180 says. */
function quote(field: string): string {
  return /[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field;
}
