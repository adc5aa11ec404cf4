import { Command } from "commander";
import { addAuditCommands } from "./audit.ts";
import { addBatchCommands } from "./batch.ts";
import { addChainCommands } from "./chain.ts";
import { addDbCommands } from "./db.ts";
import { EXIT_HELP } from "./exit-code.ts";
import { addKeyCommands } from "./key.ts";
import { addMarketplaceCommands } from "./marketplace.ts";
import { addOrgCommands } from "./org.ts";
import { paintError, paintHelp } from "./paint.ts";
import { addProductCommands } from "./product.ts";
import { addUserCommands } from "./user.ts";
import { addVoucherCommands } from "./voucher.ts";

/** `voucherctl` with every command that it has. Parsing throws CommanderError where commander would end the process. */
export function buildProgram(): Command {
  const program = new Command("voucherctl")
    .usage("<noun> <verb> [options]")
    .description(
      "Administers vouchers, on the servers of DATABASE_URL and REDIS_URL, or on the embedded ones without them.\n" +
        "From a checkout: npm run -s voucherctl -- <noun> <verb> [options]",
    )
    .addHelpText("after", `\nvoucherctl <noun> <verb> --help shows options and examples.\n\n${EXIT_HELP}`)
    .exitOverride()
    .configureHelp({
      subcommandDescription: (noun) =>
        `${noun.description()}${noun.commands.length === 0 ? "" : `: ${noun.commands.map((verb) => verb.name()).join(", ")}`}`,
      styleTitle: (text) => paintHelp("bold", text),
      styleSubcommandTerm: (text) => paintHelp("cyan", text),
      styleOptionTerm: (text) => paintHelp("cyan", text),
      styleArgumentTerm: (text) => paintHelp("cyan", text),
    })
    .configureOutput({ outputError: (text, write) => write(paintError("red", asSentence(text))) });
  program.commandsGroup("What there is:");
  addOrgCommands(program);
  addProductCommands(program);
  addBatchCommands(program);
  addVoucherCommands(program);
  program.commandsGroup("Who may use it:");
  addKeyCommands(program);
  addMarketplaceCommands(program);
  addUserCommands(program);
  program.commandsGroup("What happened:");
  addChainCommands(program);
  addAuditCommands(program);
  program.commandsGroup("What runs it:");
  addDbCommands(program);
  for (const noun of program.commands) noun.usage("<verb> [options]");
  for (const command of [program, ...program.commands.flatMap((noun) => [noun, ...noun.commands])]) {
    command.helpCommand(false).showHelpAfterError(`See ${nameOf(command)} --help`);
  }
  return program;
}

/** A command as it is typed: `voucherctl key create`. */
export function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

/** `error: unknown option '--x'` as a sentence. */
function asSentence(text: string): string {
  const [first = "", ...rest] = text
    .replace(/^error: /, "")
    .trimEnd()
    .split("\n");
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}`;
  return `${[/[.?!]$/.test(sentence) ? sentence : `${sentence}.`, ...rest].join("\n")}\n`;
}
