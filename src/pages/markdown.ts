import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import { Marked, type Token, type Tokens } from "marked";
import { getHeadingList, gfmHeadingId, type HeadingData } from "marked-gfm-heading-id";
import { nextPiece } from "../platform/batching/fair-slots.ts";
import { Html, html } from "./html.ts";

for (const language of [bash, javascript, json, php, python, typescript])
  hljs.registerLanguage(language.name, language);

/** Returns the target of a link: an address, or the text of a file. Null if the service does not serve the file. */
export type ReadLink = (href: string) => string | null;

interface Sample {
  label: string;
  language: string;
  code: string;
}

/** A document after rendering. */
interface Rendered {
  body: Html;
  headings: HeadingData[];
}

/**
 * Renders a document of the project, which may contain markup. A link without a target becomes its text. A paragraph
 * that consists only of links to programs becomes tabs, together with the code block before the paragraph.
 */
export async function renderMarkdown(source: string, addressOf: ReadLink, readProgram: ReadLink): Promise<Rendered> {
  await nextPiece();
  const join = (tokens: Token[]) => joinSamples(tokens, readProgram);
  const highlighted = await highlightCode(join(new Marked().lexer(source)));
  await nextPiece();
  const renderCode = (code: string) => html`<pre><code>${highlighted.get(code) ?? code}</code></pre>\n`;
  const marked = new Marked(gfmHeadingId(), {
    extensions: [{ name: "samples", renderer: ({ raw, samples }) => renderSamples(raw, samples, renderCode).markup }],
    hooks: {
      processAllTokens: join,
      // Pictures and wide tables scroll. The tab stop makes this possible with a keyboard.
      postprocess: (markup) =>
        markup
          .replaceAll(/<table>.*?<\/table>/gs, stackTable)
          .replaceAll(/<p>(<img [^>]*>)<\/p>/g, '<div class="scroll" tabindex="0">$1</div>')
          // Replaces empty headings by cells, because a screen reader cannot read out an empty heading.
          .replaceAll(/<th(?: [^>]*)?><\/th>/g, "<td></td>"),
    },
    renderer: {
      code: ({ text }: Tokens.Code) => (highlighted.has(text) ? renderCode(text).markup : false),
      link({ href, tokens }) {
        const address = addressOf(href);
        const text = new Html(this.parser.parseInline(tokens));
        return (address === null ? text : html`<a href="${address}">${text}</a>`).markup;
      },
      image({ href, text }) {
        const address = addressOf(href);
        return address === null ? "" : html`<img src="${address}" alt="${text}">`.markup;
      },
    },
  });
  // Read the list of headings before any `await`: all documents share it, and another document would replace it.
  const body = new Html(marked.parse(source, { async: false }));
  return { body, headings: getHeadingList() };
}

/** A table whose rows become lists of names and values on a small screen. */
function stackTable(table: string): string {
  const names = Array.from(table.matchAll(/<th(?: [^>]*)?>(.*?)<\/th>/gs), ([, name = ""]) =>
    name.replaceAll(/<[^>]*>/g, ""),
  );
  let at = 0;
  const named = table.replaceAll("<td", () => `<td data-name="${names[at++ % names.length]}"`);
  return `<div class="scroll stacks" tabindex="0">${named}</div>`;
}

const LANGUAGE_NAMES: Record<string, string> = { bash: "Shell", js: "JavaScript", ts: "TypeScript" };

/** Replaces each paragraph of links to programs, together with the code block before it, by a token for tabs. */
function joinSamples(tokens: Token[], readProgram: ReadLink): Token[] {
  const joined: Token[] = [];
  for (const token of tokens.filter(({ type }) => type !== "space")) {
    const programs = readPrograms(token, readProgram);
    const before = programs.length > 0 && joined.at(-1)?.type === "code" ? (joined.pop() as Tokens.Code) : null;
    const first = before && { label: LANGUAGE_NAMES[before.lang ?? ""], language: before.lang, code: before.text };
    joined.push(programs.length === 0 ? token : { type: "samples", raw: token.raw, samples: [first, ...programs] });
  }
  return joined;
}

/** The programs to which a paragraph links. Empty if the paragraph contains anything else. */
function readPrograms(token: Token, readProgram: ReadLink): Sample[] {
  if (token.type !== "paragraph") return [];
  const inline = (token as Tokens.Paragraph).tokens;
  const isBlank = ({ type, raw }: Token) => type === "text" && raw.trim() === "";
  const samples = inline
    .filter((part) => !isBlank(part))
    .flatMap((part) => {
      const code = part.type === "link" ? readProgram((part as Tokens.Link).href) : null;
      const { href = "", text = "" } = part as Tokens.Link;
      return code === null ? [] : [{ label: text, language: href.slice(href.lastIndexOf(".") + 1), code }];
    });
  return samples.length === inline.filter((part) => !isBlank(part)).length ? samples : [];
}

/** The programs in tabs. They work without a script: the selected radio button decides which program is shown. */
function renderSamples(name: string, samples: readonly Sample[], renderCode: (code: string) => Html): Html {
  const group = name.replaceAll(/\W+/g, "-");
  const tabs = samples.map(({ label }, at) => {
    const id = `${group}${at}`;
    return html`<input type="radio" name="${group}" id="${id}"${at === 0 ? html` checked` : null}>\
<label for="${id}">${label}</label>\n`;
  });
  return html`<div class="tabs" role="group" aria-label="Language">
${tabs}${samples.map(({ code }) => renderCode(code))}</div>
`;
}

/**
 * Highlights code, one block in each turn of the event loop, because the first block of a language takes some 10 ms.
 */
async function highlightCode(tokens: Token[]): Promise<Map<string, Html>> {
  const blocks: { language: string; code: string }[] = [];
  new Marked().walkTokens(tokens, (token) => {
    if (token.type === "code") blocks.push({ language: token.lang ?? "", code: token.text });
    if (token.type === "samples") blocks.push(...token.samples);
  });
  const highlighted = new Map<string, Html>();
  for (const { language, code } of blocks) {
    if (hljs.getLanguage(language) === undefined) continue;
    await nextPiece();
    highlighted.set(code, new Html(hljs.highlight(code, { language }).value));
  }
  return highlighted;
}
