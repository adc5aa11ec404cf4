import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { formatTable } from "./table.ts";

/** A CPU profile as Node writes it: the format of the Chrome DevTools Protocol, type `Profiler.Profile`. */
interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[];
  /** The node that ran at each sample. */
  samples: number[];
  /** Time between samples, in microseconds. */
  timeDeltas: number[];
}

/** Parts below this share of a process's time are combined in one row. */
const SHOWN_SHARE = 0.01;

/** Node's options that make a process write its profile at its exit. */
export const profileOptions = (directory: string) => `--cpu-prof --cpu-prof-dir=${directory}`;

/**
 * Shows where processes spend their own time, each row as a share of the time in which the process was not idle.
 * @param processes names by process id. Profiles of other processes are omitted.
 */
export function showProfiles(directory: string, processes: ReadonlyMap<number, string>): string {
  const columns = readdirSync(directory).flatMap((file): { name: string; shares: Map<string, number> }[] => {
    // CPU.<date>.<time>.<process id>.<thread id>.<sequence>.cpuprofile
    const name = processes.get(Number(file.split(".")[3]));
    if (name === undefined) return [];
    return [{ name, shares: sharesOf(JSON.parse(readFileSync(join(directory, file), "utf8"))) }];
  });
  const parts = new Set(
    columns.flatMap(({ shares }) => [...shares].filter(([, share]) => share >= SHOWN_SHARE)).map(([part]) => part),
  );
  const most = (part: string) => Math.max(...columns.map(({ shares }) => shares.get(part) ?? 0));
  const percent = (share: number) => (share < 0.0005 ? "" : (share * 100).toFixed(1));
  const rows = [...parts]
    .toSorted((one, other) => most(other) - most(one))
    .map((part) => [part, ...columns.map(({ shares }) => percent(shares.get(part) ?? 0))]);
  const rest = columns.map(({ shares }) => {
    const shown = [...parts].reduce((sum, part) => sum + (shares.get(part) ?? 0), 0);
    return percent(1 - shown);
  });
  return formatTable(["% of CPU time", ...columns.map(({ name }) => name)], [...rows, ["everything else", ...rest]]);
}

function sharesOf({ nodes, samples, timeDeltas }: CpuProfile): Map<string, number> {
  const partOfNode = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const micros = new Map<string, number>();
  samples.forEach((node, index) => {
    const part = partOfNode.get(node);
    if (part === undefined || part === null) return;
    micros.set(part, (micros.get(part) ?? 0) + (timeDeltas[index] ?? 0));
  });
  const total = [...micros.values()].reduce((sum, time) => sum + time, 0);
  return new Map([...micros].map(([part, time]) => [part, time / total]));
}

/** The part of a process that a function belongs to: a package, a module of Node, or a room of the project. */
export function partOf({ functionName, url }: { functionName: string; url: string }): string | null {
  if (functionName === "(idle)" || functionName === "(root)") return null;
  if (functionName === "(garbage collector)") return "garbage collector";
  const [, packageName] = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  if (packageName !== undefined) return packageName;
  if (url.startsWith("node:")) return url.replace(/^node:(internal\/)?([^/]+).*/, "node:$2");
  const [, room] = /\/((?:src|workers|packages)\/(?:core\/|platform\/)?[^/]+)/.exec(url) ?? [];
  return room ?? "native code";
}
