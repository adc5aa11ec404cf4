import { type DestinationStream, destination, type Logger, pino, stdSerializers } from "pino";

/** Buffered lines are written before the end of a turn once they are this long together, in bytes. */
const TURN_MAX_BYTES = 16_000;

/** Opens a logger of JSON lines. Omits what may hold callers' values in an error: Postgres's `detail` and `where`. */
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

/** Standard output, shared by all loggers of the process so that their lines keep their order. */
function standardOutput(): DestinationStream {
  opened ??= openStandardOutput();
  return opened;
}

/** Buffers lines and writes them once per turn of the event loop, and when the process exits. */
function openStandardOutput(): DestinationStream {
  const output = destination({ dest: 1, sync: true, minLength: TURN_MAX_BYTES });
  let isDue = false;
  process.once("exit", () => {
    try {
      output.flushSync();
    } catch {
      // The reader of standard output is gone.
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
