import type { Page } from "../../console/visit.ts";
import { runbookPath } from "../../pages/documents.ts";
import { type Html, html } from "../../pages/html.ts";
import type { Site } from "../../pages/layout.ts";
import { COUNT, layOutForOperators, renderFacts, renderFigures, renderTable } from "../../pages/operator-frame.ts";
import { renderTime } from "../../pages/time.ts";
import type { DepsOf } from "../../platform/http/endpoint.ts";
import type { TlogRetirement } from "../db/log-retirements.ts";
import { readTlogStatus, type TlogStatus, type WitnessStatus } from "../read-log-status.ts";

/** The page of the log: its tree, the served checkpoint, the witnesses, the anchors and the retired logs. */
export const tlogPage: Page<DepsOf<typeof readTlogStatus>> = async ({ ctx, site }) => {
  const status = await readTlogStatus(ctx);
  const main =
    status === null
      ? html`<p class="notice">This deployment has no log. <code>voucherctl log init</code> begins it.</p>`
      : renderStatus(site, status);
  return layOutForOperators(site, "Log", html`<h1>Transparency log</h1>\n${main}`);
};

function renderStatus(site: Site, { origin, size, published, quorum, witnesses, pass, retirements }: TlogStatus): Html {
  const refused = pass?.report.refused ?? null;
  const entry = pass?.report.obstacle === "witnesses" ? "VouchersLogStopped" : "VouchersLogRefused";
  return html`${
    refused === null
      ? null
      : html`<div class="verdict bad"><strong>The log is refused: no new checkpoint is served</strong><p>${refused}
<a href="${runbookPath(site, entry)}">What to do</a></p></div>`
  }
${renderFigures(
  ["Leaves", COUNT.format(size)],
  ["Served", published === null ? "–" : COUNT.format(published.size)],
  ["Age of the checkpoint", published === null ? "–" : seconds(published.ageMs)],
)}
${renderFacts([
  ["Log", html`<code>${origin}</code>`],
  ["Lag", published === null ? "No checkpoint yet" : renderLag(size, published)],
  ["Last pass", renderPass(pass)],
])}
<h2>Witnesses</h2>
${
  witnesses.length === 0
    ? html`<p>The policy names no witness: this log could show two histories. <code>LOG_POLICY</code> names them.</p>`
    : html`<p>${
        quorum === null
          ? "The policy requires none of them."
          : html`The policy requires \
<code>${quorum}</code>.`
      }</p>
${renderTable("Witnesses", ["Witness", "Has cosigned", "The served checkpoint"], witnesses.map(renderWitness), "")}`
}
<h2>Anchors</h2>
${renderAnchors(size, pass)}
${
  retirements.length === 0
    ? null
    : html`<h2>Retired logs</h2>
${renderTable("Retired logs", ["Log", "Its tree", "Retired", "Reason"], retirements.map(renderRetirement), "")}`
}
${published === null ? null : html`<h2>The served checkpoint</h2>\n<pre><code>${published.note}</code></pre>`}`;
}

const leaves = (count: number) => `${COUNT.format(count)} ${count === 1 ? "leaf" : "leaves"}`;
const seconds = (ms: number) => `${COUNT.format(Math.round(ms / 1_000))} s`;

function renderLag(size: number, published: { size: number; lagMs: number }): Html {
  const unserved = size - published.size;
  if (published.lagMs === 0) return html`None: nothing waits`;
  return html`Events have waited for up to ${seconds(published.lagMs)}; the tree has ${leaves(unserved)} that are not \
served yet`;
}

function renderPass(pass: TlogStatus["pass"]): Html {
  if (pass === null) return html`Unknown: no worker with the log's key has run, or Redis does not answer`;
  const { placed, durationMs } = pass.report;
  return html`${renderTime(pass.at)}: ${leaves(placed)} placed in ${COUNT.format(durationMs)} ms`;
}

function renderWitness({ name, url, size, cosignedAt }: WitnessStatus): (Html | string)[] {
  return [
    html`<code>${name}</code>${url === null ? html` (no address)` : html` <span class="fine">${url}</span>`}`,
    size === null ? "nothing yet" : leaves(size),
    cosignedAt === null
      ? html`<span class="badge bad">Not cosigned</span>`
      : html`<span class="badge good">Cosigned</span> ${renderTime(cosignedAt)}`,
  ];
}

function renderRetirement({ origin, size, retiredAt, reason }: TlogRetirement): (Html | string)[] {
  return [html`<code>${origin}</code>`, leaves(size), renderTime(retiredAt), reason];
}

function renderAnchors(size: number, pass: TlogStatus["pass"]): Html {
  if (pass === null) return html`<p>The worker that has the log's key knows them. Its last pass is unknown.</p>`;
  const { anchors } = pass.report;
  if (anchors.length === 0) return html`<p>The worker has none, or could not read one of them.</p>`;
  const rows = anchors.map(({ file, size: known }) => [
    html`<code>${file}</code>`,
    known === null ? "–" : leaves(known),
    renderAnchorState(known, size),
  ]);
  return html`<p>As the last pass has read or written them.</p>
${renderTable("Anchors", ["File", "Remembers", "State"], rows, "")}`;
}

function renderAnchorState(known: number | null, size: number): Html {
  if (known === null) return html`<span class="badge bad">Missing</span>`;
  if (known > size) return html`<span class="badge bad">Larger than the database</span>`;
  return html`<span class="badge good">Within the tree</span>`;
}
