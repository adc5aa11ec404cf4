import { randomUUID } from "node:crypto";
import { access, constants, open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** Pause between attempts to lock a file. Milliseconds. */
const LOCK_RETRY_MS = 20;
/** The result code of SQLite for a file that another process has locked. */
const SQLITE_BUSY = 5;

/** Another process has locked the file. */
export class FileLocked extends Error {}

/** A stored state is damaged. This proves nothing about the log. */
export class DamagedState extends Error {}

/**
 * Locks `<file>.lock` for this process, and returns the function that releases it. When a process ends, the operating
 * system releases its lock. The lock is one of SQLite, because Node has no file locks but contains SQLite. This needs
 * Node 22.13. The rest of this package needs Node 20.
 * @throws FileLocked when another process still has the lock after `waitMs`; the system's error when the folder cannot
 * be written, because SQLite would name neither the path nor the cause.
 */
export async function lockFile(file: string, waitMs: number): Promise<() => unknown> {
  const { DatabaseSync } = await import("node:sqlite");
  await access(dirname(file), constants.W_OK);
  const deadline = performance.now() + waitMs;
  const lock = new DatabaseSync(`${file}.lock`, { timeout: 0 });
  for (;;) {
    try {
      lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
      return () => lock.isOpen && lock.close();
    } catch (error) {
      if ((error as { errcode?: number }).errcode === SQLITE_BUSY && performance.now() < deadline) {
        await sleep(LOCK_RETRY_MS);
        continue;
      }
      lock.close();
      if ((error as { errcode?: number }).errcode !== SQLITE_BUSY) throw error;
      throw new FileLocked(`Another process uses ${file}.`);
    }
  }
}

/** Whether a name is that of a temporary file, which remains if a process ends while it replaces a file. */
export const isUnfinished = (name: string) => /\.[\da-f-]{36}\.next$/.test(name);

/**
 * Replaces a private file atomically: a reader sees the old content or the new content, even after a power failure.
 * @throws the errors of {@link replaceFile}.
 */
export async function writeDurably(file: string, content: string | Uint8Array): Promise<void> {
  await replaceFile(file, content, { mode: 0o600, sync: true });
  const directory = await open(dirname(file), "r");
  await directory.sync().finally(() => directory.close());
}

/**
 * Replaces a file atomically: a reader sees the old content or the new content. A failed replacement leaves no
 * temporary file, because a caller that tries again every second would fill the disk.
 */
export async function replaceFile(
  file: string,
  content: string | Uint8Array,
  { mode, sync }: { mode?: number; sync?: boolean } = {},
): Promise<void> {
  const next = `${file}.${randomUUID()}.next`;
  try {
    const handle = await open(next, "w", mode);
    try {
      await handle.writeFile(content);
      if (sync) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(next, file);
  } catch (error) {
    await rm(next, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Reads a file. Null if it does not exist. */
export async function readIfThere(file: string): Promise<Buffer | null> {
  return readFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
    throw error;
  });
}
