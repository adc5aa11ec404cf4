import { type Html, html } from "./html.ts";

interface Bar {
  label: string;
  /** The text below the axis. */
  tick?: string | undefined;
  count: number;
}

/** The round number at the top of the scale. It is at least the largest count, and half of it is a whole number. */
function topOf(largest: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, largest)));
  return [2, 4, 6, 8, 10, 20].map((step) => step * power).find((top) => top >= largest) ?? largest;
}

/**
 * A bar with its value for each count, above an axis with names and next to a scale. A phone shows only the largest
 * value. Positions are relative to the picture's size, so texts keep their size. The page must have the same numbers in
 * a table.
 */
export function renderBars(name: string, bars: readonly Bar[], { format }: Intl.NumberFormat): Html {
  const counts = bars.map(({ count }) => count);
  const largest = counts.indexOf(Math.max(...counts));
  const top = topOf(Math.max(...counts));
  const width = 100 / bars.length;
  const percent = (part: number) => `${Math.round(part * 100) / 100}%`;
  const scale = [top, top / 2, 0].map((value) => {
    const y = percent(100 - (100 * value) / top);
    return html`<line x2="100%" y1="${y}" y2="${y}"/><text class="scale" y="${y}" dx="-0.5em" dy="0.3em">\
${format(value)}</text>`;
  });
  return html`<svg class="chart" role="img" aria-label="${name}">
${scale}
${bars.map(({ label, tick, count }, at) => {
  const [height, middle] = [(100 * count) / top, percent((at + 0.5) * width)];
  return html`<rect x="${percent((at + 0.1) * width)}" y="${percent(100 - height)}" width="${percent(0.8 * width)}" \
height="${percent(height)}"><title>${label}: ${format(count)}</title></rect>\
${
  count === 0
    ? null
    : html`<text class="value"${at === largest ? html` data-largest` : null} \
x="${middle}" y="${percent(100 - height)}">${format(count)}</text>`
}\
${tick === undefined ? null : html`<text class="tick" x="${middle}" y="100%" dy="1.5em">${tick}</text>`}`;
})}</svg>`;
}
