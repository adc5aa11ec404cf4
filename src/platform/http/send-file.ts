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
  /** Further headers, and others than those of CSV. */
  headers: Record<string, string>;
  /** Nothing is read before the limits admit the file. An error before the last part becomes the response. */
  parts: AsyncIterable<string>;
}

/** The key or the operator that a request is signed in with. */
interface Reader {
  id: string;
  /** Whether the sign-in is still valid. */
  stillHolds(): Promise<boolean>;
}

declare global {
  namespace Express {
    interface Locals {
      /** Set by each guard after which files can be read. */
      reader?: Reader;
    }
  }
}

/** The limits on files, in one process. */
export const FILE_LIMITS = {
  /** Maximum number of concurrent files of one reader. */
  eachMax: 2,
  /** Maximum number of concurrent files. While one is made, it holds a few thousand rows: two megabytes. */
  filesMax: 32,
  /** Maximum size of a file. A million redemptions take 230 MB, 100 000 codes 6 MB. Bytes. */
  bytesMax: 512 * 2 ** 20,
  /** Maximum size of all files together, on the disk of the temporary folder. Bytes. */
  totalMax: 2 * 2 ** 30,
  /**
   * Longest time to make a file. 100 000 redemptions take 0.7 seconds of the process, and took up to 7 seconds on a
   * machine with ten times as much work as cores: a million may be too many there. By default, nginx and others wait 60
   * seconds for the first byte. Milliseconds.
   */
  makeMs: 50_000,
  /** Time to read a file in addition to what the slowest rate allows. Milliseconds. */
  readMs: 60_000,
  /** Slowest rate at which a file may be read. Bytes per second. */
  readRateMin: 32 * 1024,
};

/** After how many seconds to try again to make a file that took too long: at once would only add load. */
const RETRY_SLOW_SECONDS = 60;

/** How much of a file is in memory while it is sent. Bytes. */
const PIECE = 64 * 1024;

/**
 * Sends a file to the request's reader. The whole file is on disk before the response begins, so `Content-Length` gives
 * its size: with any proxy, and in HTTP/1.0 too, a reader can tell that a file was cut. When the reader's sign-in ends,
 * the file ends within a second. The response to a reader who is too slow is cut. A HEAD request gets the headers that
 * are known without the file.
 * @throws AppError `overloaded`, `invalid_request` for too large a file, `unknown_key`; CallerLeft; what `parts` throw.
 */
export type SendFile = (response: Response, file: RowFile) => Promise<void>;

/** The media type of CSV. */
const CSV = "text/csv; charset=utf-8";

/** The share of the limits on files that one file uses, and the file on disk. */
interface Place {
  file: FileHandle | null;
  /** Bytes. */
  size: number;
  /** @throws AppError if the file, or all together, become too large. */
  grow(bytes: number): void;
  leave(): void;
}

/** Opens a process's limits on files. */
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
      // The place is freed only when no part is still being read.
      void making
        .catch(() => undefined)
        .then(() => place.leave())
        .then(() => place.file?.close())
        .catch(() => undefined);
    }
  };
}

/** @returns what takes a place for a file of this reader. */
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

/** Writes the parts to a file on disk without a name. The file is gone once it is closed or the process ends. */
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

/** Sends a file piece by piece, as fast as it is read. If it breaks off, the request log says why. */
async function send(response: Response, file: FileHandle, ended: AbortSignal, slow: AbortSignal): Promise<void> {
  const breakOff = (cause: unknown) => {
    // Set before the connection breaks, because the request is logged at that moment.
    response.locals.failure = cause;
    response.destroy();
  };
  ended.addEventListener("abort", () => breakOff(signInEnded()), { once: true });
  const pieces = file.createReadStream({ start: 0, highWaterMark: PIECE, autoClose: false });
  // A reader who has left or is too slow ends the stream with an error, too, and needs no cause in the log.
  pieces.once("error", (cause) => (slow.aborted || response.destroyed ? undefined : breakOff(cause)));
  await pipeline(pieces, response, { signal: slow }).catch(() => response.destroy());
}
