import { html } from "../pages/html.ts";
import { layOutForOperators } from "../pages/operator-frame.ts";
import type { Page } from "./visit.ts";

/** The names of all faults and alerts, which are also anchors, with links to their entries in the documents. */
export const runbookPage: Page<{ runbook: ReadonlyMap<string, string> }> = async ({ ctx, site }) => {
  const entries = Array.from(
    ctx.runbook,
    ([name, path]) => html`<li id="${name}"><a href="${site.basePath}${path}">${name}</a></li>\n`,
  );
  return layOutForOperators(
    site,
    "Runbook",
    html`<h1>Runbook</h1>
<p><a href="${site.basePath}/docs/runbook">Prepare the commands</a> once. Each entry says what a fault means, where to \
look, and what to do.</p>
<ul class="entries">${entries}</ul>`,
  );
};
