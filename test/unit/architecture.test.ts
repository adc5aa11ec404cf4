import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { CODE_GUARDS } from "../guards/code-guards.ts";
import { findFolderCircles, findLongFiles, findSources, type Import, importsOf } from "../support/source-files.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const PACKAGES = readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}`);
const FILES = findSources(/\.ts$/);
const TEXTS = new Map(FILES.map((file) => [file, readFileSync(join(ROOT, file), "utf8")]));
const IMPORTS = [...TEXTS].flatMap(([file, text]) => importsOf(file, text));
const LOCAL_IMPORTS = IMPORTS.filter((edge) => edge.to.endsWith(".ts"));

/** Returns `db` for `src/platform/db/pool.ts`, `workers` for `workers/main.ts`, `config` for `src/platform/config.ts` and `packages/client` for a file of it. */
function layerOf(file: string): string {
  const [top = "", folder = "", ...rest] = file.split("/");
  if (top === "packages") return `${top}/${folder}`;
  if (top !== "src") return top;
  if (rest.length > 0) return folder;
  return /^open-(?!command)/.test(folder) ? "open" : folder.replace(/\.ts$/, "");
}

const TOOLS = "contract domain batching db redis holds services open-command config log random packages/tlog";

/**
 * The folders and top-level files that each one may import. All may also import their own folder and the types in SHARED_TYPES. Imports run
 * one way: if one folder may import another, the other may not import it.
 */
const MAY_IMPORT: Record<string, string> = {
  // Packages are installed on their own, but the client's build includes the verifier of receipts.
  ...Object.fromEntries(PACKAGES.map((name) => [name, ""])),
  "packages/client": "packages/tlog",
  domain: "",
  contract: "domain",
  batching: "",
  log: "",
  random: "",
  closers: "",
  pauses: "",
  environment: "domain redis queues packages/tlog",
  config: "environment",
  process: "config",
  db: "contract domain batching packages/tlog",
  redis: "batching",
  holds: "contract domain batching redis",
  queues: "contract domain batching redis",
  metrics: "contract batching queues traces log",
  traces: "config log",
  limits: "contract domain batching redis",
  services: "contract domain batching db redis holds queues limits metrics traces pauses packages/tlog",
  "open-command": "domain db random",
  open: "contract domain batching db redis holds queues limits metrics traces services config closers log pauses random",
  http: "contract domain batching db redis holds queues limits metrics traces services config open",
  app: "http open contract config",
  main: "app open process config log http metrics traces",
  workers: "contract domain batching db redis holds queues metrics traces services open process config log",
  local: TOOLS,
  cli: `${TOOLS} queues packages/conformance`,
};

/** Files whose types these folders may import in addition. */
const SHARED_TYPES: Record<string, string[]> = {
  "src/platform/log.ts": Object.keys(MAY_IMPORT),
  "src/platform/config.ts": ["services", "metrics"],
};

/** The one exception: `cli` may import the directory of the embedded servers, and load the rest of `local` dynamically. */
function mayCliImport(edge: Import): boolean {
  return edge.kind === "dynamic" ? layerOf(edge.to) === "local" : edge.to === "src/local/directory.ts";
}

function isAllowed(edge: Import): boolean {
  const [from, to] = [layerOf(edge.from), layerOf(edge.to)];
  if (from === to) return true;
  if (edge.kind === "type" && SHARED_TYPES[edge.to]?.includes(from)) return true;
  if (from === "cli" && mayCliImport(edge)) return true;
  return MAY_IMPORT[from]?.split(" ").includes(to) ?? false;
}

function show(edge: Import): string {
  return `${edge.from} imports ${edge.to}${edge.kind === "value" ? "" : ` (${edge.kind})`}`;
}

it("importsOf finds every form of import", () => {
  const text = `
import { a } from "./a.ts";
import type { B } from "../domain/b.ts";
import {
  e,
  type F,
} from '../queues/e.ts';
import * as g from "./g.ts";
import "./effect.ts";
export * from "../http/i.ts";
export type { J } from "../http/j.ts";
// import { no } from "./comment.ts";
/**
 * import { no } from "./comment.ts";
 */
const l = await import("../local/l.ts");
const m = require("m");
const text = "import nothing";
`;
  expect(importsOf("src/db/x.ts", text).map(show)).toEqual([
    "src/db/x.ts imports src/db/a.ts",
    "src/db/x.ts imports src/domain/b.ts (type)",
    "src/db/x.ts imports src/queues/e.ts",
    "src/db/x.ts imports src/db/g.ts",
    "src/db/x.ts imports src/db/effect.ts",
    "src/db/x.ts imports src/http/i.ts",
    "src/db/x.ts imports src/http/j.ts (type)",
    "src/db/x.ts imports src/local/l.ts (dynamic)",
    "src/db/x.ts imports m (dynamic)",
  ]);
});

it("importsOf finds all imports of every source file", () => {
  for (const [file, text] of TEXTS) {
    const statements = text.match(/^import\b(?!\.)|^\s*}\s*from\s|^export\s.*\sfrom\s["']/gm)?.length ?? 0;
    // The pattern above matches a statement over several lines twice: at its first and its last line.
    const multiline = text.match(/^import\s+(type\s+)?\{\s*$/gm)?.length ?? 0;
    const found = importsOf(file, text).filter((edge) => edge.kind !== "dynamic").length;
    expect(found, file).toBe(statements - multiline);
  }
  expect(LOCAL_IMPORTS.length).toBeGreaterThan(100);
});

it("importsOf returns only paths of files that exist", () => {
  for (const edge of IMPORTS.filter((candidate) => candidate.to.startsWith("src/"))) {
    expect(TEXTS.has(edge.to), show(edge)).toBe(true);
  }
});

it("findFolderCircles finds folders that import each other over a third one, and ignores files beside them", () => {
  const edge = (from: string, to: string): Import => ({ from: `src/x/${from}`, to: `src/x/${to}`, kind: "type" });
  const line = [edge("a/1.ts", "b/1.ts"), edge("b/2.ts", "c/1.ts"), edge("top.ts", "a/1.ts"), edge("c/1.ts", "top.ts")];
  expect(findFolderCircles("src/x", line)).toEqual([]);
  expect(findFolderCircles("src/x", [...line, edge("c/2.ts", "a/2.ts")])).toEqual(["a and b", "a and c", "b and c"]);
});

it.each([
  ["src/core/redeem/redeem.ts", "src/platform/config.ts", "type"],
  ["src/core/redeem/redeem.ts", "src/platform/log.ts", "value"],
  ["src/platform/api/errors.ts", "src/platform/db/pool.ts", "type"],
  ["src/core/voucher/db/vouchers.ts", "src/platform/limits/rate-limiter.ts", "value"],
  ["src/core/redeem/redeem-voucher.ts", "src/open/open-service.ts", "value"],
  ["src/core/redeem/redeem-voucher.ts", "test/support/until.ts", "value"],
  ["src/core/redeem/routes/redeem.ts", "workers/redeem.ts", "value"],
  ["src/core/redeem/routes/redeem.ts", "src/open/app.ts", "value"],
  ["src/cli/command.ts", "src/local/servers.ts", "value"],
  ["src/cli/command.ts", "src/platform/http/errors.ts", "dynamic"],
  ["workers/redeem.ts", "src/local/servers.ts", "dynamic"],
  ["src/newfolder/file.ts", "src/core/voucher/codes.ts", "value"],
  ["src/core/redeem/redeem.ts", "src/newfolder/file.ts", "value"],
  ["packages/client/src/client.ts", "src/platform/api/errors.ts", "type"],
] as const)("the rule of imports forbids that %s imports %s as a %s", (from, to, kind) => {
  expect(isAllowed({ from, to, kind })).toBe(false);
});

it("the source imports only what MAY_IMPORT and its exceptions allow", () => {
  expect(LOCAL_IMPORTS.filter((edge) => !isAllowed(edge)).map(show)).toEqual([]);
});

it("the source has an entry in MAY_IMPORT for every folder and top-level file", () => {
  expect(FILES.map(layerOf).filter((layer) => !(layer in MAY_IMPORT))).toEqual([]);
});

it("the source has no circular imports, not even of types", () => {
  const edges = Map.groupBy(LOCAL_IMPORTS, (edge) => edge.from);
  const finished = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    if (path.includes(file)) expect.fail([...path.slice(path.indexOf(file)), file].join(" imports "));
    if (finished.has(file)) return;
    for (const edge of edges.get(file) ?? []) visit(edge.to, [...path, file]);
    finished.add(file);
  };
  for (const file of FILES) visit(file, []);
  expect(finished.size).toBe(FILES.length);
});

it("the source has no circles between the folders of src, src/services and src/open, not even of types", () => {
  const circles = ["src", "src/services", "src/open"].flatMap((parent) => findFolderCircles(parent, LOCAL_IMPORTS));
  expect(circles).toEqual([]);
});

it("the source has no hand-written file over 300 lines", () => {
  expect(findLongFiles(300)).toEqual([]);
});

it("the source has no I/O in domain and batching: they import only packages for computation", () => {
  const pure = "canonicalize ipaddr.js typeid-js zod node:crypto node:net node:zlib node:util node:buffer".split(" ");
  const layers = ["domain", "batching"];
  const outside = IMPORTS.filter(({ from, to }) => layers.includes(layerOf(from)) && !to.endsWith(".ts"));
  expect(outside.filter((edge) => !pure.includes(edge.to)).map(show)).toEqual([]);
});

it("the source names built-in modules with node:", () => {
  const bare = IMPORTS.filter((edge) => builtinModules.includes(edge.to) && !edge.to.startsWith("node:"));
  expect(bare.map(show)).toEqual([]);
});

it.each([
  ["bullmq", ["queues"]],
  ["express", ["app", "http"]],
  ["prom-client", ["metrics"]],
])("the source imports %s only in %j", (name, layers) => {
  const importers = IMPORTS.filter(({ to }) => to === name || to.startsWith(`${name}/`));
  expect(new Set(importers.map((edge) => layerOf(edge.from)))).toEqual(new Set(layers));
});

it("the source imports OpenTelemetry in one file, which is itself imported only dynamically", () => {
  const loaders = IMPORTS.filter((edge) => edge.to.startsWith("@opentelemetry/") && edge.kind !== "type");
  expect(new Set(loaders.map((edge) => edge.from))).toEqual(new Set(["src/platform/traces/open-telemetry.ts"]));
  const users = IMPORTS.filter((edge) => edge.to === "src/platform/traces/open-telemetry.ts");
  expect(users.map(show)).toEqual([
    "src/platform/traces/open-traces.ts imports src/platform/traces/open-telemetry.ts (dynamic)",
  ]);
});

it("the source reads environment variables only in src/platform/config.ts, src/platform/process.ts, src/local, src/cli and the conformance package", () => {
  const readers = [...TEXTS]
    .filter(([, text]) =>
      /\bprocess\s*(\?\.|\.)\s*env\b|\benv\b[^\n]*=\s*process\b|["']node:process["']|process\[/.test(text),
    )
    .map(([file]) => layerOf(file));
  expect(readers).toContain("process");
  const mayRead = ["config", "process", "local", "cli", "packages/conformance"];
  expect([...new Set(readers)].filter((layer) => !mayRead.includes(layer))).toEqual([]);
});

it("the source reads the host's clock only to measure, to log, to talk to the person at a terminal, and to date security.txt and a look at faults before Postgres was reached", () => {
  const readers = [...TEXTS].filter(([, text]) => /\bDate\.now\(\)|new Date\(\)/.test(text)).map(([file]) => file);
  const mayRead =
    /^(src\/(cli|local)\/|src\/log\.ts|src\/queues\/(worker|measure-queues)\.ts|src\/http\/pages\/serve-assets\.ts|src\/services\/ops\/facts\.ts|src\/services\/log\/log-source\.ts|packages\/)/;
  expect(readers.length).toBeGreaterThan(0);
  expect(readers.filter((file) => !mayRead.test(file))).toEqual([]);
});

it("each guard that the endurance run breaks is in its file once", () => {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const count = (file: string, text: string) => readFileSync(join(root, file), "utf8").split(text).length - 1;
  expect(CODE_GUARDS.filter(({ file, text }) => count(file, text) !== 1)).toEqual([]);
});
