import { type Html, html } from "./html.ts";

const HEIGHT = 100;
const STEP = 10;

/** A bar for each count, scaled to the largest. The page must have the same numbers in a table. */
export function renderBars(name: string, bars: readonly { label: string; count: number }[]): Html {
  const largest = Math.max(1, ...bars.map(({ count }) => count));
  return html`<svg viewBox="0 0 ${bars.length * STEP} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${name}">
${bars.map(({ label, count }, at) => {
  const height = Math.round((count / largest) * HEIGHT * 100) / 100;
  return html`<rect x="${at * STEP + 1}" y="${HEIGHT - height}" width="${STEP - 2}" height="${height}"><title>${label}: ${count}</title></rect>`;
})}</svg>`;
}
