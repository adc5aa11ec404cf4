// Draws the plots of the overview from its tables, and replaces changed parts every five seconds. Loaded after uPlot.
const EVERY_MS = 5_000;
const KINDS = {
  counts: [
    ["Redemptions", "--accent", []],
    ["Claims", "--waiting", [6, 3]],
    ["Refusals", "--bad", [2, 2]],
    ["Without an answer", "--ink", [10, 3]],
  ],
  latencies: [
    ["p50", "--accent", []],
    ["p99", "--bad", [6, 3]],
  ],
};

/** The columns of a table, oldest row first. A dash becomes null. */
function readTable(id) {
  const rows = [...document.querySelectorAll(`#${id} tbody tr`)].reverse();
  const times = rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1_000);
  const columns = Array.from({ length: (rows[0]?.cells.length ?? 1) - 1 }, (_, column) =>
    rows.map((row) => {
      const text = row.cells[column + 1].textContent;
      return text === "–" ? null : Number(text);
    }),
  );
  return [times, ...columns];
}

/** The colour of a CSS custom property, in a form that a canvas accepts. */
function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

let plots = [];

function drawPlots() {
  for (const { plot } of plots) plot.destroy();
  const [ink, line] = [colour("--soft"), colour("--line")];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  plots = [...document.querySelectorAll("[data-plot]")].map((place) => {
    place.hidden = false;
    const { plot: kind, of } = place.dataset;
    const options = {
      width: place.clientWidth - 16,
      height: 200,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "UTC"),
      cursor: { drag: { x: false } },
      scales: { y: { range: (_plot, _min, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
      axes: [
        { ...axis, values: (_plot, ticks) => ticks.map(clock) },
        { ...axis, size: 60 },
      ],
      series: [
        { label: "UTC", value: (_plot, seconds) => (seconds === null ? "–" : clock(seconds)) },
        ...KINDS[kind].map(([label, name, dash]) => ({
          label,
          stroke: colour(name),
          dash,
          width: 2,
          spanGaps: true,
          points: { show: kind === "latencies" },
        })),
      ],
    };
    const plot = { plot: new uPlot(options, readTable(of), place), place, of };
    markEmpty(plot);
    return plot;
  });
}

/** Without a number above zero, the style sheet shows a sentence in place of the plot. */
function markEmpty({ place, of }) {
  const [, ...columns] = readTable(of);
  place.toggleAttribute("data-empty", !columns.flat().some((value) => value > 0));
}

const clock = (seconds) => new Date(seconds * 1_000).toISOString().slice(11, 16);

/** Whether a reader has focused an element in this part or selected text in it. */
function isInUse(part) {
  const selection = getSelection();
  const isSelected = selection !== null && !selection.isCollapsed && selection.containsNode(part, true);
  return isSelected || part.contains(document.activeElement);
}

/** Replaces the parts that differ, and scrolls so that the first visible part keeps its position. */
function replaceParts(next) {
  const anchors = [...document.querySelectorAll("main h2, main h3, main [data-live]")];
  const anchor = anchors.find((element) => element.getBoundingClientRect().top >= 0);
  const before = anchor?.getBoundingClientRect().top ?? 0;
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = next.getElementById(part.id);
    if (fresh === null || fresh.innerHTML === part.innerHTML || isInUse(part)) continue;
    const scrolled = [...part.querySelectorAll(".scroll")].map(({ scrollTop, scrollLeft }) => [scrollLeft, scrollTop]);
    part.replaceChildren(...fresh.childNodes);
    for (const [index, box] of part.querySelectorAll(".scroll").entries()) box.scrollTo(...(scrolled[index] ?? [0, 0]));
  }
  if (anchor !== undefined) scrollBy(0, anchor.getBoundingClientRect().top - before);
}

async function refresh() {
  if (document.visibilityState === "visible") {
    try {
      const response = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (response.ok) {
        replaceParts(new DOMParser().parseFromString(await response.text(), "text/html"));
        for (const shown of plots) {
          shown.plot.setData(readTable(shown.of));
          markEmpty(shown);
        }
      }
      document.documentElement.toggleAttribute("data-stale", !response.ok);
      // The sign-in has ended. Another request would count as another failed sign-in from this address.
      if (response.status === 401) return;
    } catch {
      document.documentElement.toggleAttribute("data-stale", true);
    }
  }
  setTimeout(refresh, EVERY_MS);
}

drawPlots();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPlots);
addEventListener("resize", () => {
  for (const { plot, place } of plots) plot.setSize({ width: place.clientWidth - 16, height: 200 });
});
setTimeout(refresh, EVERY_MS);
