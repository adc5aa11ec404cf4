import { type Html, html } from "./html.ts";

const PARTICIPANT = /^(?:participant|actor) (\w+)(?: as (.+))?$/;
const MESSAGE = /^(\w+)--?>>(\w+): (.+)$/;
const NOTE = /^Note (?:over|right of|left of) (\w+): (.+)$/;
const OPENING = /^(?:alt|opt|loop|break) (.+)$/;
const ALTERNATIVE = /^else (.+)$/;

/**
 * Renders a Mermaid sequence diagram as a list of its messages, which needs no script in the browser. Null for a diagram of another kind and
 * for syntax that the list cannot show.
 */
export function renderSequence(source: string): Html | null {
  const [kind, ...lines] = source
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (kind !== "sequenceDiagram") return null;
  const names = new Map<string, string>();
  const nameOf = (id = "") => names.get(id) ?? id;
  /** The list itself, then each block that has not ended yet, with their items. The innermost block is the last one. */
  const open: { condition: string; items: Html[] }[] = [{ condition: "", items: [] }];
  const add = (item: Html) => open.at(-1)?.items.push(item);
  const close = () => {
    const block = open.pop();
    if (block !== undefined) add(html`<li>If ${block.condition}:<ul>${block.items}</ul></li>`);
  };
  for (const line of lines) {
    const [participant, message, note] = [PARTICIPANT.exec(line), MESSAGE.exec(line), NOTE.exec(line)];
    const [opening, alternative] = [OPENING.exec(line), ALTERNATIVE.exec(line)];
    if (participant !== null) names.set(participant[1] ?? "", participant[2] ?? participant[1] ?? "");
    else if (message !== null)
      add(html`<li><strong>${nameOf(message[1])} → ${nameOf(message[2])}:</strong> ${message[3] ?? ""}</li>`);
    else if (note !== null) add(html`<li><strong>${nameOf(note[1])}</strong> ${note[2] ?? ""}</li>`);
    else if (opening !== null) open.push({ condition: opening[1] ?? "", items: [] });
    else if (alternative !== null && open.length > 1) {
      close();
      open.push({ condition: alternative[1] ?? "", items: [] });
    } else if (line === "end" && open.length > 1) close();
    else return null;
  }
  return open.length === 1 ? html`<ol class="sequence">${open[0]?.items ?? []}</ol>` : null;
}
