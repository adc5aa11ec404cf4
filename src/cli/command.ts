import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { replaceNames } from "../acts/list-catalog.ts";
import { type AdminContext, openAdminContext } from "../acts/open-acts.ts";
import { type AuditedCommand, auditedCommand } from "../acts/with-audit-entry.ts";
import { AppError } from "../platform/api/errors.ts";
import { type Config, readQueueShards } from "../platform/config.ts";
import { isDatabaseAway } from "../platform/db/transaction.ts";
import { openLogger } from "../platform/logger.ts";
import type { QueueSettings } from "../platform/queues/queue-settings.ts";
import { CommitUnknown, EXIT, Interrupted } from "./exit-code.ts";
import { paintError, paintHelp } from "./format.ts";
import { collectProblems, flag, type OptionOf, type OptionProblems, type OptionValues } from "./options.ts";
import { NO_PROGRESS, openProgress, type Progress } from "./progress.ts";

/** One noun of `voucherctl`, such as `key`. */
export interface Noun {
  name: string;
  description: string;
  /** The noun's verbs with their arguments, such as `revoke <id>`. */
  verbs: Record<string, Verb>;
}

/** Defines a command's options, help and action. */
export type Verb = (command: Command, host: Host) => void;

/** What the program provides to its commands. */
export interface Host {
  /** All queues of the service. */
  queues: readonly QueueSettings[];
  /** The SQL files with the database rights of the optional features (wings). */
  grants: readonly URL[];
  /** The environment. Defaults: the running `npm start`'s variables and address, the transparency log's variables. */
  readEnvironment(): NodeJS.ProcessEnv;
  /** The servers that the environment names, or the started embedded ones. @throws ServersUnavailable */
  useServers(): Promise<UsedServers>;
}

interface UsedServers extends Pick<CommandContext, "databaseUrl" | "redisUrl" | "env"> {
  release(): Promise<void>;
}

interface VerbOf<Context, Options> {
  description: string;
  /** An argument for `--help`, and its parser. One without a description can stand in the verb's name: `show <id>`. */
  argument?: [name: string, description: string, read?: (text: string) => unknown];
  /** The options by their names in camel case, in the order of `--help`. */
  options?: Options;
  /** More text for `--help`. */
  help?: string;
  /** Arguments after the noun and the verb, one text per example. By default, one example without arguments. */
  examples?: readonly string[];
  /** Finds problems between options, even if some are invalid. The command reports all problems at once. */
  findFurtherProblems?(options: Record<string, unknown>, problems: OptionProblems): string[];
  run(ctx: Context, options: OptionValues<Options>, ...args: string[]): Promise<void>;
}

/** How a command communicates with its user. */
export interface Interaction {
  host: Host;
  audited: AuditedCommand;
  /** Aborted by Ctrl-C and SIGTERM. A long command then has five seconds to clean up. Ignores further signals. */
  signal: AbortSignal;
  /** Prints the result: the object with --json, and otherwise the text. */
  print(result: object, text: () => string): void;
  /** Prints what users usually do next to standard error, unless --json is given. */
  next(step: string): void;
  /** Prints a sentence to standard error, unless --json is given. */
  note(sentence: string): void;
  /** Prints a warning to standard error, unless --json is given. */
  warn(sentence: string): void;
  /** Asks a yes-or-no question on a terminal. Returns null without a terminal or with --json. */
  confirm(question: string): Promise<boolean | null>;
  /** Opens a progress line on a terminal without --json. The line is removed when the command ends. */
  progress(verb: string, noun: string, total: number): Progress;
}

/** The context of a command that uses the servers. */
export interface CommandContext extends AdminContext, Interaction {
  databaseUrl: string;
  /** Null if no Redis is configured. */
  redisUrl: string | null;
  /** The value of QUEUE_SHARDS. It must be the same as in the API processes and workers. */
  queueShards: Config["queueShards"];
  /** The environment. With embedded servers, includes the settings of webhooks and of the running `npm start`. */
  env: NodeJS.ProcessEnv;
}

type Options = Record<string, OptionOf<unknown>>;

/**
 * A verb that uses the servers. `--org`, `--brand` and `--product` may be names. A wrong command line is refused before
 * the command connects to a server.
 */
export function verb<Given extends Options>(spec: VerbOf<CommandContext, Given>): Verb {
  return verbWithoutServers<Given>({
    ...spec,
    run: (interaction, options, ...args) =>
      withServers(interaction, async (ctx) => spec.run(ctx, await replaceNames(ctx.pool, options), ...args)),
  });
}

/** A verb that needs no server. */
export function verbWithoutServers<Given extends Options>(spec: VerbOf<Interaction, Given>): Verb {
  return (command, host) => {
    const { description, argument, options = {}, help, examples = [""], run } = spec;
    const problems: OptionProblems = new Map();
    command.description(description);
    if (argument !== undefined) command.argument(argument[0], argument[1], argument[2] ?? String);
    for (const [key, { build }] of Object.entries({ ...options, json: JSON_ONLY })) {
      const built = build(`--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
      command.addOption(collectProblems(built, problems));
    }
    command.hook("preAction", () => {
      const empty = command.registeredArguments.filter((_, place) => command.args[place] === "");
      const given = empty.map((one) => `Argument '${one.name()}' must not be empty.`);
      const found = [...given, ...problems.values(), ...(spec.findFurtherProblems?.(command.opts(), problems) ?? [])];
      if (found.length > 0) command.error(found.join("\n"));
    });
    if (help !== undefined) command.addHelpText("after", `\n${help}`);
    const lines = examples.map((example) => formatExample(`${nameOf(command)} ${example}`.trimEnd()));
    command.addHelpText("after", `\n${paintHelp("bold", "Examples:")}\n${lines.join("\n")}`);
    command.action(async (...given: unknown[]) => {
      // In a container, a process does not know which person started it, or on which machine.
      const by = { user: process.env.VOUCHERCTL_USER, host: process.env.VOUCHERCTL_HOST };
      const name = `${command.parent?.name()} ${command.name()}`;
      const audited = auditedCommand(name, argumentsOf(command), by);
      const [values, args] = [given.at(-2) as OptionValues<Given> & { json?: true }, given.slice(0, -2) as string[]];
      const { end, ...interaction } = interact(audited, values.json === true);
      try {
        await run({ ...interaction, host }, values, ...args);
      } catch (error) {
        throw audited.mayHaveWritten && isDatabaseAway(error)
          ? new CommitUnknown(CHECK_OUTCOME, { cause: error })
          : error;
      } finally {
        end();
      }
    });
  };
}

const JSON_ONLY = flag("print one JSON object and nothing else");

function interact(audited: AuditedCommand, json: boolean): Omit<Interaction, "host"> & { end(): void } {
  const signal = abortOnSignal(audited);
  let progress = NO_PROGRESS;
  const note = (sentence: string) => void (json || process.stderr.write(`${sentence}\n`));
  return {
    audited,
    signal,
    print(result, text) {
      progress.end();
      console.log(json ? JSON.stringify(result) : text());
    },
    next(step) {
      if (!json) process.stderr.write(`${paintError("dim", `Next: ${step}`)}\n`);
    },
    note,
    warn: (sentence) => note(`Warning: ${sentence}`),
    confirm: async (question) => (json ? null : askOnTerminal(question, signal)),
    progress(...work) {
      if (!json && process.stderr.isTTY) progress = openProgress(process.stderr, ...work);
      return progress;
    },
    end: () => progress.end(),
  };
}

/** Asks for y or n. Other input, or its end, means no. Null when standard input or standard error is not a terminal. */
async function askOnTerminal(question: string, signal: AbortSignal): Promise<boolean | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  // `terminal: false`, because otherwise readline would read Ctrl-C as a key, and no signal would be sent.
  const reader = createInterface({ input: process.stdin, output: process.stderr, terminal: false });
  try {
    const ended = once(reader, "close").then(() => "");
    const answer = await Promise.race([reader.question(`${question} [y/N] `, { signal }), ended]);
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    reader.close();
  }
}

/** Asks whether to continue before something is lost. Does not ask without a terminal, or with `--yes` or `--json`. */
export async function confirmLoss(ctx: Interaction, yes: true | undefined, loss: string): Promise<void> {
  if (!yes && (await ctx.confirm(`${loss} Continue?`)) === false) {
    throw new AppError("invalid_request", "Nothing was changed.");
  }
}

/** Maximum width of an example line, in columns. */
const EXAMPLE_COLUMNS = 80;

/** An example to paste into a shell. Lines that are too long are broken before options. */
function formatExample(example: string): string {
  const lines: string[] = [];
  for (const part of example.split(/ (?=--)/)) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(`  ${part}`);
    else if (last.length + part.length + " ".length + " \\".length > EXAMPLE_COLUMNS) lines.push(`    ${part}`);
    else lines[lines.length - 1] = `${last} ${part}`;
  }
  return lines.join(" \\\n");
}

/** Runs `run` with connections to the servers. */
export async function withServers(
  interaction: Interaction,
  run: (ctx: CommandContext) => Promise<void>,
): Promise<void> {
  const { databaseUrl, redisUrl, env, release } = await interaction.host.useServers();
  const admin = openAdminContext(databaseUrl, openLogger("fatal", "voucherctl"));
  try {
    interaction.signal.throwIfAborted();
    await run({ ...admin, ...interaction, databaseUrl, redisUrl, env, queueShards: readQueueShards(env) });
  } finally {
    await admin.close();
    await release();
  }
}

/** A command as users type it: `voucherctl key create`. */
export function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

/** A command's arguments for its audit entry, without voucher codes and without `--json`. */
function argumentsOf(command: Command): Record<string, unknown> {
  const { json, ...options } = command.opts();
  const named = command.registeredArguments.map((argument, index) => [argument.name(), command.args[index]]);
  return { ...Object.fromEntries(named.filter(([name]) => name !== "code")), ...options };
}

/** What to do when a command that writes was stopped midway. */
const CHECK_OUTCOME = "Run voucherctl audit list to see whether anything was done.";

/** Maximum time from a signal to the exit of the process. Milliseconds. */
const CLEAN_UP_MAX_MS = 5_000;

function giveUp({ mayHaveWritten }: AuditedCommand): never {
  const next = mayHaveWritten ? `${CHECK_OUTCOME}\n` : "";
  process.stderr.write(`Interrupted. The command did not end within five seconds and was stopped.\n${next}`);
  process.exit(EXIT.unavailable);
}

function abortOnSignal(audited: AuditedCommand): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      // Ignores a second signal. One Ctrl-C can arrive twice: the terminal signals the whole process group, and npm
      // forwards its own signal.
      if (controller.signal.aborted) return;
      controller.abort(new Interrupted(signal));
      setTimeout(giveUp, CLEAN_UP_MAX_MS, audited).unref();
    });
  }
  return controller.signal;
}
