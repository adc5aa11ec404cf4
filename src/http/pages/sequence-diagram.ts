import { type Html, html } from "./html.ts";

const PARTICIPANT = /^(?:participant|actor) (\w+)(?: as (.+))?$/;
const MESSAGE = /^(\w+)(--?)>>(\w+): (.+)$/;
const NOTE = /^Note (?:over|right of|left of) (\w+): (.+)$/;
const OPENING = /^(?:alt|opt|loop|break) (.+)$/;
const ALTERNATIVE = /^else (.+)$/;

/** Sizes in the picture: the distance of two participants, and the height of a line of text. */
const LANE = 190;
const LINE = 17;
/** The parts of a text that fit between two participants. */
const PARTS = /.{1,26}(?= |$)|\S+/g;

/**
 * Renders a Mermaid sequence diagram as a picture that needs no script, and as a list of its messages. Null for a diagram of
 * another kind and for syntax that it does not know.
 */
export function renderSequence(source: string): Html | null {
  const [kind, ...lines] = source
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (kind !== "sequenceDiagram") return null;
  const names = new Map<string, string>();
  const nameOf = (id = "") => names.get(id) ?? id;
  const middleOf = (id = "") => ([...names.keys()].indexOf(id) + 0.5) * LANE;
  /** The list itself, then each block that has not ended yet, with their items. The innermost block is the last one. */
  const open: { condition: string; items: Html[]; top: number }[] = [{ condition: "", items: [], top: 0 }];
  const shapes: Html[] = [];
  let y = 2.5 * LINE;
  const write = (x: number, text: string) => {
    const parts = text.match(PARTS) ?? [];
    shapes.push(...parts.map((line, index) => html`<text x="${x}" y="${y + (index + 1) * LINE}">${line}</text>`));
    y += parts.length * LINE + 7;
  };
  const add = (item: Html) => open.at(-1)?.items.push(item);
  const begin = (condition: string) => {
    const inset = open.length * 10;
    shapes.push(html`<text text-anchor="start" x="${inset + 10}" y="${y + 2 * LINE}">If ${condition}:</text>`);
    open.push({ condition, items: [], top: y + LINE / 2 });
    y += 2 * LINE + 4;
  };
  const close = () => {
    const block = open.pop();
    if (block === undefined) return;
    const inset = open.length * 10;
    y += LINE;
    shapes.unshift(
      html`<rect x="${inset}" y="${block.top}" width="${names.size * LANE - 2 * inset}" height="${y - LINE / 2 - block.top + 4}"/>`,
    );
    add(html`<li>If ${block.condition}:<ul>${block.items}</ul></li>`);
  };
  for (const line of lines) {
    const [participant, message, note] = [PARTICIPANT.exec(line), MESSAGE.exec(line), NOTE.exec(line)];
    const [opening, alternative] = [OPENING.exec(line), ALTERNATIVE.exec(line)];
    if (participant !== null) names.set(participant[1] ?? "", participant[2] ?? participant[1] ?? "");
    else if (message !== null) {
      const [, from, dashes, to, text = ""] = message;
      const [start, end] = [middleOf(from), middleOf(to)];
      write((start + end) / 2, text);
      const way = Math.sign(end - start);
      shapes.push(
        html`<path stroke-dasharray="${dashes === "--" ? "5 4" : "none"}" d="M${start} ${y}H${end - 6 * way}"/>`,
      );
      shapes.push(html`<path d="M${end} ${y}l${-9 * way} -5v10z"/>`);
      add(html`<li><strong>${nameOf(from)} → ${nameOf(to)}:</strong> ${text}</li>`);
    } else if (note !== null) {
      write(middleOf(note[1]), note[2] ?? "");
      add(html`<li><strong>${nameOf(note[1])}</strong> ${note[2] ?? ""}</li>`);
    } else if (opening !== null) begin(opening[1] ?? "");
    else if (alternative !== null && open.length > 1) {
      close();
      begin(alternative[1] ?? "");
    } else if (line === "end" && open.length > 1) close();
    else return null;
  }
  if (open.length !== 1) return null;
  const lanes = [...names].map(
    ([id, name]) => html`<path class="lane" d="M${middleOf(id)} ${2 * LINE}V${y + LINE}"/>
<text font-weight="600" x="${middleOf(id)}" y="${1.5 * LINE}">${name}</text>`,
  );
  const [width, height] = [names.size * LANE, y + 1.5 * LINE];
  return html`<div class="scroll sequence" tabindex="0" role="img" aria-label="The steps of the list below, as a picture">
<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">${lanes}${shapes}</svg></div>
<details class="contents"><summary>The same as a list</summary><ol>${open[0]?.items ?? []}</ol></details>
`;
}
