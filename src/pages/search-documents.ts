import { readFileSync } from "node:fs";
import type { RequestHandler } from "express";
import MiniSearch, { type Options, type SearchResult } from "minisearch";
import type { Route } from "../platform/http/endpoint.ts";
import { readForm } from "../platform/http/middleware/form-body.ts";
import { type LimitingAddresses, limitAddress } from "../platform/http/middleware/rate-limit.ts";
import { sendPage } from "../platform/http/negotiate.ts";
import { layOutDocument, SEARCH_PATH, type ServedDocument, SOUGHT_MAX } from "./documents.ts";
import { type Html, html } from "./html.ts";
import type { Site } from "./layout.ts";
import { pageHeaders } from "./page-headers.ts";

/** A section of a document under one heading, as stored in the index. */
export interface IndexedSection {
  /** The section's index in the list of all sections. */
  id: number;
  /** The section's address below the base path. */
  address: string;
  title: string;
  heading: string;
  text: string;
}

/** The code that makes the index and the code that searches it must use the same options. */
export const INDEX_OPTIONS: Options<IndexedSection> = {
  // Single letters, such as articles, carry no meaning.
  processTerm: (term) => (term.length < 2 ? null : term.toLowerCase()),
  fields: ["title", "heading", "text"],
  storeFields: ["address", "title", "heading", "text"],
  searchOptions: { boost: { title: 4, heading: 3 }, prefix: true, fuzzy: 0.15, maxFuzzy: 2 },
};

/** Maximum number of sections that a page of results shows. */
const RESULTS_MAX = 15;

/** The index that `npm run prepare` makes. It is read at the first search, which takes some 20 ms. */
let index: Promise<MiniSearch<IndexedSection>> | undefined;
const openIndex = () => {
  const json = readFileSync(new URL("../../dist/search-index.json", import.meta.url), "utf8");
  return MiniSearch.loadJSONAsync(json, INDEX_OPTIONS);
};

/**
 * The sections that contain all words of a text, best first. If no section does, those that contain some of the words.
 */
async function searchSections(sought: string): Promise<(SearchResult & IndexedSection)[]> {
  index ??= openIndex();
  const sections = await index;
  const all = sections.search(sought, { combineWith: "AND" });
  const found = all.length > 0 ? all : sections.search(sought);
  return found.slice(0, RESULTS_MAX) as (SearchResult & IndexedSection)[];
}

/**
 * The page that searches the documents. The form uses POST, because people also enter voucher codes, which are secret,
 * and proxies log URLs.
 */
export function searchRoute(deps: LimitingAddresses & { config: Site }, all: readonly ServedDocument[]): Route {
  const { config: site } = deps;
  const before = [pageHeaders, limitAddress(deps)];
  const show: RequestHandler = async (request, response) => {
    const { q } = Object(request.body) as Record<string, unknown>;
    const sought = typeof q === "string" ? q.trim().slice(0, SOUGHT_MAX) : "";
    const found = await searchSections(sought);
    response.setHeader("X-Robots-Tag", "noindex");
    sendPage(
      response,
      200,
      layOutDocument(site, all, "Search", renderResults(site, sought, found), SEARCH_PATH, sought),
    );
  };
  // The service reads a body only if the caller's address is within its limit.
  return {
    path: SEARCH_PATH,
    methods: { get: [...before, show], post: [...before, readForm, show] },
    limitsCallers: true,
  };
}

function renderResults(site: Site, sought: string, found: readonly (SearchResult & IndexedSection)[]): Html {
  const count = found.length === 0 ? "Nothing was found" : `${found.length} found`;
  return html`<article class="document">
<h1>Search</h1>
<p role="status">${sought === "" ? "Enter some words." : html`${count} for “<bdi>${sought}</bdi>”.`}</p>
<ol class="found">${found.map(
    ({ address, title, heading, text, terms }) => html`<li><a href="${site.basePath}${address}">${
      heading === title ? title : `${title}: ${heading}`
    }</a>
<p>${renderExcerpt(text, terms)}</p></li>
`,
  )}</ol>
</article>`;
}

/** Number of characters of an excerpt before and after the first word that was found. */
const EXCERPT = { before: 60, after: 180 };

/** The part of a text around the first of the given words, with these words marked. */
function renderExcerpt(text: string, terms: readonly string[]): Html[] {
  const words = new RegExp(
    `(?<![\\p{L}\\p{N}])(${terms.map((term) => term.replaceAll(/[$+^|]/g, "\\$&")).join("|")})`,
    "iu",
  );
  const at = Math.max(0, text.search(words));
  const begin = at <= EXCERPT.before ? 0 : text.indexOf(" ", at - EXCERPT.before) + 1;
  const end = Math.min(text.length, begin + EXCERPT.before + EXCERPT.after);
  const shown = `${begin > 0 ? "… " : ""}${text.slice(begin, end)}${end < text.length ? " …" : ""}`;
  return shown.split(words).map((part, place) => (place % 2 === 1 ? html`<mark>${part}</mark>` : html`${part}`));
}
