import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Styles text for standard output: only on a terminal, unless NO_COLOR or FORCE_COLOR is set. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** As {@link paint}, for standard error. */
export function paintError(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stderr });
}

/** As {@link paint}, for `--help`: commander removes the styles itself where needed. */
export function paintHelp(style: Style, text: string): string {
  return styleText(style, text, { validateStream: false });
}
