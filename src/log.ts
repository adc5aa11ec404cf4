import { type DestinationStream, destination, type Logger, pino, stdSerializers } from "pino";

/** Lines that wait for the end of a turn are written at once when they are this long together, in bytes. */
const TURN_MAX_BYTES = 16_000;

/**
 * A logger that writes one JSON object a line to standard output. Of an error it keeps what tells the fault and drops what
 * may hold a caller's values: Postgres puts them into `detail` and `where`.
 */
export function openLog(level: string, role: string): Logger {
  return pino(
    {
      level,
      base: { role, pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      serializers: {
        err: (error: unknown) => {
          if (!(error instanceof Error)) return { message: "something other than an Error was thrown" };
          const { type, message, stack } = stdSerializers.err(error);
          const { code, constraint, table } = error as { code?: string; constraint?: string; table?: string };
          return { type, message, code, constraint, table, stack };
        },
      },
      redact: {
        paths: ["key", "token", "ticket", "code", "secret"],
        censor: "[redacted]",
      },
    },
    standardOutput(),
  );
}

let opened: DestinationStream | undefined;

/** Standard output, which is one of a process: lines of all its loggers keep their order. */
function standardOutput(): DestinationStream {
  opened ??= openStandardOutput();
  return opened;
}

/** Written to once in a turn of the event loop, however many requests end in it, and before the process does. */
function openStandardOutput(): DestinationStream {
  const output = destination({ dest: 1, sync: true, minLength: TURN_MAX_BYTES });
  let isDue = false;
  process.once("exit", () => {
    try {
      output.flushSync();
    } catch {
      // Whoever read it is gone.
    }
  });
  return {
    write(line) {
      output.write(line);
      if (isDue) return;
      isDue = true;
      setImmediate(() => {
        isDue = false;
        output.flush();
      });
    },
  };
}
