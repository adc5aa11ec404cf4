import pTimeout from "p-timeout";
import type { Logger } from "pino";

/** Reads a value. Returns the fallback if the read fails or takes longer than `milliseconds`. Never rejects. */
export async function inTime<T, F>(log: Logger, milliseconds: number, read: () => Promise<T>, fallback: F) {
  // Inside an async function, an error that `read` throws at once is handled too, such as that of an unknown deployment
  // id.
  return pTimeout((async () => read())(), { milliseconds }).catch((error): T | F => {
    log.debug({ err: error }, "a part cannot be read");
    return fallback;
  });
}
