import type { Logger } from "pino";
import { type Config, ConfigError, type readConfig } from "./config.ts";

/** Longest time from the first signal to the end of the process. Milliseconds. */
export const DRAIN_MAX_MS = 15_000;

/** Reads the configuration from the process's environment. If it is invalid, prints the reasons and exits. */
export function configureProcess(read: typeof readConfig): Config {
  try {
    return read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(78); // EX_CONFIG of sysexits(3)
  }
}

/** Runs `drain` at SIGTERM, SIGINT or the end of the parent, and exits. Exits at once on a second signal or after {@link DRAIN_MAX_MS}. */
export function drainOnSignal(log: Logger, drain: () => Promise<void>): void {
  let draining = false;
  const end = (signal: string) => {
    if (draining) {
      log.warn({ signal }, "exiting before the drain finished");
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
  // The IPC channel to the parent has closed. `npm start` opens one.
  process.on("disconnect", () => end("disconnect"));
}
