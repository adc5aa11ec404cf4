import { type Logger, pino, stdSerializers } from "pino";

/**
 * A logger that writes one JSON object a line to standard output. Of an error it keeps what tells the fault and drops what
 * may hold a caller's values: Postgres puts them into `detail` and `where`.
 */
export function openLog(level: string, role: string): Logger {
  return pino({
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
  });
}
