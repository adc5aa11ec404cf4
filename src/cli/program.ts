import { Command } from "commander";
import packageJson from "../../package.json" with { type: "json" };
import { ACTS, type AnyAct } from "../acts/acts.ts";
import { verbOf } from "./act-verb.ts";
import { alert } from "./alert.ts";
import { audit } from "./audit.ts";
import { batch } from "./batch.ts";
import { brand, member, org, product } from "./catalog.ts";
import { chain } from "./chain.ts";
import { type Host, type Noun, nameOf, verbWithoutServers } from "./command.ts";
import { db } from "./db.ts";
import { erasure, person } from "./erasure.ts";
import { EXIT_HELP } from "./exit-code.ts";
import { paintError, paintHelp } from "./format.ts";
import { key } from "./key.ts";
import { operator } from "./operator.ts";
import { queue } from "./queue.ts";
import { redemption } from "./redemption.ts";
import { sandbox } from "./sandbox.ts";
import { statement } from "./statement.ts";
import { voucher } from "./voucher.ts";

/** The core's nouns, by their headings in `voucherctl --help`. Optional features and embedded servers add others. */
const NOUNS: Record<string, readonly Noun[]> = {
  "Supply:": [org, brand, product, batch, voucher],
  "Access:": [key, member, operator],
  "History:": [redemption, statement, chain, audit],
  "Erasure:": [person, erasure],
  "Tests:": [sandbox],
  "Servers:": [db, queue, alert],
};

/** Nouns of a wing (optional feature) or the embedded servers, by the core's noun that precedes them in the help. */
export type CommandPart = Readonly<Record<string, readonly Noun[]>>;

/**
 * Builds `voucherctl` with all its commands, including those for the acts of optional features (wings). Where commander
 * would normally end the process, it throws CommanderError.
 */
export function buildProgram(parts: readonly CommandPart[], ofWings: readonly AnyAct[], host: Host): Command {
  const acts = [...ACTS, ...ofWings];
  const program = new Command("voucherctl")
    .usage("<noun> <verb> [options]")
    .description(
      "Administers vouchers on the servers of DATABASE_URL and REDIS_URL, or on the embedded servers when they " +
        "are unset.\n" +
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
    const all = nouns.flatMap((noun) => [noun, ...parts.flatMap((part) => part[noun.name] ?? [])]);
    for (const { name, description, verbs } of all) {
      const noun = program.command(name).description(description).usage("<verb> [options]");
      for (const [verb, define] of Object.entries(verbsOf(name, verbs, acts))) define(noun.command(verb), host);
    }
  }
  const defineCompletion = verbWithoutServers({
    description: "print a script for bash and zsh: source <(voucherctl completion)",
    async run(ctx) {
      const script = writeCompletion(program);
      ctx.print({ script }, () => script);
    },
  });
  defineCompletion(program.commandsGroup("Shell:").command("completion"), host);
  for (const command of [program, ...program.commands.flatMap((noun) => [noun, ...noun.commands])]) {
    command.helpCommand(false).showHelpAfterError(`See ${nameOf(command)} --help`);
  }
  return program;
}

/** The verbs of a noun such as `key`: one for each act on it, and those in `own`, which may replace those of acts. */
function verbsOf(noun: string, own: Noun["verbs"], acts: readonly AnyAct[]): Noun["verbs"] {
  const ofActs = acts.flatMap((act) => {
    const found = Object.entries(own).find(([verb]) => `${noun} ${verb.split(" ")[0]}` === act.name);
    if (found !== undefined) return [Object.fromEntries([found])];
    return act.name.split(" ")[0] === noun && act.only !== "console" ? [verbOf(act)] : [];
  });
  return Object.assign({}, ...ofActs, own);
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

/** Makes a script for bash and zsh that completes nouns, verbs, options and their values. */
export function writeCompletion(program: Command): string {
  const namesOf = (commands: readonly Command[]) => commands.map((command) => command.name()).join(" ");
  const lines = program.commands.flatMap((noun) => [
    ...noun.commands.flatMap((verb) => {
      const at = `${noun.name()} ${verb.name()}`;
      const choices = verb.options.flatMap(({ long, argChoices = [] }) =>
        argChoices.length === 0 ? [] : [`    "${at} ${long}") found="${argChoices.join(" ")}" ;;`],
      );
      return [...choices, `    "${at} "*) found="${verb.options.map(({ long }) => long).join(" ")} --help" ;;`];
    }),
    `    "${noun.name()} "*) found="${namesOf(noun.commands)} --help" ;;`,
  ]);
  return `# source <(voucherctl completion)
[ -z "$ZSH_VERSION" ] || { autoload -U +X compinit bashcompinit && compinit && bashcompinit; }
_voucherctl() {
  local found place="\${COMP_WORDS[1]} \${COMP_WORDS[2]} "
  [ "$COMP_CWORD" -gt 2 ] && place="$place\${COMP_WORDS[COMP_CWORD-1]}" || place="\${COMP_WORDS[1]} "
  [ "$COMP_CWORD" -gt 1 ] || place=""
  case "$place" in
${lines.join("\n")}
    *) found="${namesOf(program.commands)} --help --version" ;;
  esac
  COMPREPLY=($(compgen -W "$found" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _voucherctl voucherctl`;
}
