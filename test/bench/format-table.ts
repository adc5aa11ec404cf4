/** A table in Markdown whose columns are aligned, so that it can be read on a terminal as well. The first column is text, the others numbers. */
export function formatTable(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const lines = [head, ...rows.map((row) => row.map(String))];
  const widths = head.map((_, column) => Math.max(3, ...lines.map((line) => line[column]?.length ?? 0)));
  const show = (line: readonly string[]) =>
    `| ${widths.map((width, column) => pad(line[column] ?? "", width, column)).join(" | ")} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  const [first = [], ...rest] = lines;
  return [show(first), rule, ...rest.map(show)].join("\n");
}

function pad(text: string, width: number, column: number): string {
  return column === 0 ? text.padEnd(width) : text.padStart(width);
}
