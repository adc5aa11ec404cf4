import type { Logger } from "pino";
import { type Config, ConfigError } from "./config.ts";
import type { Closable } from "./lifetime.ts";

/** Maximum time from the first signal to the end of the process. Milliseconds. */
export const CLOSE_MAX_MS = 15_000;
/**
 * Signals within this time count as one. A single Ctrl-C arrives twice: the terminal signals the whole process group,
 * and npm forwards its own signal. Milliseconds.
 */
const ONE_SIGNAL_MS = 2_000;

/** Reads the configuration of the process. If the environment is invalid, prints the reasons and exits. */
export function configureProcess(read: (env: NodeJS.ProcessEnv) => Config): Config {
  try {
    return read(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    failStart(error);
  }
}

/** Prints why the process cannot start, and exits, with status 78 (EX_CONFIG) for an invalid environment. */
export function failStart(error: unknown): never {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(error instanceof ConfigError ? 78 : 1);
}

/**
 * At SIGTERM, SIGINT or the end of the parent, closes `open` and exits. Exits at once on a second signal, or after
 * {@link CLOSE_MAX_MS}. If `mustEnd` resolves with a reason, closes `open` and exits with status 1, so that a
 * supervisor restarts the process.
 */
export function closeOnSignal(log: Logger, open: Closable, mustEnd?: Promise<string>): void {
  let closingSince: number | null = null;
  let exitCode = 0;
  const end = (signal: string) => {
    if (closingSince !== null) {
      if (performance.now() - closingSince < ONE_SIGNAL_MS) return;
      log.warn({ signal }, "exiting before everything was closed");
      process.exit(1);
    }
    closingSince = performance.now();
    log.info({ signal }, "draining");
    setTimeout(end, CLOSE_MAX_MS, "timeout").unref();
    open.close().then(
      () => {
        log.info("drained");
        process.exit(exitCode);
      },
      (error: unknown) => {
        log.error({ err: error }, "draining failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  // The IPC channel to the parent closes when the parent ends. Only `npm start` opens such a channel.
  process.on("disconnect", () => end("disconnect"));
  void mustEnd?.then((reason) => {
    exitCode = 1;
    end(reason);
  });
}
