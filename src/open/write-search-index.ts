import { mkdirSync, writeFileSync } from "node:fs";
import { Marked } from "marked";
import { gfmHeadingId } from "marked-gfm-heading-id";
import MiniSearch from "minisearch";
import { allDocuments, type ServedDocument, titleOf } from "../pages/documents.ts";
import { INDEX_OPTIONS, type IndexedSection } from "../pages/search-documents.ts";
import { REFERENCE } from "./endpoints.ts";

// Writes the index for the search in the documents. Part of `npm run prepare`.

const CHARACTERS: Record<string, string> = { lt: "<", gt: ">", quot: '"', amp: "&", "#39": "'" };

/** Converts markup to text in one line. */
function toText(markup: string): string {
  return markup
    .replaceAll(/<[^>]*>/g, " ")
    .replaceAll(/&(lt|gt|quot|amp|#39);/g, (_, name: string) => CHARACTERS[name] ?? "")
    .replaceAll(/\s+/g, " ")
    .trim();
}

/** Splits a document into sections at its headings. The first section, under the title, has no anchor. */
function splitDocument(document: ServedDocument): Omit<IndexedSection, "id">[] {
  const markup = new Marked(gfmHeadingId()).parse(document.text, { async: false });
  const title = titleOf(document);
  return markup.split(/(?=<h[1-3] id=")/).flatMap((part) => {
    const [whole = "", level, anchor, heading = ""] = /^<h([1-3]) id="(.*?)">(.*?)<\/h\1>/s.exec(part) ?? [];
    const text = toText(part.slice(whole.length));
    if (text === "") return [];
    const address = level === "1" ? document.path : `${document.path}#${anchor}`;
    return [{ address, title, heading: toText(heading), text }];
  });
}

const index = new MiniSearch(INDEX_OPTIONS);
const pages = allDocuments(REFERENCE.documents).filter(({ sentAs }) => sentAs === null);
index.addAll(pages.flatMap(splitDocument).map((section, id) => ({ id, ...section })));
mkdirSync(new URL("../../dist", import.meta.url), { recursive: true });
writeFileSync(new URL("../../dist/search-index.json", import.meta.url), JSON.stringify(index));
