import type pg from "pg";
import type { Bulkhead, Requester } from "../core/callers/bulkhead.ts";
import { findVoucherFace } from "../core/catalog/db/brand-faces.ts";
import { eventsPageQuery, type PublicChain, type PublicEvent } from "../core/chain/api/events.ts";
import { readPublicChain } from "../core/chain/read-chain.ts";
import { type Confirming, readConfirmed } from "../core/commit/confirm-reads.ts";
import { AppError } from "../platform/api/errors.ts";
import { type DepsOf, validate } from "../platform/http/endpoint.ts";
import type { Visitor } from "../platform/http/middleware/caller-signal.ts";
import { ASSETS } from "./assets.ts";
import { describeEvent } from "./event-words.ts";
import { type Html, html } from "./html.ts";
import { layOut, renderSandboxNotice, type Site } from "./layout.ts";
import { type Locale, renderScriptTexts } from "./locale.ts";
import { MINUTES } from "./time.ts";

/** The last segment of this page's path, after the path of the voucher's page. */
export const EXPERTS = "/history";

/** The path of a voucher's page, and of its JSON. */
export const historyPath = ({ basePath }: { basePath: string }, { entityType, entityId }: PublicChain): string =>
  `${basePath}/integrity/events/${encodeURIComponent(entityType)}/${encodeURIComponent(entityId)}`;

/** Reads what a voucher's pages show in addition to its chain. @throws AppError `entity_not_found`, `overloaded`. */
export async function readFace(
  deps: Confirming & { pool: pg.Pool; publicReads: Bulkhead<"visitor"> },
  visitor: Requester<"visitor">,
  voucherId: string,
) {
  const face = await readConfirmed(deps, () => deps.publicReads(visitor, () => findVoucherFace(deps.pool, voucherId)));
  if (face === null) throw new AppError("entity_not_found");
  return face;
}

interface ChainNotes {
  /** Shown above the entries. */
  statement: Html;
  /** A column of the table of entries. The style sheet selects its cells by the class. */
  column: { name: string; className: string; cell: (event: PublicEvent) => Html };
  /** Shown below the entries. */
  section: Html;
  /** A paragraph about what this page proves. */
  meaning: Html;
}

/** Reads what an optional feature (wing) adds to the page of the history at `path`, or null. */
export type ReadChainNotes<Deps = never> = (
  deps: Deps,
  visitor: Visitor,
  shown: { events: readonly PublicEvent[]; path: string; locale: Locale },
) => Promise<ChainNotes | null>;

/** The part of a chain on one page: events with a sequence greater than `after`. */
interface ChainExcerpt {
  chain: PublicChain;
  /** The path of the voucher. */
  path: string;
  after: number;
  limit: number;
  locale: Locale;
}

/** The page of a voucher's chain for experts. A script in the browser checks the entries. */
export async function renderChain<Deps extends DepsOf<typeof readPublicChain> & { config: Site }>(
  deps: Deps,
  ofWings: readonly ReadChainNotes<Deps>[],
  visitor: Visitor,
  { entityType, entityId }: { entityType: string; entityId: string },
  query: unknown,
  ofReader: Locale,
): Promise<Html> {
  const { after, limit } = validate(eventsPageQuery, query);
  // Reads the event before the page too, because the page's first event is linked to it.
  const overlap = Math.min(after, 1);
  const chain = await readPublicChain(deps, visitor, entityType, entityId, {
    after: after - overlap,
    limit: limit + overlap,
  });
  const before = chain.events[0]?.sequence === after ? (chain.events.shift() ?? null) : null;
  const { timeZone, productName, brand } = await readFace(deps, visitor, chain.entityId);
  const locale = ofReader.in(timeZone);
  const { baseUrl } = deps.config;
  const excerpt = { chain, path: historyPath(deps.config, chain), after, limit, locale };
  const notes: ChainNotes[] = [];
  for (const read of ofWings)
    notes.push(...[(await read(deps, visitor, { ...excerpt, events: chain.events })) ?? []].flat());
  const { t, markup } = locale;
  const names = { product: html`<bdi>${productName}</bdi>`, brand: html`<bdi>${brand}</bdi>` };
  return layOut(deps.config, {
    locale,
    title: t(chain.sandbox ? "chain.sandboxTitle" : "chain.title", { id: chain.entityId }),
    scripts: [ASSETS.chainScript],
    description: t("chain.description"),
    main: html`<h1>${t("chain.heading")}</h1>
<p class="lead">${markup("frame.from", names)}</p>
${chain.sandbox ? renderSandboxNotice(locale) : null}
<p class="entity"><span class="label">${t("chain.voucher")}</span> \
<code id="entity-id" class="copied" data-entity-type="${chain.entityType}" data-time-zone="${timeZone}">\
${chain.entityId}</code></p>
<p><a href="${excerpt.path}">${t("chain.forPeople")}</a></p>
${renderScriptTexts(locale)}${renderVerdict(excerpt)}
<noscript><p class="notice">${t("chain.noScript")}</p></noscript>
<section aria-labelledby="entries">
<h2 id="entries">${t("chain.happened")}</h2>
${renderBefore(before, locale)}
${notes.map(({ statement }) => statement)}
${
  chain.events.length === 0
    ? html`<p class="notice">${t("chain.noneAfter", { sequence: after })}</p>`
    : renderTable(chain.events, notes, locale)
}
${renderPaging(excerpt)}
</section>
${renderPayloadForm(locale)}
${notes.map(({ section }) => section)}
<details class="experts fine"><summary>${t("frame.experts")}</summary>
<h2 id="meaning">${t("chain.meaning")}</h2>
<p>${t("chain.links")}</p>
<p>${t("chain.hashes")}</p>
${notes.map(({ meaning }) => meaning)}
<p>${markup("chain.preserved", { time: locale.time(chain.canonPreservedSinceUtc) })}</p>
<pre><code>curl -s '${historyPath({ basePath: baseUrl }, chain)}'</code></pre>
</details>`,
  });
}

const renderPayloadForm = ({ t }: Locale) => html`<section id="payload-check" aria-labelledby="payload-heading" hidden>
<h2 id="payload-heading">${t("chain.payloadHeading")}</h2>
<p>${t("chain.payloadAbout")}</p>
<form id="payload-form">
<label for="payload">${t("chain.payloadLabel")}</label>
<textarea id="payload" rows="5" spellcheck="false" autocomplete="off" autocapitalize="off"></textarea>
<button type="submit">${t("chain.payloadButton")}</button>
</form>
<div id="payload-result" role="status"></div>
</section>`;

/**
 * The page's first sentence: the last event and its time in the organization's time zone, or the range of entries if
 * the page shows only a part. The page's script adds the time in the reader's zone, and whether the chain is intact.
 */
function renderVerdict({ chain, path, after, limit, locale }: ChainExcerpt): Html | null {
  const last = chain.events.at(-1);
  if (last === undefined) return null;
  const { title, outcome } = describeEvent(last.eventType, locale);
  const { t, markup } = locale;
  const isWhole = after === 0 && !chain.hasMore;
  const sentence = chain.hasMore
    ? t("chain.excerpt", { first: after + 1, last: last.sequence })
    : html`${markup("chain.on", { event: title, time: locale.time(last.occurredAt, MINUTES) })} ${outcome ?? null}`;
  const pending = chain.events.filter((event) => event.sealStatus === "Pending").length;
  const notice =
    pending === 0
      ? null
      : html`<p class="pending">${t("chain.unsealed", { count: pending })} \
<a href="${path}${EXPERTS}?after=${after}&limit=${limit}">${t("chain.lookAgain")}</a></p>`;
  const waiting = pending > 0 ? " waiting" : "";
  return html`<div id="verdict" class="verdict${waiting}" role="status" data-whole="${String(isWhole)}">\
<strong>${sentence}</strong>${notice}</div>`;
}

function renderTable(events: readonly PublicEvent[], notes: readonly ChainNotes[], locale: Locale): Html {
  const { t } = locale;
  const columns = [
    ...(["number", "what", "when", "seal"] as const).map((name) => t(`chain.columns.${name}`)),
    ...notes.map(({ column }) => column.name),
    t("chain.columns.hashes"),
  ];
  // Browsers drop the elements' own roles when CSS changes the display of table parts.
  return html`<table class="chain" role="table" aria-labelledby="entries">
<thead role="rowgroup"><tr role="row">
${columns.map((name) => html`<th role="columnheader" scope="col">${name}</th>\n`)}</tr></thead>
<tbody role="rowgroup">
${events.map((event) => renderRow(event, events, notes, locale))}
</tbody>
</table>`;
}

/** States that an entry's content was erased (and when, if the page shows the erasing entry) or is lost. */
function sayErased(
  { erasedBy, payloadKept, sealStatus }: PublicEvent,
  events: readonly PublicEvent[],
  locale: Locale,
): Html | null {
  if (erasedBy === undefined)
    return payloadKept || sealStatus === "Pending" ? null : html` <em>${locale.t("chain.lost")}</em>`;
  const erasing = events.find(({ sequence }) => sequence === erasedBy);
  return erasing === undefined
    ? html` ${locale.markup("chain.erasedBy", { entry: erasedBy })}`
    : html` ${locale.markup("chain.erasedAt", { time: locale.time(erasing.occurredAt, MINUTES) })}`;
}

function renderRow(
  event: PublicEvent,
  events: readonly PublicEvent[],
  notes: readonly ChainNotes[],
  locale: Locale,
): Html {
  const { title, sentence } = describeEvent(event.eventType, locale);
  const { t } = locale;
  const sealed = event.sealStatus === "Sealed";
  const leaf = event.logIndex === null ? null : html` data-leaf="${event.logIndex}"`;
  const erasedBy = event.erasedBy === undefined ? null : html` data-erased-by="${event.erasedBy}"`;
  const erases = event.erasedSequences && html` data-erases="${event.erasedSequences.join(" ")}"`;
  return html`<tr role="row" id="entry-${event.sequence}"${sealed ? null : html` class="waiting"`} \
data-event-type="${event.eventType}" data-seal="${event.sealStatus}" data-kept="${String(event.payloadKept)}"\
${leaf}${erasedBy}${erases ?? null}>
<td role="cell" class="number">${event.sequence}</td>
<th role="rowheader" scope="row" class="what"><strong>${title}</strong> \
<span class="sentence">${sentence}${sayErased(event, events, locale)}</span></th>
<td role="cell" class="when">${locale.time(event.occurredAt)}</td>
<td role="cell" class="seal"><span class="badge ${sealed ? "good" : "waiting"}">\
${sealed ? t("chain.sealed") : t("chain.pending")}</span></td>
${notes.map(({ column }) => html`<td role="cell" class="${column.className}">${column.cell(event)}</td>`)}
<td role="cell" class="hashes">${sealed ? renderHashes(event, locale) : t("chain.notSealedYet")}</td>
</tr>
`;
}

/** An entry's hashes, initially collapsed, because few readers compare them. */
function renderHashes({ sequence, code, eventType, recordHash, previousHash }: PublicEvent, { t }: Locale): Html {
  return html`<details><summary>${t("chain.columns.hashes")}\
<span class="hidden"> ${t("chain.ofEntry", { sequence })}</span></summary>
<p class="type">${code} · ${eventType}</p>
<dl><dt>${t("chain.hash")}</dt><dd><code class="record-hash copied">${recordHash}</code></dd>
<dt>${t("chain.previousHash")}</dt><dd><code class="previous-hash copied">${previousHash}</code></dd></dl></details>`;
}

function renderBefore(before: PublicEvent | null, { t }: Locale): Html | null {
  if (before === null) return null;
  const hash =
    before.recordHash === null ? t("chain.notSealedYet") : html`<code class="record-hash">${before.recordHash}</code>`;
  return html`<p class="before" id="before" data-sequence="${before.sequence}">\
<span class="label">${t("chain.continues", { sequence: before.sequence })}</span> ${hash}</p>`;
}

function renderPaging({ chain, path, after, limit, locale }: ChainExcerpt): Html | null {
  const { t } = locale;
  const last = chain.events.at(-1);
  if (after === 0 && !chain.hasMore) return null;
  const before = Math.max(0, after - limit);
  const earlier = html`<a rel="prev" href="${path}${EXPERTS}?after=${before}&limit=${limit}">${t("chain.earlier")}</a>`;
  const later =
    chain.hasMore && last !== undefined
      ? html`<a rel="next" href="${path}${EXPERTS}?after=${last.sequence}&limit=${limit}">${t("chain.later")}</a>`
      : null;
  return html`<nav class="paging" aria-label="${t("chain.pages")}">${after > 0 ? earlier : null} ${later}</nav>`;
}
