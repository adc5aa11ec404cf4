import { eventsPageQuery, type PublicChain, type PublicEvent } from "../core/chain/api/events.ts";
import { readPublicChain } from "../core/chain/read-chain.ts";
import { type DepsOf, validate } from "../platform/http/endpoint.ts";
import type { Visitor } from "../platform/http/middleware/caller-signal.ts";
import { findCheckpoint } from "../transparency/read-log.ts";
import { ASSETS } from "./assets.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, renderSandboxNotice, renderScriptTexts, type Site } from "./layout.ts";
import type { Locale } from "./locale.ts";
import { renderReceiptForm } from "./receipt-form.ts";
import { MINUTES } from "./time.ts";

/** One page of a chain: its events have a greater sequence than `after`. */
interface ChainExcerpt {
  chain: PublicChain;
  /** The path of the history. */
  path: string;
  after: number;
  limit: number;
  locale: Locale;
}

/** The public page of a voucher's chain, with the same content as the JSON: a timeline, which a script checks in the browser. */
export async function renderChain(
  deps: DepsOf<typeof readPublicChain> & { config: Site },
  visitor: Visitor,
  { entityType, entityId }: { entityType: string; entityId: string },
  query: unknown,
  locale: Locale,
): Promise<Html> {
  const { after, limit } = validate(eventsPageQuery, query);
  // Also reads the event before the page, which the page's first event links to.
  const overlap = Math.min(after, 1);
  const chain = await readPublicChain(deps, visitor, entityType, entityId, {
    after: after - overlap,
    limit: limit + overlap,
  });
  const before = chain.events[0]?.sequence === after ? (chain.events.shift() ?? null) : null;
  // Null before the log's first checkpoint.
  const checkpoint = await deps.publicReads(visitor, () => findCheckpoint(deps.pool));
  const { basePath, baseUrl } = deps.config;
  const history = `/integrity/events/${encodeURIComponent(chain.entityType)}/${encodeURIComponent(chain.entityId)}`;
  const excerpt = { chain, path: basePath + history, after, limit, locale };
  const { chain: texts } = locale.texts;
  return layOut(deps.config, {
    locale,
    title: texts.title(chain.entityId, chain.sandbox === true),
    scripts: [ASSETS.chainScript],
    description: texts.description,
    main: html`<h1>${texts.heading}</h1>
${chain.sandbox ? renderSandboxNotice(locale) : null}
<p class="entity"><span class="label">${texts.voucher}</span> <code id="entity-id" class="copied" data-entity-type="${chain.entityType}">${chain.entityId}</code></p>
${renderScriptTexts(locale)}${renderVerdict(excerpt)}
<noscript><p class="notice">${texts.noScript}</p></noscript>
<section aria-labelledby="entries">
<h2 id="entries">${texts.happened}</h2>
${renderBefore(before, locale)}
${checkpoint === null ? null : renderCheckpoint(basePath, chain.events, checkpoint, locale)}
${chain.events.length === 0 ? html`<p class="notice">${texts.noneAfter(after)}</p>` : renderTable(chain.events, checkpoint === null ? null : excerpt.path, locale)}
${renderPaging(excerpt)}
</section>
<section id="payload-check" aria-labelledby="payload-heading" hidden>
<h2 id="payload-heading">${texts.payloadHeading}</h2>
<p>${texts.payloadAbout}</p>
<form id="payload-form">
<label for="payload">${texts.payloadLabel}</label>
<textarea id="payload" rows="5" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<button type="submit">${texts.payloadButton}</button>
</form>
<div id="payload-result" role="status"></div>
</section>
${
  checkpoint === null
    ? null
    : html`<section id="receipt-check" aria-labelledby="receipt-heading" hidden>
<h2 id="receipt-heading">${texts.receiptHeading}</h2>
<p>${texts.receiptAbout}
<a href="${basePath}/docs/receipt-verifier.html" download>${texts.receiptFile}</a> ${texts.receiptFileAbout}</p>
${renderReceiptForm(checkpoint.policy, "", locale.texts)}
</section>`
}
<section aria-labelledby="meaning" class="fine">
<h2 id="meaning">${texts.meaning}</h2>
<p>${texts.links}</p>
<p>${texts.hashes}</p>
${
  checkpoint === null
    ? null
    : html`<p>${texts.tree} ${texts.treeVerify} <a href="${basePath}/docs/proof">${texts.treeTool}</a>.</p>`
}
<p>${texts.preserved(locale.time(chain.canonPreservedSinceUtc))}</p>
<pre><code>curl -s '${baseUrl}${history}'</code></pre>
</section>`,
  });
}

/**
 * The page's first sentence: what happened last, in UTC, or which entries of a longer history the page has. The script adds local time and
 * whether the chain is intact.
 */
function renderVerdict({ chain, path, after, limit, locale }: ChainExcerpt): Html | null {
  const last = chain.events.at(-1);
  if (last === undefined) return null;
  const { title, outcome } = describeEvent(last.eventType, locale);
  const { chain: texts } = locale.texts;
  const isWhole = after === 0 && !chain.hasMore;
  const sentence = chain.hasMore
    ? texts.excerpt(after + 1, last.sequence)
    : html`${texts.on(title, locale.time(last.occurredAt, MINUTES))} ${outcome ?? null}`;
  const pending = chain.events.filter((event) => event.sealStatus === "Pending").length;
  const notice =
    pending === 0
      ? null
      : html`<p class="pending">${texts.unsealed(pending)} <a href="${path}?after=${after}&limit=${limit}">${texts.lookAgain}</a></p>`;
  return html`<div id="verdict" class="verdict${pending > 0 ? " waiting" : ""}" role="status" data-whole="${String(isWhole)}"><strong>${sentence}</strong>${notice}</div>`;
}

/** States which entries are in the log. Readers need not trust the statement, because each entry in the log has a proof. */
function renderCheckpoint(
  basePath: string,
  events: readonly PublicEvent[],
  { origin, size }: { origin: string; size: number },
  { texts: { chain: texts } }: Locale,
): Html {
  const outside = events.filter(({ logIndex }) => logIndex === null).map(({ sequence }) => sequence);
  const link = html`<a href="${basePath}/log/checkpoint">${texts.checkpoint(size)}</a>`;
  const log = html`<code>${origin}</code>`;
  if (events.length === 0) return html`<p id="log">${texts.serves(log, link)}</p>`;
  if (outside.length === 0) return html`<p id="log">${texts.allLogged(log, link)}</p>`;
  const missing = outside.length === events.length ? texts.noneLogged(log, link) : texts.someLogged(outside, log, link);
  return html`<p id="log" class="pending">${missing}</p>`;
}

/** @param path of the history, for links to proofs; null without a log. */
function renderTable(events: readonly PublicEvent[], path: string | null, locale: Locale): Html {
  const { number, what, when, seal, leaf, hashes } = locale.texts.chain.columns;
  // The explicit roles repeat those of the elements, because browsers drop them when CSS changes the display of table parts.
  return html`<table class="chain" role="table" aria-labelledby="entries">
<thead role="rowgroup"><tr role="row">
${[number, what, when, seal, ...(path === null ? [] : [leaf]), hashes].map(
  (name) => html`<th role="columnheader" scope="col">${name}</th>\n`,
)}</tr></thead>
<tbody role="rowgroup">
${events.map((event) => renderRow(event, path, locale))}
</tbody>
</table>`;
}

function renderRow(event: PublicEvent, path: string | null, locale: Locale): Html {
  const { title, sentence } = describeEvent(event.eventType, locale);
  const { chain: texts } = locale.texts;
  const sealed = event.sealStatus === "Sealed";
  return html`<tr role="row" id="entry-${event.sequence}"${sealed ? null : html` class="waiting"`} data-event-type="${event.eventType}" data-seal="${event.sealStatus}"${event.logIndex === null ? null : html` data-leaf="${event.logIndex}"`}>
<td role="cell" class="number">${event.sequence}</td>
<th role="rowheader" scope="row" class="what"><strong>${title}</strong> <span class="sentence">${sentence}</span> <span class="type">${event.code} · ${event.eventType}</span></th>
<td role="cell" class="when">${locale.time(event.occurredAt)}</td>
<td role="cell" class="seal"><span class="badge ${sealed ? "good" : "waiting"}">${sealed ? texts.sealed : texts.pending}</span></td>
${path === null ? null : html`<td role="cell" class="leaf">${renderLeaf(event, path, locale)}</td>`}
<td role="cell" class="hashes">${sealed ? renderHashes(event, locale) : texts.notSealedYet}</td>
</tr>
`;
}

function renderLeaf({ sequence, logIndex }: PublicEvent, path: string, { texts: { chain: texts } }: Locale): Html {
  if (logIndex === null) return html`${texts.notInLog}`;
  return html`${texts.leafNumber(logIndex)} · <a href="${path}/${sequence}/proof">${texts.proof}<span class="hidden"> ${texts.ofEntry(sequence)}</span></a>`;
}

/** An entry's hashes, collapsed at first, because few readers compare them. */
function renderHashes({ sequence, recordHash, previousHash }: PublicEvent, { texts: { chain: texts } }: Locale): Html {
  return html`<details><summary>${texts.columns.hashes}<span class="hidden"> ${texts.ofEntry(sequence)}</span></summary>
<dl><dt>${texts.hash}</dt><dd><code class="record-hash copied">${recordHash}</code></dd>
<dt>${texts.previousHash}</dt><dd><code class="previous-hash copied">${previousHash}</code></dd></dl></details>`;
}

function renderBefore(before: PublicEvent | null, { texts: { chain: texts } }: Locale): Html | null {
  if (before === null) return null;
  const hash =
    before.recordHash === null ? texts.notSealedYet : html`<code class="record-hash">${before.recordHash}</code>`;
  return html`<p class="before" id="before" data-sequence="${before.sequence}"><span class="label">${texts.continues(before.sequence)}</span> ${hash}</p>`;
}

function renderPaging({ chain, path, after, limit, locale }: ChainExcerpt): Html | null {
  const { chain: texts } = locale.texts;
  const last = chain.events.at(-1);
  if (after === 0 && !chain.hasMore) return null;
  const earlier = html`<a rel="prev" href="${path}?after=${Math.max(0, after - limit)}&limit=${limit}">${texts.earlier}</a>`;
  const later =
    chain.hasMore && last !== undefined
      ? html`<a rel="next" href="${path}?after=${last.sequence}&limit=${limit}">${texts.later}</a>`
      : null;
  return html`<nav class="paging" aria-label="${texts.pages}">${after > 0 ? earlier : null} ${later}</nav>`;
}
