import { lstatSync, renameSync, rmSync, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { CODES_HEAD, codesLine } from "../acts/export-batch.ts";
import type { IssuedVoucher } from "../acts/issue-batch.ts";
import { AppError } from "../platform/api/errors.ts";

/**
 * Opens the CSV file for the codes of a batch of `total` vouchers. Only its owner can read it. Until `keep` is called,
 * the file is named `FILE.unfinished`. A second run refuses to start while this file exists. An existing file with
 * content is renamed and never overwritten, because it may be the only copy of its codes.
 * @param kind `new`: the batch is being issued, so a complete file may be the only copy of its codes. `issued`: the
 * batch already exists.
 * @throws AppError `invalid_request` when `file` is a directory, or when the unfinished file already exists.
 */
export async function openCodesFile(file: string, total: number, kind: "new" | "issued") {
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new AppError("invalid_request", `${file} is a directory.`);
  }
  const unfinished = `${file}.unfinished`;
  const handle = await createUnfinished(file, unfinished);
  let count = 0;
  // Removes an incomplete file on exit. A new batch is committed only after its last code is written, and no code is
  // valid before the commit.
  const onExit = () => {
    if (count < total || kind === "issued") rmSync(unfinished, { force: true });
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
    await handle.appendFile(CODES_HEAD);
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    /** Whether every voucher was written. */
    isComplete: () => count === total,
    async write(vouchers: readonly IssuedVoucher[]): Promise<void> {
      // Uses appendFile, which writes everything or fails. A plain write to a nearly full disk may write only a part.
      await handle.appendFile(vouchers.map(codesLine).join(""));
      count += vouchers.length;
    },
    /** Keeps the unfinished file when it is unknown whether its batch was committed, and tells the user. */
    async leave(): Promise<void> {
      await close();
      warnOfUncertainIssue(unfinished);
    },
    /** Gives the file its final name, and describes where it is. Never throws, because the vouchers already exist. */
    async keep(): Promise<string> {
      let kept = unfinished;
      let older: string | null = null;
      try {
        await close();
        older = setAside(file);
        renameSync(unfinished, file);
        kept = file;
      } catch (error) {
        const problem = (error as Error).message;
        process.stderr.write(`The file could not be renamed (${problem}). The codes are in ${unfinished}.\n`);
      }
      const renamed = older === null ? "" : `\nThe existing file was renamed to ${older}.`;
      return `The codes are in ${kept}. Only you can read this file.${renamed}`;
    },
    discard,
  };
}

function warnOfUncertainIssue(unfinished: string): void {
  process.stderr.write(`If the batch was issued after all, its codes are in ${unfinished}.\n`);
}

/** Renames a file with content to the first free of `FILE.1`, `FILE.2` …, and returns that name. Otherwise null. */
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
        `${unfinished} exists: another run is writing the codes for ${file}, or one was killed. If another run is ` +
          "in progress, wait for it to end.",
        "If not: if a batch export wrote the file or it has no code, remove it. Otherwise look up its last code: " +
          "voucherctl voucher show CODE --org ID.",
        "If it is found, its batch was issued and the file holds its codes: rename it. If it is not found, remove " +
          "it. Then run this again.",
      ].join("\n"),
      { cause: error },
    );
  }
}
