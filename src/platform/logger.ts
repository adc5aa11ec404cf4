import { constants, fstatSync, openSync } from "node:fs";
import { type DestinationStream, destination, type Logger, pino, stdSerializers } from "pino";

/** When the buffered lines reach this size, they are written at once. Bytes. */
const BUFFER_MIN_BYTES = 16_000;
/** Maximum size of the lines that wait for the output: some seconds of a busy process. Bytes. */
const BUFFER_MAX_BYTES = 4 * 1_024 * 1_024;
/** Pause before the next attempt at an output that accepted nothing. Milliseconds. */
const TRY_AGAIN_MS = 100;
/** Maximum time that an exiting process waits until its output accepts the last lines. Milliseconds. */
const EXIT_MAX_MS = 500;

/** Opens a logger of JSON lines. Omits `detail` and `where` of Postgres errors, which may contain callers' values. */
export function openLogger(level: string, role: string): Logger {
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

/** The number of lines of this process that could not be written and were dropped. */
export const droppedLines = (): number => dropped;

let dropped = 0;

/** Returns a file descriptor of standard output. Where possible, writes fail instead of waiting for a slow reader. */
function openWithoutWaiting(): number {
  try {
    const output = fstatSync(1);
    // Opens the output a second time, because a changed mode would also apply to other processes with the same output.
    if (output.isFIFO() || output.isCharacterDevice())
      return openSync("/proc/self/fd/1", constants.O_WRONLY | constants.O_NONBLOCK);
  } catch {
    // Falls back to the usual output: this system is not Linux, or the output belongs to another user.
  }
  // Reading this property opens the stream. For a socket or a pipe, Node then sets the output's mode so that writes do
  // not wait. The mode applies to every process with this output, until this process ends.
  void process.stdout;
  return 1;
}

/**
 * Buffers lines and writes them once per turn of the event loop, and when the process exits. If the output's reader has
 * stopped or the disk is full, lines wait in a buffer of limited size, and further lines are dropped and counted. So no
 * call ever waits for the log.
 */
function openStandardOutput(): DestinationStream {
  const fd = openWithoutWaiting();
  const bounds = { minLength: BUFFER_MIN_BYTES, maxLength: BUFFER_MAX_BYTES };
  const output = destination({ dest: fd, sync: true, ...bounds, retryEAGAIN: () => false });
  let pendingBytes = 0;
  let isFlushScheduled = false;
  /** The error of the last attempt. Reset when the next attempt begins. */
  let failure: NodeJS.ErrnoException | null = null;
  const flush = () => {
    failure = null;
    output.flush();
  };
  output.on("write", (bytes: number) => {
    pendingBytes -= bytes;
  });
  output.on("drop", () => {
    dropped += 1;
  });
  output.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") pendingBytes = 0;
    else if (failure === null) setTimeout(flush, TRY_AGAIN_MS).unref();
    failure = error;
  });
  process.once("exit", () => {
    const giveUpAt = performance.now() + EXIT_MAX_MS;
    while (pendingBytes > 0 && performance.now() < giveUpAt) {
      flush();
      // Gives a slow reader a moment to accept the last lines.
      if (failure !== null) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    }
  });
  return {
    write(line) {
      const before = dropped;
      output.write(line);
      if (dropped === before) pendingBytes += Buffer.byteLength(line);
      if (isFlushScheduled || failure !== null) return;
      isFlushScheduled = true;
      setImmediate(() => {
        isFlushScheduled = false;
        if (failure === null) flush();
      });
    },
  };
}
