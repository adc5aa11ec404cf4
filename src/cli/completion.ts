import type { Command } from "commander";

/** A script for bash and zsh that completes nouns, verbs, options and their values. */
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
