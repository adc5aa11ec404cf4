import type { ChainView, PublicEventView } from "../../services/read-chain.ts";
import { ASSETS } from "./assets.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, type Site } from "./layout.ts";

/** One page of a chain. */
export interface ChainExcerpt {
  chain: ChainView<PublicEventView>;
  /** The event before the first one on the page, which that one links to. Null on the first page. */
  before: PublicEventView | null;
  /** Events behind this sequence. */
  after: number;
  limit: number;
}

/** The public page of a voucher's chain: a table that reads as a timeline, which a script checks where there is one. */
export function renderChainPage(site: Site, excerpt: ChainExcerpt): Html {
  const { chain, before } = excerpt;
  const path = `/integrity/events/${encodeURIComponent(chain.entityType)}/${encodeURIComponent(chain.entityId)}`;
  return layOut(site, {
    title: `Voucher history ${chain.entityId}`,
    script: ASSETS.chainScript,
    main: html`<h1>Voucher history</h1>
<p class="entity"><span class="label">Voucher</span> <code id="entity-id" data-entity-type="${chain.entityType}">${chain.entityId}</code></p>
<p class="lead">Everything that happened to this voucher, in order. Each entry is sealed with a hash, a fingerprint of what it
says, and names the hash of the entry before it. Changing, removing or slipping in an entry afterwards would break that chain
of hashes.</p>
<div id="verdict" role="status"></div>
<noscript><p class="notice">This page checks the chain by itself where JavaScript is on. Without it, compare by eye: what each
entry gives as the hash of the entry before must be the hash of the entry above it.</p></noscript>
<section aria-labelledby="entries">
<h2 id="entries">What happened</h2>
${renderBefore(before)}
${chain.events.length === 0 ? html`<p class="notice">There are no entries behind number ${excerpt.after}.</p>` : renderTable(chain.events)}
${renderPaging(`${site.basePath}${path}`, excerpt)}
</section>
<section id="payload-check" aria-labelledby="payload-heading" hidden>
<h2 id="payload-heading">Do you hold a payload?</h2>
<p>A payload is the exact text of one entry, as the partner who holds the voucher reads it from the API. Paste it to see whether
it is what was sealed. It stays in this page: nothing is sent anywhere.</p>
<form id="payload-form">
<label for="payload">Payload of one entry</label>
<textarea id="payload" rows="5" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<button type="submit">Hash and compare</button>
</form>
<div id="payload-result" role="status"></div>
</section>
<section aria-labelledby="meaning" class="fine">
<h2 id="meaning">What this shows, and what it does not</h2>
<p>The hashes are SHA-256. They are public; what the entries say is not, because it holds the voucher's code. Whoever holds an
entry's text can hash it and find the hash here, and whoever noted a hash down earlier can see whether it still stands. The
page cannot show that something was left out before it was ever written down.</p>
<p>Texts are kept unchanged since ${renderTime(chain.canonPreservedSinceUtc)}. The same chain for programs:</p>
<pre><code>curl -s '${site.baseUrl}${path}'</code></pre>
</section>`,
  });
}

function renderTable(events: readonly PublicEventView[]): Html {
  // The roles are those of the elements; browsers forget them where a style gives table parts another display.
  return html`<table class="chain" role="table" aria-labelledby="entries">
<thead role="rowgroup"><tr role="row">
<th role="columnheader" scope="col">Number</th>
<th role="columnheader" scope="col">What happened</th>
<th role="columnheader" scope="col">When</th>
<th role="columnheader" scope="col">Seal</th>
<th role="columnheader" scope="col">Hash</th>
<th role="columnheader" scope="col">Hash of the entry before</th>
</tr></thead>
<tbody role="rowgroup">
${events.map(renderRow)}
</tbody>
</table>`;
}

function renderRow(event: PublicEventView): Html {
  const { title, sentence } = describeEvent(event.eventType);
  const sealed = event.sealStatus === "Sealed";
  return html`<tr role="row" id="entry-${event.sequence}" data-event-type="${event.eventType}" data-seal="${event.sealStatus}">
<td role="cell" class="number">${event.sequence}</td>
<th role="rowheader" scope="row" class="what"><strong>${title}</strong> <span class="sentence">${sentence}</span> <span class="type">${event.code} · ${event.eventType}</span></th>
<td role="cell" class="when">${renderTime(event.occurredAt)}</td>
<td role="cell" class="seal"><span class="badge ${sealed ? "good" : "waiting"}">${sealed ? "Sealed" : "Pending"}</span></td>
<td role="cell" class="hash"><span class="label">Hash</span> ${event.recordHash === null ? "Not sealed yet" : html`<code class="record-hash">${event.recordHash}</code>`}</td>
<td role="cell" class="hash"><span class="label">Hash of the entry before</span> ${event.previousHash === null ? "Not sealed yet" : html`<code class="previous-hash">${event.previousHash}</code>`}</td>
</tr>
`;
}

function renderBefore(before: PublicEventView | null): Html | null {
  if (before === null) return null;
  const hash =
    before.recordHash === null ? "not sealed yet" : html`<code class="record-hash">${before.recordHash}</code>`;
  return html`<p class="before" id="before" data-sequence="${before.sequence}"><span class="label">Continues entry ${before.sequence}, whose hash is</span> ${hash}</p>`;
}

function renderPaging(path: string, { chain, after, limit }: ChainExcerpt): Html | null {
  const last = chain.events.at(-1);
  if (after === 0 && !chain.hasMore) return null;
  const earlier = html`<a rel="prev" href="${path}?after=${Math.max(0, after - limit)}&limit=${limit}">Earlier entries</a>`;
  const later =
    chain.hasMore && last !== undefined
      ? html`<a rel="next" href="${path}?after=${last.sequence}&limit=${limit}">Later entries</a>`
      : null;
  return html`<nav class="paging" aria-label="Pages of the history">${after > 0 ? earlier : null} ${later}</nav>`;
}

const DATE = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });
const TIME = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium", timeZone: "UTC" });

function renderTime(timestamp: string): Html {
  const moment = new Date(timestamp);
  return html`<time datetime="${timestamp}">${DATE.format(moment)}, ${TIME.format(moment)} UTC</time>`;
}
