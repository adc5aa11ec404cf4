import { type DestinationStream, destination, type Logger, pino, stdSerializers } from "pino";

/** Buffered lines are written at once when they reach this total size. Bytes. */
const BUFFER_MAX_BYTES = 16_000;

/** Opens a logger of JSON lines. Leaves out an error's `detail` and `where` from Postgres, which may contain callers' values. */
export function openLog(level: string, role: string): Logger {
  standardOutput ??= openStandardOutput();
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
    standardOutput,
  );
}

/** Shared by all loggers of the process so that their lines keep their order. */
let standardOutput: DestinationStream | undefined;

/** Buffers lines and writes them once per turn of the event loop, and when the process exits. */
function openStandardOutput(): DestinationStream {
  const output = destination({ dest: 1, sync: true, minLength: BUFFER_MAX_BYTES });
  let isFlushScheduled = false;
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
      if (isFlushScheduled) return;
      isFlushScheduled = true;
      setImmediate(() => {
        isFlushScheduled = false;
        output.flush();
      });
    },
  };
}
