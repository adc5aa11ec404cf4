import type { Logger } from "pino";
import { type Config, ConfigError, type readConfig } from "./config.ts";

/** Time from the first signal to the end of the process, whatever is still under way. Milliseconds. */
const DRAIN_MAX_MS = 15_000;

/** Reads the configuration from the process's environment; with a bad one, prints what is wrong and ends the process. */
export function configureProcess(read: typeof readConfig): Config {
  try {
    return read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(78); // EX_CONFIG of sysexits(3)
  }
}

/**
 * Runs `drain` at the first SIGTERM or SIGINT and ends the process when it is done. A second signal, or 15 seconds, end it at
 * once.
 */
export function drainOnSignal(log: Logger, drain: () => Promise<void>): void {
  let draining = false;
  const end = (signal: string) => {
    if (draining) {
      log.warn({ signal }, "ended before everything was finished");
      process.exit(1);
    }
    draining = true;
    log.info({ signal }, "draining");
    setTimeout(end, DRAIN_MAX_MS, "timeout").unref();
    drain().then(
      () => {
        log.info("drained");
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ err: error }, "draining failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  // A process that was started with a channel to its parent ends with its parent.
  process.on("disconnect", () => end("disconnect"));
}
