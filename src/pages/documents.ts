import { readFileSync } from "node:fs";
import { extname } from "node:path";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import typescript from "highlight.js/lib/languages/typescript";
import { Marked, type Tokens } from "marked";
import { getHeadingList, gfmHeadingId } from "marked-gfm-heading-id";
import { nextPiece } from "../platform/batching/fair-slots.ts";
import { ASSETS, RECEIPT_VERIFIER } from "./assets.ts";
import { Html, html } from "./html.ts";
import { GUIDE_PATH, layOut, type Site } from "./layout.ts";

/** The files of `docs/` for partners, except those of wings, in the order of the list on every page. */
const NAMES = `integration.md clients.md orders.md settlement.md history.md going-live.md issuing.md sandbox.md
  portal.md errors.md versioning.md voucher-client.mjs voucher_client.py voucher-client.php checkout.py checkout.php
  several-vouchers.mjs sandbox-client.mjs back-office.mjs back_office.py sandbox-issuer.mjs settle-day.mjs settle_day.py
  settle-day.php verify-chain.sh verify-chain.mjs verify_chain.py verify-chain.php chain-vectors.json
  images/checkout.svg`.split(/\s+/);

/** Where the service serves a file of `docs/`. */
const pathOf = (name: string) => (name === "integration.md" ? GUIDE_PATH : `/docs/${name.replace(/\.md$/, "")}`);

/** The service's address in the documents. Pages replace it with the real address. */
const EXAMPLE_ADDRESS = "https://vouchers.example.com";

for (const language of [bash, javascript, json, typescript]) hljs.registerLanguage(language.name, language);

/** A file of `docs/` that is served. */
export interface ServedDocument {
  path: string;
  /** The file extension, if the file is sent unchanged. Null for Markdown, which is rendered. */
  sentAs: string | null;
  text: string;
}

/** Reads files of `docs/`, and the generated receipt verifier. */
const readDocuments = (names: readonly string[]): ServedDocument[] =>
  names.map((name) => ({
    path: pathOf(name),
    sentAs: name.endsWith(".md") ? null : extname(name),
    text:
      name === "receipt-verifier.html"
        ? RECEIPT_VERIFIER
        : readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8"),
  }));

/** The served files except those of wings, read when the process starts: a release that lacks one does not start. */
export const DOCUMENTS: readonly ServedDocument[] = readDocuments(NAMES);

/** All served files, with those that wings name. */
export const allDocuments = (ofWings: readonly string[]): ServedDocument[] => [...DOCUMENTS, ...readDocuments(ofWings)];

/**
 * Highlights the code of a document, one block in each turn of the event loop, because the first block of a language
 * takes some 10 ms.
 */
async function highlightCode(source: string): Promise<Map<string, string>> {
  const marked = new Marked();
  const blocks: Tokens.Code[] = [];
  await nextPiece();
  marked.walkTokens(marked.lexer(source), (token) => {
    if (token.type === "code") blocks.push(token as Tokens.Code);
  });
  const highlighted = new Map<string, string>();
  for (const { lang = "", text } of blocks) {
    if (hljs.getLanguage(lang) === undefined) continue;
    await nextPiece();
    highlighted.set(text, hljs.highlight(text, { language: lang }).value);
  }
  return highlighted;
}

/**
 * Renders a Markdown document as a page, with links to the other pages. A link to a file whose wing is missing becomes
 * text. The project's own text may contain markup.
 */
export async function renderDocument(
  site: Site,
  { text }: ServedDocument,
  all: readonly ServedDocument[],
): Promise<Html> {
  const source = text.replaceAll(EXAMPLE_ADDRESS, site.baseUrl);
  const highlighted = await highlightCode(source);
  await nextPiece();
  const marked = new Marked(gfmHeadingId(), {
    walkTokens(token) {
      if (token.type === "link" || token.type === "image") token.href = addressOf(site, all, token.href);
    },
    hooks: {
      // Tables and pictures scroll on small screens. The tab stop makes this possible with the keyboard.
      postprocess: (markup) =>
        markup.replace(/(<table>.*?<\/table>)|<p>(<img [^>]*>)<\/p>/gs, '<div class="scroll" tabindex="0">$1$2</div>'),
    },
    renderer: {
      link({ href, tokens }) {
        return href === "" && this.parser.parseInline(tokens);
      },
      code({ text: code }: Tokens.Code) {
        const markup = highlighted.get(code);
        return markup === undefined ? false : `<pre><code>${markup}</code></pre>\n`;
      },
    },
  });
  const body = new Html(marked.parse(source, { async: false }));
  const headings = getHeadingList();
  const title = headings.find(({ level }) => level === 1)?.raw ?? "";
  const sections = headings
    .filter(({ level }) => level === 2)
    .map(({ id, text: name }) => html`<li><a href="#${id}">${new Html(name)}</a></li>`);
  return layOut(site, {
    title,
    scripts: [ASSETS.copyScript],
    main: html`<article class="document">
<details class="contents"><summary>All documents</summary><ul>${listPages(site, all)}</ul></details>
${
  sections.length === 0
    ? null
    : html`<details class="contents"><summary>On this page</summary><ul>${sections}</ul>\
</details>`
}
${body}
</article>`,
  });
}

/** A link to each page. The text is the page's first heading. */
function listPages({ basePath }: Site, all: readonly ServedDocument[]): Html[] {
  return all
    .filter(({ sentAs }) => sentAs === null)
    .map(({ path, text }) => html`<li><a href="${basePath}${path}">${text.slice(2, text.indexOf("\n"))}</a></li>`);
}

/** The address for a link in a document: another served file, or outside the documents. Empty if it is not served. */
function addressOf({ basePath }: Site, all: readonly ServedDocument[], href: string): string {
  if (/^(https?:\/\/|#)/.test(href)) return href;
  const [file = "", anchor] = href.split("#");
  const path = pathOf(file);
  if (!all.some((document) => document.path === path)) return "";
  return `${basePath}${path}${anchor === undefined ? "" : `#${anchor}`}`;
}
