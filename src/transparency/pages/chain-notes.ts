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
  const { t } = locale;
  return {
    statement: renderCheckpoint(basePath, events, checkpoint, locale),
    column: { name: t("transparency.leaf"), className: "leaf", cell: (event) => renderLeaf(event, path, locale) },
    section: html`<section id="receipt-check" aria-labelledby="receipt-heading" hidden>
<h2 id="receipt-heading">${t("transparency.receiptHeading")}</h2>
<p>${t("transparency.receiptAbout")}
<a href="${basePath}/docs/receipt-verifier.html" download>${t("transparency.receiptFile")}</a> \
${t("transparency.receiptFileAbout")}</p>
${renderReceiptForm(checkpoint.policy, "", locale)}
</section>`,
    meaning: html`<p>${t("transparency.tree")} ${t("transparency.treeVerify")} \
<a href="${basePath}/docs/proof">${t("transparency.treeTool")}</a>.</p>`,
  };
};

/** States which entries are in the log. Readers can verify this with the proof of each logged entry. */
function renderCheckpoint(
  basePath: string,
  events: readonly PublicEvent[],
  { origin, size }: { origin: string; size: number },
  { t, markup }: Locale,
): Html {
  const outside = events.filter(({ logIndex }) => logIndex === null).map(({ sequence }) => sequence);
  const link = html`<a href="${basePath}/log/checkpoint">${t("transparency.checkpoint", { leaves: size })}</a>`;
  const log = html`<code>${origin}</code>`;
  if (events.length === 0) return html`<p id="log">${markup("transparency.serves", { log, checkpoint: link })}</p>`;
  if (outside.length === 0) return html`<p id="log">${markup("transparency.allLogged", { log, checkpoint: link })}</p>`;
  const missing =
    outside.length === events.length
      ? markup("transparency.noneLogged", { log, checkpoint: link })
      : markup("transparency.someLogged", {
          count: outside.length,
          missing: outside.join(", "),
          log,
          checkpoint: link,
        });
  return html`<p id="log" class="pending">${missing}</p>`;
}

function renderLeaf({ sequence, logIndex }: PublicEvent, path: string, { t }: Locale): Html {
  if (logIndex === null) return html`${t("transparency.notInLog")}`;
  return html`${t("transparency.leafNumber", { index: logIndex })} · \
<a href="${path}/${sequence}/proof">${t("transparency.proof")}\
<span class="hidden"> ${t("chain.ofEntry", { sequence })}</span></a>`;
}
