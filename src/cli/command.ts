import type { Command } from "commander";
import { type AdminContext, openAdminContext } from "../admin-context.ts";
import { readGivenServers } from "../config.ts";
import { openLog } from "../log.ts";
import { type Act, actBy } from "../services/record-act.ts";
import { Interrupted, ServersUnavailable } from "./exit-code.ts";
import { paintHelp } from "./paint.ts";
import { NO_PROGRESS, openProgress, type Progress } from "./progress.ts";

/** How a command talks to whoever called it. */
export interface Conversation {
  /** Aborted by Ctrl-C and SIGTERM: a long command stops and cleans up. A second one ends the process at once. */
  signal: AbortSignal;
  /** Prints the result: the object with --json, else the words, which are made only then. */
  print(result: object, words: () => string | Promise<string>): Promise<void>;
  /** Opens a line that shows how far a long command is; on a terminal only, and not with --json. It ends with the command at the latest. */
  progress(verb: string, noun: string, total: number): Progress;
}

/** What a command that works on the servers is given. */
export interface CommandContext extends AdminContext, Conversation {
  /** What the rows of this command's acts say about it. */
  act: Act;
  databaseUrl: string;
  /** Where seal jobs go; null when no Redis is known. */
  redisUrl: string | null;
}

/**
 * Gives a command its action, `--json` and its examples, which are shown as they are typed behind `voucherctl`. The action gets a
 * context that is closed afterwards; its connections write through `recordAct` alone.
 */
export function action<Options>(
  command: Command,
  examples: readonly string[],
  run: (ctx: CommandContext, options: Options, ...args: string[]) => Promise<void>,
): void {
  converse<Options>(command, examples, (conversation, options, ...args) =>
    withServers(command, conversation, (ctx) => run(ctx, options, ...args)),
  );
}

/** The same for a command that needs no server. */
export function serverlessAction<Options>(
  command: Command,
  examples: readonly string[],
  run: (conversation: Conversation, options: Options) => Promise<void>,
): void {
  converse(command, examples, run);
}

function converse<Options>(
  command: Command,
  examples: readonly string[],
  run: (conversation: Conversation, options: Options, ...args: string[]) => Promise<void>,
): void {
  command
    .option("--json", "print one JSON object and nothing else")
    .addHelpText("after", `\n${paintHelp("bold", "Examples:")}\n${examples.map(layExample).join("\n")}`)
    .action(async (...given: unknown[]) => {
      const args = given.slice(0, -2) as string[];
      const options = given.at(-2) as Options & { json?: boolean };
      const json = options.json === true;
      let progress = NO_PROGRESS;
      try {
        await run(
          {
            signal: abortOnSignal(),
            async print(result, words) {
              progress.end();
              console.log(json ? JSON.stringify(result) : await words());
            },
            progress(...work) {
              if (!json && process.stderr.isTTY) progress = openProgress(process.stderr, ...work);
              return progress;
            },
          },
          options,
          ...args,
        );
      } finally {
        progress.end();
      }
    });
}

/** Columns of the narrowest terminal that examples must fit on. */
const EXAMPLE_COLUMNS = 80;

/** An example as it can be pasted, broken before an option where it would not fit on a line. */
function layExample(example: string): string {
  const lines: string[] = [];
  for (const part of `voucherctl ${example}`.split(/ (?=--)/)) {
    const last = lines.at(-1);
    if (last === undefined) lines.push(`  ${part}`);
    else if (last.length + part.length + " ".length + " \\".length > EXAMPLE_COLUMNS) lines.push(`    ${part}`);
    else lines[lines.length - 1] = `${last} ${part}`;
  }
  return lines.join(" \\\n");
}

async function withServers(
  command: Command,
  conversation: Conversation,
  run: (ctx: CommandContext) => Promise<void>,
): Promise<void> {
  const servers = await useServers();
  const admin = openAdminContext(servers.databaseUrl, openLog("fatal", "voucherctl"));
  try {
    conversation.signal.throwIfAborted();
    await run({
      ...admin,
      ...conversation,
      act: actBy(`${command.parent?.name()} ${command.name()}`, argumentsOf(command)),
      databaseUrl: servers.databaseUrl,
      redisUrl: servers.redisUrl,
    });
  } finally {
    await admin.close();
    await servers.release();
  }
}

/** What a command was given, as its act is to tell it: everything but vouchers' codes, and how the answer is printed. */
function argumentsOf(command: Command): Record<string, unknown> {
  const { json, ...options } = command.opts();
  const named = command.registeredArguments.map((argument, index) => [argument.name(), command.args[index]]);
  return { ...Object.fromEntries(named.filter(([name]) => name !== "code")), ...options };
}

interface Servers {
  databaseUrl: string;
  redisUrl: string | null;
  release(): Promise<void>;
}

async function useServers(): Promise<Servers> {
  const { databaseUrl, redisUrl } = readGivenServers(process.env);
  if (databaseUrl !== null) return { databaseUrl, redisUrl, release: async () => undefined };
  const { chooseServers } = await import("../local/choose-servers.ts");
  const servers = await chooseServers({ databaseUrl, redisUrl }, (line) => console.error(line)).catch(
    (error: Error) => {
      throw new ServersUnavailable(error.message, { cause: error });
    },
  );
  const { migrateDatabase } = await import("../db/migrate.ts");
  await migrateDatabase(servers.databaseUrl);
  return servers;
}

function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      const interruption = new Interrupted(signal);
      if (controller.signal.aborted) process.exit(interruption.exitCode);
      controller.abort(interruption);
    });
  }
  return controller.signal;
}
