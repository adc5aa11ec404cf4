import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Response } from "express";
import { AppError } from "../api/errors.ts";
import type { Sentence } from "../api/sentences.ts";
import { CallerLeft } from "../batching/fair-slots.ts";
import { watchForEnd } from "../watch-for-end.ts";
import { signalOf } from "./middleware/caller-signal.ts";

/** A file that is made from rows while they are read. */
export interface RowFile {
  /** Additional headers. They replace the default headers of CSV files. */
  headers: Record<string, string>;
  /**
   * The parts of the file. They are read only after the limits have admitted the file. An error before the last part
   * becomes the response.
   */
  parts: AsyncIterable<string>;
}

/** The key or the operator with which a request is signed in. */
interface Reader {
  id: string;
  /** Whether the sign-in is still valid. */
  stillHolds(): Promise<boolean>;
}

declare global {
  namespace Express {
    interface Locals {
      /** Set by each guard that admits readers of files. */
      reader?: Reader;
    }
  }
}

/** The limits on files in one process. */
export const FILE_LIMITS = {
  /** Maximum number of concurrent files of one reader. */
  eachMax: 2,
  /** Maximum number of concurrent files. While a file is made, it holds a few thousand rows: two megabytes. */
  filesMax: 32,
  /** Maximum size of a file. A million redemptions take 230 MB, and 100 000 codes take 6 MB. Bytes. */
  bytesMax: 512 * 2 ** 20,
  /** Maximum size of all files together, on the disk of the temporary folder. Bytes. */
  totalMax: 2 * 2 ** 30,
  /**
   * Maximum time to make a file. 100 000 redemptions take 0.7 seconds of a process, and took up to 7 seconds on a
   * machine with ten times as much work as cores, where a million may be too many. By default, nginx and other proxies
   * wait 60 seconds for the first byte. Milliseconds.
   */
  makeMs: 50_000,
  /** Time for reading a file, in addition to the time that reading takes at the minimum rate. Milliseconds. */
  readMs: 60_000,
  /** Minimum rate at which a client must read a file. Bytes per second. */
  readRateMin: 32 * 1024,
};

/** `Retry-After` for a file that took too long to make. An immediate retry would only add load. */
const RETRY_SLOW_SECONDS = 60;

/** Size of the part of a file that is in memory while it is sent. Bytes. */
const PIECE = 64 * 1024;

/**
 * Sends a file to the request's reader. The whole file is on disk before the response begins, so `Content-Length` gives
 * its size. So a reader can detect a truncated file behind any proxy, and in HTTP/1.0 too. Cuts off the response if the
 * reader is too slow, and within a second after the reader's sign-in has ended. A HEAD request gets the headers that
 * are known without the file.
 * @throws AppError `overloaded`, `invalid_request` for too large a file, `unknown_key`; CallerLeft; an error from
 * `parts`.
 */
export type SendFile = (response: Response, file: RowFile) => Promise<void>;

/** The media type of CSV. */
const CSV = "text/csv; charset=utf-8";

/** One file on disk, and its share of the file limits. */
interface Place {
  file: FileHandle | null;
  /** Bytes. */
  size: number;
  /** @throws AppError if this file, or all files together, become too large. */
  grow(bytes: number): void;
  leave(): void;
}

/** Opens the limits on files of a process. */
export function openFiles(limits = FILE_LIMITS): SendFile {
  const takePlace = openPlaces(limits);
  return async (response, { headers, parts }) => {
    const sent = { "Cache-Control": "no-store", "Content-Type": CSV, ...headers };
    if (response.req.method === "HEAD") return void response.set(sent).end();
    const { reader } = response.locals;
    if (reader === undefined) throw new Error("the route does not say who reads its files");
    const place = takePlace(reader.id);
    const left = signalOf(response);
    const ended = watchForEnd(async () => !(await reader.stillHolds()), left);
    const late = AbortSignal.timeout(limits.makeMs);
    const stop = AbortSignal.any([left, ended, late]);
    const making = fill(place, parts, stop);
    try {
      const stopped = Promise.withResolvers<never>();
      stop.addEventListener("abort", () => stopped.reject(stop.reason), { once: true });
      const file = await Promise.race([making, stopped.promise]);
      response.set({ ...sent, "Content-Length": String(place.size) });
      const slow = AbortSignal.timeout(limits.readMs + Math.ceil((place.size / limits.readRateMin) * 1_000));
      await send(response, file, ended, slow);
    } catch (error) {
      if (left.aborted) throw new CallerLeft();
      if (ended.aborted) throw signInEnded();
      if (error !== late.reason) throw error;
      const sentence: Sentence = (t) => t("inDetail.fileTooSlow", { seconds: limits.makeMs / 1_000 });
      throw new AppError("overloaded", sentence, { retryAfterSeconds: RETRY_SLOW_SECONDS });
    } finally {
      // Frees the file's share of the limits only after the last part was read.
      void making
        .catch(() => undefined)
        .then(() => place.leave())
        .then(() => place.file?.close())
        .catch(() => undefined);
    }
  };
}

/** @returns a function that reserves space within the limits for a reader's file. */
function openPlaces({ eachMax, filesMax, bytesMax, totalMax }: typeof FILE_LIMITS): (id: string) => Place {
  const openOf = new Map<string, number>();
  let [files, total] = [0, 0];
  return (id) => {
    const before = openOf.get(id) ?? 0;
    if (before >= eachMax) throw new AppError("overloaded", (t) => t("inDetail.filesFull", { max: eachMax }));
    if (files >= filesMax) throw new AppError("overloaded");
    openOf.set(id, before + 1);
    files += 1;
    return {
      file: null,
      size: 0,
      grow(bytes) {
        this.size += bytes;
        total += bytes;
        if (total > totalMax) throw new AppError("overloaded");
        if (this.size <= bytesMax) return;
        throw new AppError("invalid_request", (t) => t("inDetail.fileTooLarge", { megabytes: bytesMax / 2 ** 20 }));
      },
      leave() {
        files -= 1;
        total -= this.size;
        const after = (openOf.get(id) ?? 1) - 1;
        if (after > 0) openOf.set(id, after);
        else openOf.delete(id);
      },
    };
  };
}

/** Writes the parts to an unnamed file on disk. The file is deleted when it is closed or the process ends. */
async function fill(place: Place, parts: AsyncIterable<string>, stop: AbortSignal): Promise<FileHandle> {
  const path = join(tmpdir(), `voucher-file-${crypto.randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  place.file = file;
  await unlink(path);
  for await (const part of parts) {
    stop.throwIfAborted();
    const bytes = Buffer.from(part);
    place.grow(bytes.length);
    await file.appendFile(bytes);
  }
  stop.throwIfAborted();
  return file;
}

const signInEnded = () => new AppError("unknown_key", (t) => t("inDetail.keyEnded.nothingDone"));

/** Sends a file as fast as the client reads it. If sending fails, the request's log line has the reason. */
async function send(response: Response, file: FileHandle, ended: AbortSignal, slow: AbortSignal): Promise<void> {
  const breakOff = (cause: unknown) => {
    // Sets the failure first, because the request is logged when the connection breaks.
    response.locals.failure = cause;
    response.destroy();
  };
  ended.addEventListener("abort", () => breakOff(signInEnded()), { once: true });
  const pieces = file.createReadStream({ start: 0, highWaterMark: PIECE, autoClose: false });
  // If the reader has disconnected or is too slow, the stream also ends with an error, which needs no cause in the log.
  pieces.once("error", (cause) => (slow.aborted || response.destroyed ? undefined : breakOff(cause)));
  await pipeline(pieces, response, { signal: slow }).catch(() => response.destroy());
}
