import { Command } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { audit } from "./audit.ts";
import { batch } from "./batch.ts";
import { brand } from "./brand.ts";
import { chain } from "./chain.ts";
import { actionWithoutServers, type Noun } from "./command.ts";
import { writeCompletion } from "./completion.ts";
import { contract } from "./contract.ts";
import { db } from "./db.ts";
import { EXIT_HELP } from "./exit-code.ts";
import { key } from "./key.ts";
import { link } from "./link.ts";
import { listing } from "./listing.ts";
import { log } from "./log.ts";
import { member } from "./member.ts";
import { org } from "./org.ts";
import { paintError, paintHelp } from "./paint.ts";
import { product } from "./product.ts";
import { queue } from "./queue.ts";
import { receipt } from "./receipt.ts";
import { redemption } from "./redemption.ts";
import { sandbox } from "./sandbox.ts";
import { user } from "./user.ts";
import { voucher } from "./voucher.ts";
import { webhook } from "./webhook.ts";
import { witness } from "./witness.ts";

/** Every noun, under its heading in `voucherctl --help`. */
const NOUNS: Record<string, readonly Noun[]> = {
  "Supply:": [org, brand, product, batch, voucher, listing],
  "Access:": [key, webhook, member, contract, link, user],
  "History:": [redemption, chain, log, receipt, witness, audit],
  "Tests:": [sandbox],
  "Servers:": [db, queue],
};

/** Builds `voucherctl` with all its commands. Parsing throws CommanderError where commander would end the process. */
export function buildProgram(): Command {
  const program = new Command("voucherctl")
    .usage("<noun> <verb> [options]")
    .description(
      "Administers vouchers on the servers of DATABASE_URL and REDIS_URL, or on the embedded servers when they are unset.\n" +
        "From a checkout: npm run -s voucherctl -- <noun> <verb> [options]",
    )
    .version(packageJson.version, "--version", "print the version")
    .addHelpText("after", `\nvoucherctl <noun> <verb> --help shows options and examples.\n\n${EXIT_HELP}`)
    .exitOverride()
    .configureHelp({
      subcommandDescription: (noun) => {
        const verbs = noun.commands.map((verb) => verb.name()).join(", ");
        return verbs === "" ? noun.description() : `${noun.description()}: ${verbs}`;
      },
      styleTitle: (text) => paintHelp("bold", text),
      styleSubcommandTerm: (text) => paintHelp("cyan", text),
      styleOptionTerm: (text) => paintHelp("cyan", text),
      styleArgumentTerm: (text) => paintHelp("cyan", text),
    })
    .configureOutput({ outputError: (text, write) => write(paintError("red", asSentence(text))) });
  for (const [heading, nouns] of Object.entries(NOUNS)) {
    program.commandsGroup(heading);
    for (const { name, description, addVerbs } of nouns) {
      addVerbs(program.command(name).description(description).usage("<verb> [options]"));
    }
  }
  program.commandsGroup("Shell:");
  actionWithoutServers(
    program.command("completion").description("print a script for bash and zsh: source <(voucherctl completion)"),
    ["completion"],
    async (ctx) => {
      const script = writeCompletion(program);
      ctx.print({ script }, () => script);
    },
  );
  for (const command of [program, ...program.commands.flatMap((noun) => [noun, ...noun.commands])]) {
    command.helpCommand(false).showHelpAfterError(`See ${nameOf(command)} --help`);
  }
  return program;
}

/** A command as users type it: `voucherctl key create`. */
export function nameOf(command: Command): string {
  return command.parent === null ? command.name() : `${nameOf(command.parent)} ${command.name()}`;
}

/** Turns commander's `error: unknown option '--x'` into a sentence. */
function asSentence(text: string): string {
  const [first = "", ...rest] = text
    .replace(/^error: /, "")
    .trimEnd()
    .split("\n");
  const sentence = `${first.charAt(0).toUpperCase()}${first.slice(1)}`;
  return `${[/[.?!]$/.test(sentence) ? sentence : `${sentence}.`, ...rest].join("\n")}\n`;
}
