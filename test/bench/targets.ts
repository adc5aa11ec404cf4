import type { LoadCaseId } from "./cases.ts";
import type { ContenderId } from "./contenders.ts";
import { formatTable } from "./format-table.ts";
import type { Growth } from "./growth.ts";
import type { HotVoucher } from "./hot-voucher.ts";
import type { Round, Series } from "./play-rounds.ts";
import { medianOf, totalCpu } from "./show-series.ts";
import { growthOf, type SoakMinute } from "./soak.ts";

/** Everything that was measured in a run. */
export interface Measured {
  series: readonly Series[];
  hot: HotVoucher | null;
  growth: Growth | null;
  soak: readonly SoakMinute[] | null;
}

interface Target {
  title: string;
  /** What is wanted: at least, or at most, this much. */
  goal: { atLeast: number } | { atMost: number };
  /** NaN when it was not measured. */
  measure(measured: Measured): number;
}

/** Deployments of the service, and of baseline (a), on two cores. */
const SERVICE: readonly ContenderId[] = ["service", "service-1-2", "service-2-1", "service-2-2"];
const HAND_WRITTEN: readonly ContenderId[] = ["a", "a-2"];

/** What the service is meant to reach on two cores. Where several deployments played, the best of each side counts. */
const TARGETS: readonly Target[] = [
  ratioTarget("redeem, 64 connections, against (a)", 2, "redeem", 64, SERVICE, HAND_WRITTEN),
  ratioTarget("redeem, 64 connections, against (b)", 2, "redeem", 64, SERVICE, ["b"]),
  ratioTarget("redeem, 256 connections, against (a)", 2.5, "redeem", 256, SERVICE, HAND_WRITTEN),
  ratioTarget("look-up against (c), one process each", 0.8, "lookup", 64, ["service"], ["c"]),
  ratioTarget("look-up against one query per request, one process each", 1.8, "lookup", 64, ["service"], ["a"]),
  ratioTarget("reserve against (a)", 3, "reserve", 64, SERVICE, HAND_WRITTEN),
  {
    title: "redeem alone in an idle system, p50, ms",
    goal: { atMost: 4 },
    measure: ({ series }) => Math.min(...medians(series, "single", 1, ["service"], ({ p50Ms }) => p50Ms)),
  },
  {
    title: "CPU for one redeem at 64 connections, all processes, µs",
    goal: { atMost: 450 },
    measure: ({ series }) => Math.min(...medians(series, "redeem", 64, ["service"], totalCpu)),
  },
  {
    title: "10 000 refused redeems of one voucher, s",
    goal: { atMost: 5 },
    measure: ({ hot }) => hot?.tenThousandSeconds ?? Number.NaN,
  },
  {
    title: "p99 of others beside them, against alone",
    goal: { atMost: 2 },
    measure: ({ hot }) => (hot === null ? Number.NaN : hot.besideHotP99Ms / hot.aloneP99Ms),
  },
  {
    title: "look-ups, many vouchers against few",
    goal: { atLeast: 0.85 },
    measure: ({ growth }) => growth?.lookUpRatio ?? Number.NaN,
  },
  {
    title: "redeems, many vouchers against few",
    goal: { atLeast: 0.85 },
    measure: ({ growth }) => growth?.redeemRatio ?? Number.NaN,
  },
  {
    title: "chain verify --all, events/s",
    goal: { atLeast: 200_000 },
    measure: ({ growth }) => growth?.verifyRate ?? Number.NaN,
  },
  {
    title: "batch issue, vouchers/s",
    goal: { atLeast: 30_000 },
    measure: ({ growth }) => growth?.issueRate ?? Number.NaN,
  },
  {
    title: "API memory, last third of the run against middle",
    goal: { atMost: 1.1 },
    measure: ({ soak }) => (soak === null ? Number.NaN : growthOf(soak, "api")),
  },
  {
    title: "worker memory, last third of the run against middle",
    goal: { atMost: 1.1 },
    measure: ({ soak }) => (soak === null ? Number.NaN : growthOf(soak, "worker")),
  },
];

function ratioTarget(
  title: string,
  atLeast: number,
  caseId: LoadCaseId,
  connections: number,
  ours: readonly ContenderId[],
  theirs: readonly ContenderId[],
): Target {
  const best = ({ series }: Measured, ids: readonly ContenderId[]) =>
    Math.max(...medians(series, caseId, connections, ids, ({ rate }) => rate));
  return {
    title: `${title}, times`,
    goal: { atLeast },
    measure: (measured) => best(measured, ours) / best(measured, theirs),
  };
}

/** What the rounds of contenders say, for each that played; NaN when none did. */
function medians(
  all: readonly Series[],
  caseId: LoadCaseId,
  connections: number,
  ids: readonly ContenderId[],
  what: (round: Round) => number,
): number[] {
  const played = all.filter(
    (series) => series.caseId === caseId && series.connections === connections && ids.includes(series.contender),
  );
  return played.length === 0 ? [Number.NaN] : played.map((series) => medianOf(series, what));
}

/** A table of goals and what was measured; null when nothing was that has one. */
export function showTargets(measured: Measured): string | null {
  const rows = TARGETS.flatMap(({ title, goal, measure }) => {
    const value = measure(measured);
    if (Number.isNaN(value)) return [];
    const isMet = "atLeast" in goal ? value >= goal.atLeast : value <= goal.atMost;
    const wanted = "atLeast" in goal ? `≥ ${goal.atLeast.toLocaleString("en")}` : `≤ ${goal.atMost}`;
    const shown = value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
    return [[title, wanted, shown, isMet ? "met" : "missed"]];
  });
  return rows.length === 0 ? null : `\n${formatTable(["goal", "wanted", "measured", ""], rows)}`;
}
