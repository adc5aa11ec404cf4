import { eventsPageQuery, type PublicChain, type PublicEvent } from "../../contract/events.ts";
import type { ApiContext } from "../../open-api.ts";
import { readPublicChain } from "../../services/chain/read-chain.ts";
import { findCheckpoint } from "../../services/log/read-log.ts";
import { validate } from "../endpoint.ts";
import { ASSETS } from "./assets.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, SANDBOX_NOTICE } from "./layout.ts";
import { renderReceiptForm } from "./receipt-form.ts";
import { MINUTES, renderTime } from "./time.ts";

/** One page of a chain: its events have a greater sequence than `after`. */
interface ChainExcerpt {
  chain: PublicChain;
  /** The path of the history. */
  path: string;
  after: number;
  limit: number;
}

/** The public page of a voucher's chain, with the same content as the JSON: a timeline, which a script checks in the browser. */
export async function renderChain(
  ctx: ApiContext,
  entityType: string,
  entityId: string,
  query: unknown,
): Promise<Html> {
  const { after, limit } = validate(eventsPageQuery, query);
  // Also reads the event before the page, which the page's first event links to.
  const overlap = Math.min(after, 1);
  const chain = await readPublicChain(ctx, entityType, entityId, { after: after - overlap, limit: limit + overlap });
  const before = chain.events[0]?.sequence === after ? (chain.events.shift() ?? null) : null;
  // Null before the log's first checkpoint.
  const checkpoint = await findCheckpoint(ctx);
  const { basePath, baseUrl } = ctx.config;
  const history = `/integrity/events/${encodeURIComponent(chain.entityType)}/${encodeURIComponent(chain.entityId)}`;
  const excerpt = { chain, path: basePath + history, after, limit };
  return layOut(ctx.config, {
    title: `${chain.sandbox ? "Sandbox: voucher" : "Voucher"} history ${chain.entityId}`,
    scripts: [ASSETS.chainScript],
    description: "What happened to a voucher, entry by entry, and whether its history is intact.",
    main: html`<h1>Voucher history</h1>
${chain.sandbox ? SANDBOX_NOTICE : null}
<p class="entity"><span class="label">Voucher</span> <code id="entity-id" class="copied" data-entity-type="${chain.entityType}">${chain.entityId}</code></p>
${renderVerdict(excerpt)}
<noscript><p class="notice">With JavaScript, this page checks the chain of hashes in your browser and shows your local time. Without
it, compare by eye: the previous hash of each entry must be the hash of the entry above it.</p></noscript>
<section aria-labelledby="entries">
<h2 id="entries">What happened</h2>
${renderBefore(before)}
${checkpoint === null ? null : renderCheckpoint(basePath, chain.events, checkpoint)}
${chain.events.length === 0 ? html`<p class="notice">There are no entries after number ${after}.</p>` : renderTable(chain.events, checkpoint === null ? null : excerpt.path)}
${renderPaging(excerpt)}
</section>
<section id="payload-check" aria-labelledby="payload-heading" hidden>
<h2 id="payload-heading">Check a payload</h2>
<p>A payload is the exact text of one entry, as the API returns it to the voucher's partner. Paste it to see whether it is what was
sealed. It stays on this page: nothing is sent.</p>
<form id="payload-form">
<label for="payload">Payload of one entry</label>
<textarea id="payload" rows="5" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<button type="submit">Hash and compare</button>
</form>
<div id="payload-result" role="status"></div>
</section>
${
  checkpoint === null
    ? null
    : html`<section id="receipt-check" aria-labelledby="receipt-heading" hidden>
<h2 id="receipt-heading">Do you hold a receipt?</h2>
<p>Paste a receipt of any voucher, or the proof of an entry above, to see what it proves. It stays on this page: nothing is sent.
<a href="${basePath}/docs/receipt-verifier.html" download>The same as a file</a> works from your disk, without this service.</p>
${renderReceiptForm(checkpoint.policy)}
</section>`
}
<section aria-labelledby="meaning" class="fine">
<h2 id="meaning">What this page proves, and what it does not</h2>
<p>Each entry is sealed with a hash, a fingerprint of its content, and contains the hash of the previous entry. Changing, removing or
inserting an entry later breaks this chain of hashes.</p>
<p>The hashes are SHA-256. They are public; the content of the entries is not, because it includes the voucher's code. Anyone who has
the text of an entry can hash it and compare it with the hash here. Anyone who noted a hash earlier can check that it has not changed.
This page cannot prove that no event was left out before it was recorded.</p>
${
  checkpoint === null
    ? null
    : html`<p>The log is one tree over the entries of all vouchers, which others keep and compare. A receipt or a proof shows that an entry is
in it; verify one here, or <a href="${basePath}/docs/proof">with a tool of your own</a>.</p>`
}
<p>The text of each entry is preserved unchanged since ${renderTime(chain.canonPreservedSinceUtc)}. The same chain for programs:</p>
<pre><code>curl -s '${baseUrl}${history}'</code></pre>
</section>`,
  });
}

/**
 * The page's first sentence: what happened last, in UTC, or which entries of a longer history the page has. The script adds local time and
 * whether the chain is intact.
 */
function renderVerdict({ chain, path, after, limit }: ChainExcerpt): Html | null {
  const last = chain.events.at(-1);
  if (last === undefined) return null;
  const { title, outcome } = describeEvent(last.eventType);
  const isWhole = after === 0 && !chain.hasMore;
  const sentence = chain.hasMore
    ? html`Entries ${after + 1} to ${last.sequence} of a longer history.`
    : html`${title} on ${renderTime(last.occurredAt, MINUTES)}. ${outcome ?? null}`;
  const pending = chain.events.filter((event) => event.sealStatus === "Pending").length;
  const notice =
    pending === 0
      ? null
      : html`<p class="pending">${pending === 1 ? "One entry is" : `${pending} entries are`} not sealed yet. Sealing usually happens within seconds. <a href="${path}?after=${after}&limit=${limit}">Look again</a></p>`;
  return html`<div id="verdict" class="verdict${pending > 0 ? " waiting" : ""}" role="status" data-whole="${String(isWhole)}"><strong>${sentence}</strong>${notice}</div>`;
}

/** States which entries are in the log. Readers need not trust the statement, because each entry in the log has a proof. */
function renderCheckpoint(
  basePath: string,
  events: readonly PublicEvent[],
  { origin, size }: { origin: string; size: number },
): Html {
  const outside = events.filter(({ logIndex }) => logIndex === null).map(({ sequence }) => sequence);
  const link = html`<a href="${basePath}/log/checkpoint">checkpoint of ${size} ${size === 1 ? "leaf" : "leaves"}</a>`;
  const upTo = html`in the log <code>${origin}</code>, up to its ${link}`;
  if (events.length === 0) return html`<p id="log">The log <code>${origin}</code> serves its ${link}.</p>`;
  if (outside.length === 0) return html`<p id="log">Every entry here is ${upTo}.</p>`;
  const missing =
    outside.length === events.length
      ? "No entry here is"
      : `${outside.length === 1 ? "Entry" : "Entries"} ${outside.join(", ")} ${outside.length === 1 ? "is" : "are"} not`;
  return html`<p id="log" class="pending">${missing} yet ${upTo}. It usually gets there within seconds.</p>`;
}

/** @param path of the history, for links to proofs; null without a log. */
function renderTable(events: readonly PublicEvent[], path: string | null): Html {
  // The explicit roles repeat those of the elements, because browsers drop them when CSS changes the display of table parts.
  return html`<table class="chain" role="table" aria-labelledby="entries">
<thead role="rowgroup"><tr role="row">
${["Number", "What happened", "When", "Seal", ...(path === null ? [] : ["Leaf"]), "Hashes"].map(
  (name) => html`<th role="columnheader" scope="col">${name}</th>\n`,
)}</tr></thead>
<tbody role="rowgroup">
${events.map((event) => renderRow(event, path))}
</tbody>
</table>`;
}

function renderRow(event: PublicEvent, path: string | null): Html {
  const { title, sentence } = describeEvent(event.eventType);
  const sealed = event.sealStatus === "Sealed";
  return html`<tr role="row" id="entry-${event.sequence}"${sealed ? null : html` class="waiting"`} data-event-type="${event.eventType}" data-seal="${event.sealStatus}"${event.logIndex === null ? null : html` data-leaf="${event.logIndex}"`}>
<td role="cell" class="number">${event.sequence}</td>
<th role="rowheader" scope="row" class="what"><strong>${title}</strong> <span class="sentence">${sentence}</span> <span class="type">${event.code} · ${event.eventType}</span></th>
<td role="cell" class="when">${renderTime(event.occurredAt)}</td>
<td role="cell" class="seal"><span class="badge ${sealed ? "good" : "waiting"}">${sealed ? "Sealed" : "Pending"}</span></td>
${path === null ? null : html`<td role="cell" class="leaf">${renderLeaf(event, path)}</td>`}
<td role="cell" class="hashes">${sealed ? renderHashes(event) : "Not sealed yet"}</td>
</tr>
`;
}

function renderLeaf({ sequence, logIndex }: PublicEvent, path: string): Html {
  if (logIndex === null) return html`Not in the log yet`;
  return html`Leaf ${logIndex} · <a href="${path}/${sequence}/proof">Proof<span class="hidden"> of entry ${sequence}</span></a>`;
}

/** An entry's hashes, collapsed at first, because few readers compare them. */
function renderHashes({ sequence, recordHash, previousHash }: PublicEvent): Html {
  return html`<details><summary>Hashes<span class="hidden"> of entry ${sequence}</span></summary>
<dl><dt>Hash</dt><dd><code class="record-hash copied">${recordHash}</code></dd>
<dt>Previous hash</dt><dd><code class="previous-hash copied">${previousHash}</code></dd></dl></details>`;
}

function renderBefore(before: PublicEvent | null): Html | null {
  if (before === null) return null;
  const hash =
    before.recordHash === null ? "not sealed yet" : html`<code class="record-hash">${before.recordHash}</code>`;
  return html`<p class="before" id="before" data-sequence="${before.sequence}"><span class="label">Continues from entry ${before.sequence}, which has the hash</span> ${hash}</p>`;
}

function renderPaging({ chain, path, after, limit }: ChainExcerpt): Html | null {
  const last = chain.events.at(-1);
  if (after === 0 && !chain.hasMore) return null;
  const earlier = html`<a rel="prev" href="${path}?after=${Math.max(0, after - limit)}&limit=${limit}">Earlier entries</a>`;
  const later =
    chain.hasMore && last !== undefined
      ? html`<a rel="next" href="${path}?after=${last.sequence}&limit=${limit}">Later entries</a>`
      : null;
  return html`<nav class="paging" aria-label="Pages of the history">${after > 0 ? earlier : null} ${later}</nav>`;
}
