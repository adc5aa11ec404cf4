import { type Html, html } from "./html.ts";

/** A bar for each count, scaled to the largest. The page must have the same numbers in a table. */
export function renderBars(name: string, bars: readonly { label: string; count: number }[]): Html {
  const largest = Math.max(1, ...bars.map(({ count }) => count));
  return html`<svg class="chart" viewBox="0 0 ${bars.length} ${largest}" preserveAspectRatio="none" role="img" \
aria-label="${name}">
${bars.map(
  ({ label, count }, at) => html`<rect x="${at + 0.1}" y="${largest - count}" width="0.8" height="${count}">\
<title>${label}: ${count}</title></rect>`,
)}</svg>`;
}
