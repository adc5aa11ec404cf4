import { constants } from "node:os";

/** Exit statuses of commands, other than 0. Those above 2 are from sysexits(3). */
export const EXIT = {
  /**
   * The command was refused, or it found a fault: in a chain, the log, a receipt, a statement, a setting, a webhook
   * endpoint or a partner's client.
   */
  refused: 1,
  usage: 2,
  /** EX_UNAVAILABLE: a server does not answer or start, no standby confirms, or a migration cannot get a lock. */
  unavailable: 69,
  /** EX_SOFTWARE: a bug. */
  fault: 70,
  /** EX_CONFIG: the environment or the database is not set up. */
  config: 78,
} as const;

/** The exit codes as `--help` lists them. */
export const EXIT_HELP = `Exit status:
  0    done
  1    refused without changes; a chain, the log, a receipt or a statement is
       wrong; or db check found a risk
  2    the command line is wrong
  69   a server does not answer, no standby confirms what was done or read,
       the embedded servers do not start, or an interrupted command did not
       end within five seconds
  70   a bug in this program
  78   a variable is missing or wrong, the database is not migrated, or what a
       log monitor, a witness or an anchor has kept is damaged
  130  interrupted (143 after SIGTERM); batch void, person erase, erasure
       replay and commands on the log keep what they did`;

/** The command line or the environment breaks a rule that the parser of a single option does not check. */
export class UsageError extends Error {}

/** A server that the command needs does not answer or start. The message gives the reason. */
export class ServersUnavailable extends Error {}

/** The database stopped answering while the command wrote, so the outcome is unknown. The cause has the reason. */
export class CommitUnknown extends Error {}

/**
 * A signal ended the command. Commands that change many rows in steps, such as `batch void`, keep the changes that they
 * had already made.
 */
export class Interrupted extends Error {
  readonly exitCode: number;

  constructor(signal: "SIGINT" | "SIGTERM") {
    super("Interrupted.");
    this.exitCode = 128 + constants.signals[signal];
  }
}
