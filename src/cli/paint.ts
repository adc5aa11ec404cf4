import { styleText } from "node:util";

type Style = Parameters<typeof styleText>[0];

/** Styles text for standard output: on a terminal alone, unless NO_COLOR or FORCE_COLOR say otherwise. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** The same for standard error. */
export function paintError(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stderr });
}

/** The same for `--help`, which leaves the styles out itself where they are not wanted. */
export function paintHelp(style: Style, text: string): string {
  return styleText(style, text, { validateStream: false });
}
