import type { EventEmitter } from "node:events";
import type { Logger } from "pino";

/** Minimum time between two log lines. While Redis is unreachable, each connection fails every second. Milliseconds. */
const INTERVAL_MS = 30_000;

/** Logs an emitter's errors: the first at once, then at most one per interval, with the number in between. */
export function logErrors(emitter: Pick<EventEmitter, "on">, log: Logger, what: string): void {
  let quietUntil = 0;
  let leftOut = 0;
  const report = (error: unknown) => {
    const now = performance.now();
    if (now < quietUntil) {
      leftOut += 1;
      return;
    }
    log.warn({ err: error, ...(leftOut > 0 && { leftOut }) }, what);
    quietUntil = now + INTERVAL_MS;
    leftOut = 0;
  };
  emitter.on("error", report);
  // An error of one node of a Redis Cluster.
  emitter.on("node error", report);
}
