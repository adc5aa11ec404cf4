import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { Marked, type Tokens } from "marked";
import { getHeadingList, gfmHeadingId } from "marked-gfm-heading-id";
import { Html, html } from "./html.ts";
import { GUIDE_PATH, layOut, type Site } from "./layout.ts";
import { renderSequence } from "./sequence-diagram.ts";

/** Where the service serves the files of `docs/` that partners need. */
const PATHS = {
  "integration.md": GUIDE_PATH,
  "errors.md": "/docs/errors",
  "proof.md": "/docs/proof",
  "versioning.md": "/docs/versioning",
  "sandbox.md": "/docs/sandbox",
  "webhooks.md": "/docs/webhooks",
  "sandbox-client.mjs": "/docs/sandbox-client.mjs",
  "chain-vectors.json": "/docs/chain-vectors.json",
  "log-vectors.json": "/docs/log-vectors.json",
  "verify-receipt.mjs": "/docs/verify-receipt.mjs",
  "verify-receipt.py": "/docs/verify-receipt.py",
  "receipt-verifier.html": "/docs/receipt-verifier.html",
} as const;

/** A file of `docs/` that is served. */
export interface ServedDocument {
  path: string;
  /** The file extension, if the file is sent unchanged. Null for Markdown, which is rendered. */
  sentAs: string | null;
  text: string;
}

/** Every served file. Read at the start, so that a release in which a file is missing does not start. */
export const DOCUMENTS: readonly ServedDocument[] = Object.entries(PATHS).map(([name, path]) => ({
  path,
  sentAs: name.endsWith(".md") ? null : extname(name),
  text: readFileSync(new URL(`../../../docs/${name}`, import.meta.url), "utf8"),
}));

/** A Markdown document as a page, with links to the other pages. The text is our own, so markup in it is trusted. */
export function renderDocument(site: Site, { text }: ServedDocument): Html {
  const marked = new Marked(gfmHeadingId(), {
    walkTokens(token) {
      if (token.type === "link") token.href = addressOf(site, token.href);
    },
    hooks: {
      // Wide tables scroll on small screens. The tab stop lets the keyboard scroll them too.
      postprocess: (markup) =>
        markup.replaceAll("<table>", '<div class="wide" tabindex="0"><table>').replaceAll("</table>", "</table></div>"),
    },
    renderer: {
      code({ lang, text: source }: Tokens.Code) {
        return lang === "mermaid" ? (renderSequence(source)?.markup ?? false) : false;
      },
    },
  });
  const body = new Html(marked.parse(text, { async: false }));
  const headings = getHeadingList();
  const title = headings.find(({ level }) => level === 1)?.raw ?? "";
  const sections = headings
    .filter(({ level }) => level === 2)
    .map(({ id, text: name }) => html`<li><a href="#${id}">${new Html(name)}</a></li>`);
  return layOut(site, {
    title,
    main: html`<article class="document">
${sections.length === 0 ? null : html`<details class="contents"><summary>On this page</summary><ul>${sections}</ul></details>`}
${body}
</article>`,
  });
}

/**
 * The address of a link's target: another served file, or an address outside the documents.
 * @throws Error for a file that is not served.
 */
function addressOf({ basePath }: Site, href: string): string {
  if (/^(https?:\/\/|#)/.test(href)) return href;
  const [file = "", anchor] = href.split("#");
  const path = (PATHS as Record<string, string>)[file];
  if (path === undefined) throw new Error(`a served document links to ${file}, which is not served`);
  return `${basePath}${path}${anchor === undefined ? "" : `#${anchor}`}`;
}
