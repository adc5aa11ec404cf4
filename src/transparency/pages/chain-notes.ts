import type pg from "pg";
import type { Bulkhead } from "../../core/callers/bulkhead.ts";
import type { PublicEvent } from "../../core/chain/api/events.ts";
import type { ReadChainNotes } from "../../pages/chain-page.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import type { Locale } from "../../pages/locale.ts";
import { renderReceiptForm } from "../../pages/receipt-form.ts";
import { findCheckpoint } from "../read-log.ts";

interface Deps {
  pool: pg.Pool;
  publicReads: Bulkhead<"visitor">;
  config: Site;
}

/** States which entries of a history are in the log, and how to check that. Null before the first checkpoint. */
export const readChainNotes: ReadChainNotes<Deps> = async (deps, visitor, { events, path, locale }) => {
  const checkpoint = await deps.publicReads(visitor, () => findCheckpoint(deps.pool));
  if (checkpoint === null) return null;
  const { basePath } = deps.config;
  const { chain: texts } = locale.texts;
  return {
    statement: renderCheckpoint(basePath, events, checkpoint, locale),
    column: { name: texts.columns.leaf, className: "leaf", cell: (event) => renderLeaf(event, path, locale) },
    section: html`<section id="receipt-check" aria-labelledby="receipt-heading" hidden>
<h2 id="receipt-heading">${texts.receiptHeading}</h2>
<p>${texts.receiptAbout}
<a href="${basePath}/docs/receipt-verifier.html" download>${texts.receiptFile}</a> ${texts.receiptFileAbout}</p>
${renderReceiptForm(checkpoint.policy, "", locale.texts)}
</section>`,
    meaning: html`<p>${texts.tree} ${texts.treeVerify} <a href="${basePath}/docs/proof">${texts.treeTool}</a>.</p>`,
  };
};

/**
 * States which entries are in the log. Readers need not trust this statement, because each logged entry has a proof.
 */
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

function renderLeaf({ sequence, logIndex }: PublicEvent, path: string, { texts: { chain: texts } }: Locale): Html {
  if (logIndex === null) return html`${texts.notInLog}`;
  return html`${texts.leafNumber(logIndex)} · <a href="${path}/${sequence}/proof">${texts.proof}\
<span class="hidden"> ${texts.ofEntry(sequence)}</span></a>`;
}
