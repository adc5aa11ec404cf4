import type { EventEmitter } from "node:events";
import type { Logger } from "pino";

/** While Redis is unreachable, each connection fails every second. One line per interval is enough. */
const EVERY_MS = 30_000;

/** Logs an emitter's errors: the first at once, then at most one per half minute, with the number that was omitted. */
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
    quietUntil = now + EVERY_MS;
    leftOut = 0;
  };
  emitter.on("error", report);
  // Of one node of a Redis Cluster.
  emitter.on("node error", report);
}
