import { readdirSync, readFileSync } from "node:fs";
import { builtinModules } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import {
  COMPOSITION_MAX,
  countUnchecked,
  findHandWritten,
  findLongFunctions,
  findSignature,
  findWholeContexts,
  longFunctionsOf,
  longLinesOf,
  PROLOGUE_MAX,
  SIGNATURE_MAX,
  spreadLiteralsOf,
} from "./support/house-measures.ts";
import {
  COMMAND_ENTRY,
  countLines,
  countPrologue,
  findFiles,
  findFolderCircles,
  findSources,
  findTests,
  type Import,
  importsOf,
} from "./support/source-files.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));

const FILES = findSources(/\.ts$/);
const TEXTS = new Map(FILES.map((file) => [file, readFileSync(join(ROOT, file), "utf8")]));
const IMPORTS = [...TEXTS].flatMap(([file, text]) => importsOf(file, text));
const LOCAL_IMPORTS = IMPORTS.filter((edge) => edge.to.endsWith(".ts"));

/** The source's folders, lowest layer first. Each room (folder) imports only itself and lower layers. */
const FLOORS = [
  ["packages/tlog"],
  ["packages/client", "packages/conformance"],
  ["platform"],
  ["core"],
  ["acts"],
  ["pages", "watch"],
  ["console", "portal", "cli", "issuer"],
  ["wing"],
  ["marketplace", "webhooks", "transparency"],
  ["open"],
  ["workers", "local"],
  ["main"],
];
const FLOOR_OF = new Map(FLOORS.flatMap((rooms, floor) => rooms.map((room) => [room, floor])));

/** `npm start` and voucherctl may import the declarations of wings. */
const FOR_LOCAL = ["src/open/wings.ts", "src/open/wing-acts.ts", "src/open/config-parts.ts"];

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
/** import { no } from "./comment.ts"; */
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
    // `statements` counts an import over several lines twice: at its first and its last line.
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

it("files outside a package import the package by its name in package.json, not by a path", () => {
  expect(importsOf("src/a/b.ts", 'import { c } from "#tlog/c.ts";').map(show)).toEqual([
    "src/a/b.ts imports packages/tlog/src/c.ts",
  ]);
  const files = [...FILES, ...findTests()].filter((file) => !file.startsWith("packages/"));
  const byPath = files.filter((file) => /from "(\.\.\/)+packages\//.test(readFileSync(join(ROOT, file), "utf8")));
  expect(byPath).toEqual([]);
});

it("findFolderCircles finds folders that import each other through a third, and ignores top-level files", () => {
  const edge = (from: string, to: string) => ({ from: `src/x/${from}`, to: `src/x/${to}` });
  const line = [edge("a/1.ts", "b/1.ts"), edge("b/2.ts", "c/1.ts"), edge("top.ts", "a/1.ts"), edge("c/1.ts", "top.ts")];
  expect(findFolderCircles("src/x", line)).toEqual([]);
  expect(findFolderCircles("src/x", [...line, edge("c/2.ts", "a/2.ts")])).toEqual(["a and b", "a and c", "b and c"]);
});

/** For each room (source folder), lower rooms that it must not import: commands need neither Express nor BullMQ. */
const NOT_BELOW: Record<string, string[]> = { local: ["open", "console", "portal", "pages"] };

it.each([
  ["src/platform/db/pool.ts", "src/core/voucher/codes.ts", "type"],
  ["src/core/redeem/redeem-voucher.ts", "src/acts/void-voucher.ts", "value"],
  ["src/core/chain/seal-events.ts", "src/webhooks/deliver.ts", "value"],
  ["src/acts/issue-batch.ts", "src/marketplace/view-link.ts", "value"],
  ["src/webhooks/deliver.ts", "src/transparency/read-log.ts", "type"],
  ["src/pages/mount-pages.ts", "src/marketplace/pages/link-page.ts", "value"],
  ["src/portal/order-pages.ts", "src/transparency/read-receipt.ts", "value"],
  ["src/watch/facts.ts", "src/transparency/read-log-status.ts", "type"],
  ["src/cli/program.ts", "src/webhooks/in-voucherctl.ts", "value"],
  ["src/console/visit.ts", "src/open/open-api.ts", "type"],
  ["src/core/redeem/redeem-voucher.ts", "test/support/until.ts", "value"],
  ["src/core/redeem/routes/redeem.ts", "workers/redeem.ts", "value"],
  ["src/cli/command.ts", "src/local/servers.ts", "dynamic"],
  ["src/cli/command.ts", "src/open/app.ts", "dynamic"],
  ["workers/redeem.ts", "src/local/servers.ts", "dynamic"],
  ["src/local/servers.ts", "src/open/app.ts", "value"],
  ["src/newroom/file.ts", "src/core/voucher/codes.ts", "value"],
  ["src/core/redeem/redeem.ts", "src/newroom/file.ts", "value"],
  ["packages/client/src/client.ts", "src/platform/api/errors.ts", "type"],
  ["packages/tlog/src/note.ts", "packages/client/src/client.ts", "value"],
] as const)("the import rules forbid that %s imports %s (as a %s)", (from, to, kind) => {
  expect(isAllowed({ from, to, kind })).toBe(false);
});

it("each import in the source goes down the layers in FLOORS or is a listed exception", () => {
  expect(LOCAL_IMPORTS.filter((edge) => !isAllowed(edge)).map(show)).toEqual([]);
});

it("FLOORS, the list of layers, has each folder and top-level file of the source", () => {
  expect(FILES.map(roomOf).filter((room) => !FLOOR_OF.has(room))).toEqual([]);
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

it("folders of the source have no circular imports, not even of types", () => {
  const parents = ["", "/platform", "/core", "/pages", "/watch", "/console"].map((room) => `src${room}`);
  expect(parents.flatMap((parent) => findFolderCircles(parent, LOCAL_IMPORTS))).toEqual([]);
});

it(`no test file has more than ${PROLOGUE_MAX} lines before its first test`, () => {
  const prologues = findTests()
    .filter((file) => file.endsWith(".test.ts"))
    .map((file) => ({ file, lines: countPrologue(file) }));
  expect(prologues.length).toBeGreaterThan(150);
  expect(prologues.filter(({ lines }) => lines > PROLOGUE_MAX)).toEqual([]);
});

it("no test of npm test starts a process of the service or a Postgres server", () => {
  const guarantees = findTests().filter((file) => /\/[^/.]+\.test\.ts$/.test(file));
  expect(guarantees.length).toBeGreaterThan(100);
  const starts = /\b(startNode|runNode|startNpm|openOwnPostgres|startPostgres)\(/;
  expect(guarantees.filter((file) => starts.test(readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

it("CONTRIBUTING.md and the READMEs beside code name only existing files", () => {
  const documents = ["CONTRIBUTING.md", ...findFiles("src").filter((file) => file.endsWith("/README.md"))];
  const files = ["src", "workers", "packages", "test", "docs", "migrations"].flatMap(findFiles);
  const missing = documents.flatMap((document) => {
    const text = readFileSync(join(ROOT, document), "utf8");
    const named = Array.from(text.matchAll(/`([\w./-]+\.(?:ts|js|sql|json|md|html))`/g), ([, name = ""]) => name);
    const exists = (name: string) => files.some((file) => `/${file}`.endsWith(`/${name}`));
    return named.filter((name) => !exists(name)).map((name) => `${document}: ${name}`);
  });
  expect(missing).toEqual([]);
});

it("each folder in test is named like a source folder, or is test/proof or test/support", () => {
  const folders = new Set(findTests().flatMap((file) => /^test\/([^/]+)\//.exec(file)?.[1] ?? []));
  for (const room of [...FLOOR_OF.keys(), "proof", "support"]) folders.delete(room);
  expect([...folders]).toEqual([]);
});

/** The files that contain only rules, and read no server, clock or file, by folder of the source. */
const RULES = Object.entries({
  "core/voucher": "voucher codes ids references reservation",
  "core/reserve": "reservation-token signed-cursor",
  "core/redeem": "redeem",
  "core/chain": "chain",
  "core/keys": "api-keys",
  marketplace: "offer audience",
  webhooks: "webhook-delivery retry-delays webhook-limits",
  platform: "base32 text marks addresses scram-verifier times deployment-identity",
  "platform/batching": "batcher fair-slots share-for shares",
  "platform/outgoing": "webhook-url webhook-signature",
}).flatMap(([folder, files]) => files.split(" ").map((file) => `src/${folder}/${file}.ts`));

it("files of pure rules do no I/O: they import only each other, and packages for computation", () => {
  const pure = "canonicalize ipaddr.js typeid-js zod node:crypto node:net node:zlib node:util node:buffer".split(" ");
  expect(RULES.filter((file) => !TEXTS.has(file))).toEqual([]);
  const edges = IMPORTS.filter(({ from }) => RULES.includes(from));
  expect(edges.filter(({ to }) => !pure.includes(to) && !RULES.includes(to)).map(show)).toEqual([]);
});

/** The files of the interfaces for people and programs, including those of wings. */
const FACE = /^src\/(console|cli|issuer|portal)\/|^src\/\w+\/(commands|console|portal|routes)\//;

it("only administrative acts, in src/acts or in a wing, write audit entries", () => {
  const writers = [...TEXTS].filter(([, text]) => /\bwithAuditEntry\(/.test(text)).map(([file]) => file);
  expect(writers.length).toBeGreaterThan(10);
  expect(writers.filter((file) => FACE.test(file))).toEqual([]);
});

it("imports of built-in modules begin with node:", () => {
  const bare = IMPORTS.filter((edge) => builtinModules.includes(edge.to) && !edge.to.startsWith("node:"));
  expect(bare.map(show)).toEqual([]);
});

it.each([
  ["bullmq", /^src\/platform\/queues\//],
  ["express", /^src\/(platform\/http|core\/(keys\/routes|processes)|pages|portal|console|open)\//],
  ["prom-client", /^src\/core\/metrics\//],
])("the source imports %s only in %s", (name, rooms) => {
  const importers = IMPORTS.filter(({ to }) => to === name || to.startsWith(`${name}/`));
  expect(importers.length).toBeGreaterThan(0);
  expect(importers.filter((edge) => !rooms.test(edge.from)).map(show)).toEqual([]);
});

it("only one file imports OpenTelemetry, and other files import that file only dynamically", () => {
  const loaders = IMPORTS.filter((edge) => edge.to.startsWith("@opentelemetry/") && edge.kind !== "type");
  expect(new Set(loaders.map((edge) => edge.from))).toEqual(new Set(["src/platform/traces/open-telemetry.ts"]));
  const users = IMPORTS.filter((edge) => edge.to === "src/platform/traces/open-telemetry.ts");
  expect(users.map(show)).toEqual([
    "src/platform/traces/open-traces.ts imports src/platform/traces/open-telemetry.ts (dynamic)",
  ]);
});

it("only config.ts, process.ts and the folders local, cli and conformance read environment variables", () => {
  const readers = [...TEXTS]
    .filter(([, text]) =>
      /\bprocess\s*(\?\.|\.)\s*env\b|\benv\b[^\n]*=\s*process\b|["']node:process["']|process\[/.test(text),
    )
    .map(([file]) => file);
  expect(readers).toContain("src/platform/process.ts");
  const mayRead = /^(src\/(platform\/(config|process)\.ts|local\/|cli\/)|packages\/conformance\/)/;
  expect(readers.filter((file) => !mayRead.test(file))).toEqual([]);
});

it("only listed files read the host's clock", () => {
  const readers = [...TEXTS].filter(([, text]) => /\bDate\.now\(\)|new Date\(\)/.test(text)).map(([file]) => file);
  // The files that may read the host's clock: for terminals, logs, metrics, the date of security.txt, checks before the
  // first connection to Postgres, and to notice suspended machines or a database that is days ahead.
  const mayRead = new RegExp(
    `^(${[
      "src/(cli|local)/",
      "src/platform/(logger|uptime|db/database-clock|queues/(worker|measure-queues))\\.ts",
      "src/(pages/serve-assets|watch/facts)\\.ts",
      "packages/",
    ].join("|")})`,
  );
  expect(readers.length).toBeGreaterThan(0);
  expect(readers.filter((file) => !mayRead.test(file))).toEqual([]);
});

it("the migrations are numbered consecutively", async () => {
  const files = readdirSync(new URL("../migrations", import.meta.url)).toSorted();
  expect(files.map((file) => Number(file.slice(0, 5)))).toEqual(files.map((_, at) => at + 1));
});

const HAND_WRITTEN = findHandWritten();

it("findLongFunctions counts methods, callbacks and multi-line parameter lists, but no describe", () => {
  const text = `
describe.each([
  1,
])("a group", () => {
  it("a test", async () => {
    a();
    b();
  });
});
export async function render(
  one: string,
): Promise<string> {
  return html\`
\${
  one
}
\`;
}
if (a) {
  b();
  c();
  d();
}
`;
  expect(findLongFunctions(text, 3)).toEqual([
    { line: 5, lines: 4 },
    { line: 10, lines: 7 },
  ]);
  expect(findLongFunctions(text, 7)).toEqual([]);
});

it("redeem, look-up, reserve, release, list and sweep load few files, all of core and platform", () => {
  const { files, lines, elsewhere } = findSignature();
  expect(elsewhere).toEqual([]);
  expect(files.length).toBeGreaterThan(50);
  expect(files.length).toBeLessThanOrEqual(SIGNATURE_MAX.files);
  expect(lines).toBeLessThanOrEqual(SIGNATURE_MAX.lines);
});

it("only src/open and the entry points of processes use the whole context object of a process", () => {
  expect(findWholeContexts(HAND_WRITTEN.sources)).toEqual([]);
});

it(`each file in src/open that opens a process has at most ${COMPOSITION_MAX} lines`, () => {
  const compositions = findFiles("src/open").filter((file) => file.split("/").length === 3);
  expect(compositions.length).toBeGreaterThan(5);
  expect(compositions.filter((file) => countLines(file) > COMPOSITION_MAX)).toEqual([]);
});

it.each(["sources", "tests"] as const)("the %s have no function over 60 lines", (which) => {
  expect(longFunctionsOf(HAND_WRITTEN[which])).toEqual([]);
});

it.each([
  ["sources", 0, 0],
  ["tests", 0, 0],
] as const)("the %s have at most %i lines of code and %i of comments over 120 columns", (which, code, comments) => {
  const found = longLinesOf(HAND_WRITTEN[which]);
  expect(found.code.length, JSON.stringify(found.code, null, 1)).toBeLessThanOrEqual(code);
  expect(found.comments.length).toBeLessThanOrEqual(comments);
});

it("no object literal is spread directly into another object literal", () => {
  expect(spreadLiteralsOf([...HAND_WRITTEN.sources, ...HAND_WRITTEN.tests])).toEqual([]);
});

it("each module with SQL statements compares its parameters with the statements' headers when it loads", () => {
  const { unchecked, all } = countUnchecked();
  expect(all).toBeGreaterThan(200);
  expect(unchecked).toBe(0);
});

/** Returns a file's room: `core` for `src/core/voucher/ids.ts`, `main` for `src/main.ts`. */
function roomOf(file: string): string {
  if (file === COMMAND_ENTRY) return "main";
  const [top = "", folder = "", ...rest] = file.split("/");
  if (top === "packages") return `${top}/${folder}`;
  if (top !== "src") return top;
  return rest.length > 0 ? folder : folder.replace(/\.ts$/, "");
}

function isAllowed(edge: Omit<Import, "names">): boolean {
  const [from, to] = [roomOf(edge.from), roomOf(edge.to)];
  const [above, below] = [FLOOR_OF.get(from), FLOOR_OF.get(to)];
  if (above === undefined || below === undefined) return false;
  if (from === to) return true;
  return below < above && (FOR_LOCAL.includes(edge.to) || !NOT_BELOW[from]?.includes(to));
}

function show(edge: Import): string {
  return `${edge.from} imports ${edge.to}${edge.kind === "value" ? "" : ` (${edge.kind})`}`;
}
