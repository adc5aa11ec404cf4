import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Html, html } from "../pages/html.ts";
import { layOutForOperators, renderSection } from "../pages/operator-frame.ts";
import type { Page } from "./visit.ts";

/** The folder with the runbook's documents. The container image includes it. */
const FOLDER = fileURLToPath(new URL("../../docs", import.meta.url));

/**
 * Renders the runbook of `docs`, so that an operator needs no other site. The anchor of each entry is the
 * name of its alert.
 */
export const runbookPage: Page = async ({ site }) => {
  const entries = Array.from(
    readRunbook().matchAll(/^## (\w+)\n([\s\S]*?)(?=^## |$(?![\s\S]))/gm),
    ([, alert = "", text = ""]) => renderSection(alert, alert, ...text.split(/^(```[\s\S]*?^```)$/m).map(renderBlock)),
  );
  return layOutForOperators(site, "Runbook", html`<h1>Runbook</h1>\n${entries}`);
};

/** The runbook's preparation, and its entries. */
function readRunbook(): string {
  const files = globSync("{runbook,runbook/*}.md", { cwd: FOLDER });
  return files.map((file) => readFileSync(`${FOLDER}/${file}`, "utf8")).join("\n");
}

/** Renders a block of code, or paragraphs and lists. */
function renderBlock(block: string): Html {
  const code = /^```\w*\n([\s\S]*?)```$/.exec(block)?.[1];
  if (code !== undefined) return html`<pre><code>${code.trimEnd()}</code></pre>\n`;
  const paragraphs = block.trim() === "" ? [] : block.trim().split(/\n\n|\n(?=\*\*)/);
  return html`${paragraphs.map((paragraph) => {
    const items = paragraph.split(/^- /m);
    if (items[0] !== "") return html`<p>${renderText(paragraph)}</p>\n`;
    return html`<ul>${items.slice(1).map((item) => html`<li>${renderText(item)}</li>`)}</ul>\n`;
  })}`;
}

/** Renders code and bold text, and replaces each link by its text. */
function renderText(paragraph: string): Html[] {
  return paragraph.split(/(`[^`]+`|\*\*[^*]+\*\*|\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (part.startsWith("`")) return html`<code>${part.slice(1, -1)}</code>`;
    if (part.startsWith("**")) return html`<strong>${part.slice(2, -2)}</strong>`;
    if (part.startsWith("[")) return html`${part.slice(1, part.indexOf("]"))}`;
    return html`${part}`;
  });
}
