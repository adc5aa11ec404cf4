import { constants } from "node:os";

/** What a command's exit tells whoever called it, beside 0. The numbers above 2 are those of sysexits(3). */
export const EXIT = {
  /** It was refused, or a chain is broken. */
  refused: 1,
  usage: 2,
  /** EX_UNAVAILABLE: the database does not answer, or the embedded servers do not start. */
  unavailable: 69,
  /** EX_SOFTWARE: a fault of the program. */
  fault: 70,
  /** EX_CONFIG: the environment or the database is not set up. */
  config: 78,
} as const;

/** The exit codes as `--help` lists them. */
export const EXIT_HELP = `Exit status:
  0    done
  1    refused, and nothing was changed; or a chain is broken
  2    the command was typed wrong
  69   the database does not answer, or the embedded servers do not start
  70   a fault of this program
  78   a variable is missing or wrong, or the database is not migrated
  130  interrupted, and nothing was changed (143 by SIGTERM)`;

/** The command was typed in a way that no option can tell by itself. */
export class UsageError extends Error {}

/** The embedded servers could not be started; the message says why, and what to do. */
export class ServersUnavailable extends Error {}

/** A signal ended the command, which left nothing half done. */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: "SIGINT" | "SIGTERM") {
    super("Interrupted.");
    this.exitCode = 128 + constants.signals[signal];
  }
}
