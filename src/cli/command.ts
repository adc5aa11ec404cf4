import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { type Config, readGivenServers, readQueueShards, readWebhookConfig } from "../config.ts";
import { isDatabaseUnavailable } from "../db/transaction.ts";
import { openLog } from "../log.ts";
import { type AdminContext, openAdminContext } from "../open-command.ts";
import { replaceNames } from "../services/admin/list-catalog.ts";
import { type AuditedCommand, auditedCommand } from "../services/audit/with-audit-entry.ts";
import { EXIT, Interrupted, OutcomeUnknown, ServersUnavailable } from "./exit-code.ts";
import { paintError, paintHelp } from "./paint.ts";
import { NO_PROGRESS, openProgress, type Progress } from "./progress.ts";

/** One noun of `voucherctl`, such as `key`. */
export interface Noun {
  name: string;
  description: string;
  /** Adds the verbs, such as `create`, to the noun's command. */
  addVerbs(noun: Command): void;
}

/** How a command communicates with its caller. */
export interface Interaction {
  /** How audit entries describe this command. */
  audited: AuditedCommand;
  /** Aborted by Ctrl-C and SIGTERM: a long command stops and cleans up within five seconds. Further signals have no effect. */
  signal: AbortSignal;
  /** Prints the result: the object with --json, otherwise the text. */
  print(result: object, text: () => string): void;
  /** Prints what usually comes next to standard error, except with --json. */
  next(step: string): void;
  /** Warns on standard error, except with --json. */
  warn(sentence: string): void;
  /** Asks a question on a terminal. Null without a terminal or with --json. */
  confirm(question: string): Promise<boolean | null>;
  /** Opens a progress line if standard error is a terminal and --json is not given. The line is removed when the command ends. */
  progress(verb: string, noun: string, total: number): Progress;
}

/** The context of a command that uses the servers. */
export interface CommandContext extends AdminContext, Interaction {
  databaseUrl: string;
  /** Null when no Redis is configured. */
  redisUrl: string | null;
  /** The value of QUEUE_SHARDS, which must be that of the API processes and workers. */
  queueShards: Config["queueShards"];
  /** Reads the settings of webhooks. @throws ConfigError when they are invalid. */
  readWebhookConfig(): Config["webhooks"];
}

/** Gives a command its action, `--json` and examples. `--org`, `--brand` and `--product` may be names. */
export function action<Options>(
  command: Command,
  examples: readonly string[],
  run: (ctx: CommandContext, options: Options, ...args: string[]) => Promise<void>,
): void {
  actionWithoutServers<Options>(command, examples, (interaction, options, ...args) =>
    withServers(interaction, async (ctx) =>
      run(ctx, await replaceNames(ctx.pool, options as Options & object), ...args),
    ),
  );
}

/** As {@link action}, for a command that needs no server. */
export function actionWithoutServers<Options>(
  command: Command,
  examples: readonly string[],
  run: (interaction: Interaction, options: Options, ...args: string[]) => Promise<void>,
): void {
  command
    .option("--json", "print one JSON object and nothing else")
    .addHelpText("after", `\n${paintHelp("bold", "Examples:")}\n${examples.map(formatExample).join("\n")}`)
    .action(async (...given: unknown[]) => {
      const args = given.slice(0, -2) as string[];
      const options = given.at(-2) as Options & { json?: boolean };
      const json = options.json === true;
      let progress = NO_PROGRESS;
      const audited = auditedCommand(`${command.parent?.name()} ${command.name()}`, argumentsOf(command), {
        // A container does not know who has started it, or where.
        user: process.env.VOUCHERCTL_USER,
        host: process.env.VOUCHERCTL_HOST,
      });
      const signal = abortOnSignal(audited);
      try {
        await run(
          {
            audited,
            signal,
            print(result, text) {
              progress.end();
              console.log(json ? JSON.stringify(result) : text());
            },
            next(command) {
              if (!json) process.stderr.write(`${paintError("dim", `Next: ${command}`)}\n`);
            },
            warn(sentence) {
              if (!json) process.stderr.write(`Warning: ${sentence}\n`);
            },
            async confirm(question) {
              return json ? null : askOnTerminal(question, signal);
            },
            progress(...work) {
              if (!json && process.stderr.isTTY) progress = openProgress(process.stderr, ...work);
              return progress;
            },
          },
          options,
          ...args,
        );
      } catch (error) {
        throw audited.mayHaveWritten && isDatabaseUnavailable(error)
          ? new OutcomeUnknown(CHECK_OUTCOME, { cause: error })
          : error;
      } finally {
        progress.end();
      }
    });
}

/** Asks for y or n. Any other input, or its end, means no. Null when standard input or standard error is not a terminal. */
async function askOnTerminal(question: string, signal: AbortSignal): Promise<boolean | null> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
  // With `terminal: true`, readline would read Ctrl-C as a key, and no signal would be sent.
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

/** Columns that examples must fit in. */
const EXAMPLE_COLUMNS = 80;

/** An example that can be pasted into a shell, broken before options where it would be too wide. */
function formatExample(example: string): string {
  const lines: string[] = [];
  for (const part of `voucherctl ${example}`.split(/ (?=--)/)) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(`  ${part}`);
    else if (last.length + part.length + " ".length + " \\".length > EXAMPLE_COLUMNS) lines.push(`    ${part}`);
    else lines[lines.length - 1] = `${last} ${part}`;
  }
  return lines.join(" \\\n");
}

/** Runs a part of a command that uses the servers. */
export async function withServers(
  interaction: Interaction,
  run: (ctx: CommandContext) => Promise<void>,
): Promise<void> {
  const servers = await useServers();
  const admin = openAdminContext(servers.databaseUrl, openLog("fatal", "voucherctl"));
  try {
    interaction.signal.throwIfAborted();
    await run({
      ...admin,
      ...interaction,
      databaseUrl: servers.databaseUrl,
      redisUrl: servers.redisUrl,
      queueShards: readQueueShards(process.env),
      readWebhookConfig: () => readWebhookConfig({ ...servers.webhookEnv, ...process.env }),
    });
  } finally {
    await admin.close();
    await servers.release();
  }
}

/** A command's arguments for its audit entry, without voucher codes and without `--json`. */
function argumentsOf(command: Command): Record<string, unknown> {
  const { json, ...options } = command.opts();
  const named = command.registeredArguments.map((argument, index) => [argument.name(), command.args[index]]);
  return { ...Object.fromEntries(named.filter(([name]) => name !== "code")), ...options };
}

interface Servers {
  databaseUrl: string;
  redisUrl: string | null;
  /** The settings of webhooks that `npm start` uses for the embedded servers. */
  webhookEnv: Record<string, string>;
  release(): Promise<void>;
}

async function useServers(): Promise<Servers> {
  const { databaseUrl, redisUrl } = readGivenServers(process.env);
  if (databaseUrl !== null) return { databaseUrl, redisUrl, webhookEnv: {}, release: async () => undefined };
  const { chooseServers, webhookEnvOf } = await import("../local/choose-servers.ts");
  const servers = await chooseServers({ databaseUrl, redisUrl }, (line) => console.error(line)).catch(
    (error: Error) => {
      throw new ServersUnavailable(error.message, { cause: error });
    },
  );
  const { migrateDatabase } = await import("../db/migrate.ts");
  await migrateDatabase(servers.databaseUrl, { onWait: (message) => console.error(message) });
  return { ...servers, webhookEnv: webhookEnvOf(servers) };
}

/** What to do when a command that writes ended in its middle. */
const CHECK_OUTCOME = "Run voucherctl audit list to see whether anything was done.";

/** Longest time from a signal to the end of the process. Milliseconds. */
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
      // One Ctrl-C can arrive twice: the terminal signals the whole process group, and npm forwards its own signal.
      if (controller.signal.aborted) return;
      controller.abort(new Interrupted(signal));
      setTimeout(giveUp, CLEAN_UP_MAX_MS, audited).unref();
    });
  }
  return controller.signal;
}
