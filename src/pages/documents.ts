import { globSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { nextPiece } from "../platform/batching/fair-slots.ts";
import { ASSETS, RECEIPT_VERIFIER } from "./assets.ts";
import { Html, html } from "./html.ts";
import { GUIDE_PATH, layOut, linkInMenu, type Site } from "./layout.ts";
import { renderMarkdown } from "./markdown.ts";

const FOLDER = fileURLToPath(new URL("../../docs/", import.meta.url));

/**
 * The tree of all documents, by task, in the order in which readers need them. A question mark stands after a document
 * that is served only if an optional feature (wing) names it.
 */
const TREE: Record<string, string> = {
  "Connect a shop or a till": "integration retries clients orders errors going-live sandbox versioning",
  "Settle and verify": "settlement portal history proof?",
  "Issue and sell": "issuing marketplace? webhooks? webhook-receivers?",
  "Run the service": `operations containers kubernetes/README configuration configuration/api configuration/workers
    servers proxies voucherctl console sign-in monitoring`,
  "Keep it safe": "backup failover erasure personal-data transparency-log? attackers",
  "Handle more load": "scaling redis-cluster growth benchmarks",
  "Answer an alert": `runbook runbook/redeems runbook/processes runbook/servers runbook/queues runbook/security
    runbook/log? runbook/webhooks?`,
  "Understand the design": `design design/redemption design/final-answers design/database design/callers design/limits
    design/failures glossary`,
};
const GROUPS = Object.entries(TREE).map(([title, names]) => ({ title, names: names.split(/\s+/) }));

const FILES = `voucher-client.mjs voucher_client.py voucher-client.php checkout.py checkout.php several-vouchers.mjs
  sandbox-client.mjs back-office.mjs back_office.py sandbox-issuer.mjs settle-day.mjs settle_day.py settle-day.php
  verify-chain.sh verify-chain.mjs verify_chain.py verify-chain.php chain-vectors.json images/checkout.svg`;

/** The path at which the service serves a file of `docs/`. */
const pathOf = (name: string) =>
  name === "integration.md" ? GUIDE_PATH : `/docs/${name.replace(/(\/README)?\.md$/, "")}`;

/** The service's address in the documents' texts. Pages replace it with the real address. */
const EXAMPLE_ADDRESS = "https://vouchers.example.com";

/** A file of `docs/` that is served. */
export interface ServedDocument {
  name: string;
  path: string;
  /** The file extension, if the file is sent unchanged. Null for Markdown, which is rendered. */
  sentAs: string | null;
  text: string;
}

const readDocuments = (names: readonly string[]): ServedDocument[] =>
  names.map((name) => ({
    name,
    path: pathOf(name),
    sentAs: name.endsWith(".md") ? null : extname(name),
    text: name === "receipt-verifier.html" ? RECEIPT_VERIFIER : readFileSync(FOLDER + name, "utf8"),
  }));

/** The core's served files, read when the process starts, so that a release with a missing file fails at once. */
export const DOCUMENTS: readonly ServedDocument[] = readDocuments([
  ...GROUPS.flatMap(({ names }) => names.flatMap((name) => (name.endsWith("?") ? [] : [`${name}.md`]))),
  ...FILES.split(/\s+/),
]);

/** All served files. Their tables lack the rows that begin with a link to a document that is not served. */
export function allDocuments(ofWings: readonly string[]): ServedDocument[] {
  const all = [...DOCUMENTS, ...readDocuments(ofWings)];
  const names = new Set(all.map(({ name }) => name));
  return all.map((document) => ({
    ...document,
    text: document.text.replaceAll(/^\| \[[^\]]+\]\(([\w/-]+\.md)\) \|.*\n/gm, (row, href) =>
      names.has(targetOf(document, href).pathname.slice(1)) ? row : "",
    ),
  }));
}

const targetOf = ({ name }: Pick<ServedDocument, "name">, href: string) => new URL(href, `file:///${name}`);

/** The documents by the headings of {@link TREE}, then those of optional features that {@link TREE} does not list. */
function groupDocuments(all: readonly ServedDocument[]): { title: string; pages: ServedDocument[] }[] {
  const rest = new Set(all.filter(({ sentAs }) => sentAs === null));
  const groups = GROUPS.map(({ title, names }) => {
    const pages = names.flatMap((name) => all.find((one) => one.name === `${name.replace("?", "")}.md`) ?? []);
    for (const page of pages) rest.delete(page);
    return { title, pages };
  });
  return rest.size === 0 ? groups : [...groups, { title: "More", pages: [...rest] }];
}

/** The path of each entry of the runbook in these documents, by the name of its fault or alert. */
export const runbookEntries = (documents: readonly ServedDocument[]): ReadonlyMap<string, string> =>
  new Map(
    documents
      .filter(({ name }) => name.startsWith("runbook/"))
      .flatMap(({ path, text }) =>
        Array.from(
          text.matchAll(/^## (\w+)$/gm),
          ([, fault = ""]) => [fault, `${path}#${fault.toLowerCase()}`] as const,
        ),
      ),
  );
/** The runbook's entries of the core and of all optional features, even of removed ones, whose faults cannot occur. */
const RUNBOOK_PATHS = runbookEntries(readDocuments(globSync("runbook/*.md", { cwd: FOLDER })));

/** The address of a fault's entry in the runbook. */
export function runbookPath({ basePath }: Site, fault: string): string {
  return `${basePath}${RUNBOOK_PATHS.get(fault) ?? "/docs/runbook"}`;
}

/** A document's title: its first heading. */
export const titleOf = ({ text }: ServedDocument) => text.slice(2, text.indexOf("\n"));

/** Renders a Markdown document as a page. A link to a file that is not served becomes its text. */
export async function renderDocument(
  site: Site,
  document: ServedDocument,
  all: readonly ServedDocument[],
): Promise<Html> {
  const source = document.text.replaceAll(EXAMPLE_ADDRESS, site.baseUrl);
  const { body, headings } = await renderMarkdown(source, (href) => addressOf(site, all, document, href), readProgram);
  await nextPiece();
  const sections = headings
    .filter(({ level }) => level === 2)
    .map(({ id, text }) => html`<li><a href="#${id}">${new Html(text)}</a></li>\n`);
  const list = html`<nav class="headings" aria-labelledby="headings"><p id="headings">On this page</p>
<ul>${sections}</ul></nav>`;
  return layOutDocument(
    site,
    all,
    titleOf(document),
    html`${sections.length === 0 ? null : list}
<article class="document">
${body}
</article>`,
    document.path,
  );
}

/** A page next to the tree of all documents, with the field that searches them. */
export function layOutDocument(
  site: Site,
  all: readonly ServedDocument[],
  title: string,
  content: Html,
  path = "",
  sought = "",
): Html {
  return layOut(site, {
    title,
    path: site.basePath + path,
    styles: [ASSETS.documentStyle],
    scripts: [ASSETS.copyScript],
    main: html`<form class="seek" role="search" action="${site.basePath}${SEARCH_PATH}" method="post">
<label class="hidden" for="q">Search the documents</label>
<input id="q" name="q" type="search" value="${sought}" placeholder="Search the documents" required \
maxlength="${SOUGHT_MAX}" autocapitalize="off">
<button type="submit">Search</button>
<a href="#documents">All documents</a>
</form>
<div class="shelf">
${content}
${renderTree(site, all, path)}
</div>`,
  });
}

/** The page that searches the documents. */
export const SEARCH_PATH = "/docs/search";
/** Maximum length of a text in the search. */
export const SOUGHT_MAX = 100;

/** Links to all documents, by task. The group with the current page is open. */
function renderTree({ basePath }: Site, all: readonly ServedDocument[], current: string): Html {
  const renderLink = (page: ServedDocument) =>
    html`<li>${linkInMenu(basePath + page.path, titleOf(page), basePath + current)}</li>\n`;
  return html`<nav class="tree" id="documents" aria-label="Documents">
${groupDocuments(all).map(({ title, pages }) => {
  const isOpen = pages.some(({ path }) => path === current);
  return html`<details${isOpen ? html` open` : null}><summary>${title}</summary>
<ul>${pages.map(renderLink)}</ul></details>
`;
})}</nav>`;
}

const readProgram = (href: string) =>
  /\.(mjs|py|php|sh)$/.test(href) ? (DOCUMENTS.find(({ name }) => name === href)?.text ?? null) : null;

/**
 * The target of a link: another served file, or an address outside the documents. Null for a file that is not served.
 */
function addressOf(
  { basePath }: Site,
  all: readonly ServedDocument[],
  document: ServedDocument,
  href: string,
): string | null {
  if (/^(https?:\/\/|#)/.test(href)) return href;
  const { pathname, hash } = targetOf(document, href);
  const target = all.find(({ name }) => name === pathname.slice(1));
  return target === undefined ? null : `${basePath}${target.path}${hash}`;
}
