import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { type AdminContext, openAdminContext } from "../admin-context.ts";
import { readGivenServers } from "../config.ts";
import { openLog } from "../log.ts";
import { type Act, actBy } from "../services/record-act.ts";

/** What a command is given to work with. */
export interface CommandContext extends AdminContext {
  /** What the rows of this command's acts say about it. */
  act: Act;
  databaseUrl: string;
  /** Where seal jobs go; null when no Redis is known. */
  redisUrl: string | null;
  json: boolean;
  /** Aborted by Ctrl-C and SIGTERM: a long command stops and cleans up. A second one ends the process at once. */
  signal: AbortSignal;
  /** Prints the result: the object with --json, else the words. */
  print(result: object, words: string): void;
  /** Shows how far a long command is, on a terminal only. */
  progress(text: string): void;
}

/** Adds `--json` to a command and runs its action with a context that is closed afterwards. */
export function action<Options>(
  command: Command,
  run: (ctx: CommandContext, options: Options, ...args: string[]) => Promise<void>,
): Command {
  return command.option("--json", "print one JSON object and nothing else").action(async (...given: unknown[]) => {
    const args = given.slice(0, -2) as string[];
    const options = given.at(-2) as Options & { json?: boolean };
    const act = actBy(`${command.parent?.name()} ${command.name()}`, argumentsOf(command));
    await withContext(act, options.json === true, (ctx) => run(ctx, options, ...args));
  });
}

/** What a command was given, as its act is to tell it: everything but vouchers' codes, and how the answer is printed. */
function argumentsOf(command: Command): Record<string, unknown> {
  const { json, ...options } = command.opts();
  const named = command.registeredArguments.map((argument, index) => [argument.name(), command.args[index]]);
  return { ...Object.fromEntries(named.filter(([name]) => name !== "code")), ...options };
}

async function withContext(act: Act, json: boolean, run: (ctx: CommandContext) => Promise<void>): Promise<void> {
  const interruption = abortOnSignal();
  const servers = await useServers();
  const admin = openAdminContext(servers.databaseUrl, openLog("fatal", "voucherctl"));
  try {
    interruption.throwIfAborted();
    await run({
      ...admin,
      act,
      databaseUrl: servers.databaseUrl,
      signal: interruption,
      redisUrl: servers.redisUrl,
      json,
      print: (result, words) => console.log(json ? JSON.stringify(result) : words),
      progress: (text) => {
        if (!json && process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
      },
    });
  } finally {
    await admin.close();
    await servers.release();
  }
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
  const servers = await chooseServers({ databaseUrl, redisUrl }, (line) => console.error(line));
  const { migrateDatabase } = await import("../db/migrate.ts");
  await migrateDatabase(servers.databaseUrl);
  return servers;
}

function abortOnSignal(): AbortSignal {
  const controller = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"]) {
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(1);
      controller.abort(new Error("Interrupted."));
    });
  }
  return controller.signal;
}

/** Option parser: a moment in ISO 8601. A date alone is its midnight in UTC. */
export function isoDate(text: string): Date {
  if (!z.union([z.iso.datetime({ offset: true }), z.iso.date()]).safeParse(text).success) {
    throw new InvalidArgumentError("Give a moment like 2027-12-31T23:59:59Z, or a date.");
  }
  return new Date(text);
}

/** Option parser: a whole number from `min` to `max`. */
export function integer(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** Option parser: US dollars with at most two decimals. */
export function dollars(text: string): number {
  if (!/^\d{1,10}(\.\d{1,2})?$/.test(text)) throw new InvalidArgumentError("Give dollars like 19.90.");
  return Number(text);
}

const UNIT_MS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Option parser: a duration like 30m, 24h or 7d, in milliseconds. */
export function duration(text: string): number {
  const [, count, unit = ""] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNIT_MS[unit];
  if (count === undefined || unitMs === undefined)
    throw new InvalidArgumentError("Give a duration like 30m, 24h or 7d.");
  return Number(count) * unitMs;
}

/** Option parser: text that is not empty. */
export function name(text: string): string {
  const trimmed = text.trim();
  if (trimmed === "" || trimmed.length > 200 || /\p{Cc}/u.test(trimmed)) {
    throw new InvalidArgumentError("Give 1 to 200 characters on one line.");
  }
  return trimmed;
}

/** Option parser for options that may be given several times. */
export function repeatable(text: string, before: string[] = []): string[] {
  return [...before, text];
}
