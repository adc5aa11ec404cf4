import { stripVTControlCharacters } from "node:util";
import { paint } from "./paint.ts";

/** Space between two columns. */
const GAP = 2;

const NO_BORDERS = Object.fromEntries(
  ["top", "bottom", "left", "right", "mid"].flatMap((side) =>
    [side, `${side}-mid`, `${side}-left`, `${side}-right`].map((name) => [name, ""]),
  ),
);

/** One row of cells, and a line below it where there is more to say. */
export interface TableRow {
  cells: readonly string[];
  note?: string;
}

/** Rows under headings, in columns as wide as what stands in them. Put the column that may grow last. */
export async function layTable(headings: readonly string[], rows: readonly TableRow[]): Promise<string> {
  // Loaded only where there is something to lay out: it would double the time that a command takes to load.
  const { default: Table } = await import("cli-table3");
  const table = new Table({
    chars: { ...NO_BORDERS, middle: "" },
    style: { head: [], border: [], "padding-left": 0, "padding-right": GAP },
  });
  table.push(
    headings.map((heading) => paint("bold", heading)),
    ...rows.map(({ cells }) => [...cells]),
  );
  const [first = "", ...others] = table.toString().split("\n");
  const indent = stripVTControlCharacters(first).indexOf(headings[1] ?? "");
  return [first, ...others.flatMap((line, index) => [line, ...layNote(rows[index]?.note, indent)])]
    .map((line) => line.trimEnd())
    .join("\n");
}

function layNote(note: string | undefined, indent: number): string[] {
  if (!note) return [];
  return wrapWords(note, indent).map((line) => `${" ".repeat(indent)}${paint("dim", line)}`);
}

/** A title, and below it what there is to say, name by name. What is null is left out. */
export function layFields(title: string, fields: Readonly<Record<string, string | null>>): string {
  const present = Object.entries(fields).filter((field): field is [string, string] => field[1] !== null);
  const width = Math.max(...present.map(([name]) => name.length)) + GAP;
  return [title, ...present.map(([name, value]) => `  ${paint("dim", name.padEnd(width))}${value}`)].join("\n");
}

/** Lines that fit on the terminal beside an indentation; one line where there is no terminal, or one that tells no width. */
export function wrapWords(text: string, indent: number): string[] {
  const width = (process.stdout.columns || Number.POSITIVE_INFINITY) - indent;
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
