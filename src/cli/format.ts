import { stripVTControlCharacters, styleText } from "node:util";

export { formatCount, formatUtc, formatUtcWithZone, pluralize, saySuspension } from "../acts/words.ts";

type Style = Parameters<typeof styleText>[0];

/** Styles text if standard output is a terminal. NO_COLOR turns styles off, and FORCE_COLOR turns them on. */
export function paint(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stdout });
}

/** Like {@link paint}, for standard error. */
export function paintError(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stderr });
}

/** Like {@link paint}, for `--help`. Commander removes the styles if the output must not have them. */
export function paintHelp(style: Style, text: string): string {
  return styleText(style, text, { validateStream: false });
}

/** US dollars: `$1,234.50`. */
export function formatUsd(amount: number): string {
  return amount.toLocaleString("en-US", { style: "currency", currency: "USD" });
}

/** A rounded duration: `45 s`, `3 min`, `5 h`, `12 d`. */
export function formatDuration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1_000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Space between two columns. */
const GAP = 2;

/** One row of cells, and an optional note below it. */
export interface TableRow {
  cells: readonly string[];
  note?: string;
}

/**
 * Formats rows in columns. Returns the argument `none` if there are no rows. Widths count UTF-16 units, so put text
 * with wide characters into the last column.
 */
export function formatTable(headings: readonly string[], rows: readonly TableRow[], none = ""): string {
  if (rows.length === 0) return none;
  const lengthOf = (cell = "") => stripVTControlCharacters(cell).length;
  const widths = headings.map((heading, column) =>
    rows.reduce((width, { cells }) => Math.max(width, lengthOf(cells[column])), heading.length),
  );
  const formatRow = (cells: readonly string[]) =>
    cells
      .map((cell, column) => cell + " ".repeat((widths[column] ?? 0) + GAP - lengthOf(cell)))
      .join("")
      .trimEnd();
  const indent = (widths[0] ?? 0) + GAP;
  return [
    formatRow(headings.map((heading) => paint("bold", heading))),
    ...rows.flatMap(({ cells, note }) => [formatRow(cells), ...formatNote(note, indent)]),
  ].join("\n");
}

function formatNote(note: string | undefined, indent: number): string[] {
  if (!note) return [];
  return wrapWords(note, indent).map((line) => `${" ".repeat(indent)}${paint("dim", line)}`);
}

/** Formats a title and named fields below it. Omits null fields. */
export function formatFields(title: string, fields: Readonly<Record<string, string | null>>): string {
  const present = Object.entries(fields).filter((field): field is [string, string] => field[1] !== null);
  const width = Math.max(...present.map(([name]) => name.length)) + GAP;
  return [title, ...present.map(([name, value]) => `  ${paint("dim", name.padEnd(width))}${value}`)].join("\n");
}

/** A secret, which is shown only once. */
export function formatSecret(secret: string): string {
  return `${paint("bold", secret)}\nSave it now: it is not stored and cannot be shown again.`;
}

/** Breaks text into lines that fit on the terminal after an indentation. Returns one line if the width is unknown. */
function wrapWords(text: string, indent: number): string[] {
  const width = (process.stdout.columns || Number.POSITIVE_INFINITY) - indent;
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
