import pTimeout from "p-timeout";
import type { Logger } from "pino";

/** Reads a part. Returns the fallback if the read fails or takes longer than `milliseconds`. Never rejects. */
export async function inTime<T, F>(log: Logger, milliseconds: number, read: () => Promise<T>, fallback: F) {
  // The read is called inside an async function, so that an error that it throws at once is handled too. Reading the id
  // of a deployment throws while the id is unknown.
  return pTimeout((async () => read())(), { milliseconds }).catch((error): T | F => {
    log.debug({ err: error }, "a part cannot be read");
    return fallback;
  });
}
