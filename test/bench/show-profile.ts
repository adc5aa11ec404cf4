import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

// Reads CPU profiles that `npm run bench -- --profile FOLDER` left: `node test/bench/show-profile.ts FOLDER/*.cpuprofile`. Shows where
// the process was busy, by package and by function (self time, without what it called).

/** The process starts up in this time, which is not of interest. Microseconds. */
const START_UP_MICROS = 3_000_000;
const PACKAGES_SHOWN = 25;
const FUNCTIONS_SHOWN = 40;
const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** What is not work. */
const IDLE = ["(idle)", "(root)"];

const profile = z.object({
  nodes: z.array(
    z.object({
      id: z.number(),
      callFrame: z.object({ functionName: z.string(), url: z.string(), lineNumber: z.number() }),
    }),
  ),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});

for (const file of process.argv.slice(2)) show(file, profile.parse(JSON.parse(readFileSync(file, "utf8"))));

function show(file: string, { nodes, samples, timeDeltas }: z.infer<typeof profile>): void {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]));
  const byPackage = new Map<string, number>();
  const byFunction = new Map<string, number>();
  let elapsed = 0;
  let busy = 0;
  let watched = 0;
  for (const [index, id] of samples.entries()) {
    const micros = timeDeltas[index] ?? 0;
    elapsed += micros;
    const frame = frames.get(id);
    if (elapsed < START_UP_MICROS || frame === undefined) continue;
    watched += micros;
    if (IDLE.includes(frame.functionName)) continue;
    busy += micros;
    add(byPackage, packageOf(frame), micros);
    add(byFunction, `${frame.functionName || "(anonymous)"}  ${placeOf(frame)}`, micros);
  }
  const share = (micros: number) => `${((micros / busy) * 100).toFixed(1).padStart(5)} %`;
  const lines = [
    `${file}: busy for ${(busy / 1e6).toFixed(1)} of ${(watched / 1e6).toFixed(1)} s`,
    ...sorted(byPackage)
      .slice(0, PACKAGES_SHOWN)
      .map(([name, micros]) => `${share(micros)}  ${name}`),
    "",
    ...sorted(byFunction)
      .slice(0, FUNCTIONS_SHOWN)
      .map(([name, micros]) => `${share(micros)}  ${name}`),
  ];
  process.stdout.write(`${lines.join("\n")}\n\n`);
}

interface Frame {
  functionName: string;
  url: string;
  lineNumber: number;
}

/** A package, a part of Node, a folder of this project, or what the engine itself does, such as `(garbage collector)`. */
function packageOf({ functionName, url }: Frame): string {
  if (url === "") return functionName.startsWith("(") ? functionName : "native code";
  if (url.startsWith("node:")) return url.replace(/^(node:[^/]+(\/[^/]+)?).*$/, "$1");
  const [, name] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url) ?? [];
  return name ?? placeOf({ functionName, url, lineNumber: 0 }).split("/").slice(0, 2).join("/");
}

function placeOf({ url, lineNumber }: Frame): string {
  if (url === "") return "";
  const path = url.startsWith("file:") ? relative(ROOT, fileURLToPath(url)) : url;
  return `${path.replace(/.*node_modules\//, "")}:${lineNumber + 1}`;
}

function add(sums: Map<string, number>, name: string, micros: number): void {
  sums.set(name, (sums.get(name) ?? 0) + micros);
}

function sorted(sums: Map<string, number>): [string, number][] {
  return [...sums].sort(([, one], [, other]) => other - one);
}
