import type { EventEmitter } from "node:events";
import type { Logger } from "pino";

/** While Redis is away each connection fails again every second; one line in so many milliseconds says as much. */
const EVERY_MS = 30_000;

/**
 * Logs the errors of a connection or of something that has one: the first at once, then at most one every half minute with how
 * many were left out.
 */
export function logErrors(emitter: Pick<EventEmitter, "on">, log: Logger, what: string): void {
  let quietUntil = 0;
  let leftOut = 0;
  emitter.on("error", (error: unknown) => {
    const now = performance.now();
    if (now < quietUntil) {
      leftOut += 1;
      return;
    }
    log.warn({ err: error, ...(leftOut > 0 && { leftOut }) }, what);
    quietUntil = now + EVERY_MS;
    leftOut = 0;
  });
}
