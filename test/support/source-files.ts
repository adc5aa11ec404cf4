import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** Files that a command generates. */
export const GENERATED = ["packages/client/src/api.ts", "src/platform/api/sentence-values.ts"];

/** The files in a folder and its subfolders, without installed packages, as paths from the repository's root. */
export function findFiles(folder: string): string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && !entry.parentPath.includes("/node_modules"))
    .map(({ parentPath, name }) => join(parentPath, name).slice(ROOT.length));
}

/** The source files of the service and its packages whose names match, in alphabetical order. */
export function findSources(name: RegExp): string[] {
  const folders = ["src", "workers", ...readdirSync(join(ROOT, "packages")).map((folder) => `packages/${folder}/src`)];
  return folders
    .flatMap(findFiles)
    .filter((file) => name.test(file))
    .sort();
}

/** The tests of the service and its packages, with their helpers. */
export function findTests(): string[] {
  return [...findFiles("test"), ...findFiles("packages").filter((file) => /^packages\/[^/]+\/test\//.test(file))];
}

/** The number of lines of a test file before its first test or `describe`. */
export function countPrologue(file: string): number {
  const [prologue = ""] = readFileSync(join(ROOT, file), "utf8").split(/^(?:describe|it|itOnOneRedis|test)\b/m, 1);
  return prologue.split("\n").length - 1;
}

/** The files of statements. Beside each is the module that runs them. */
export function findStatementFiles(): string[] {
  const files = findFiles("src").sort();
  return files.filter((file) => file.endsWith(".sql") && files.includes(file.replace(/\.sql$/, ".ts")));
}

export function countLines(file: string): number {
  return readFileSync(join(ROOT, file), "utf8").split("\n").length - 1;
}

export interface Import {
  /** Path of the importing file, from the root of the repository. */
  from: string;
  /** Path of the imported file, from the root of the repository, or the name of a package. */
  to: string;
  /** Imports of kind `type` do not exist at run time. */
  kind: "value" | "type" | "dynamic";
  /** The names of values that a static import lists in braces. */
  names: string[];
}

/** How the project names its packages: `#tlog/note.ts` is a file of `packages/tlog/src`. */
const { imports: PACKAGES } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

function resolveImport(from: string, specifier: string): string {
  if (specifier.startsWith(".")) return join(dirname(from), specifier);
  const [name = "", ...path] = specifier.split("/");
  const folder: string | undefined = PACKAGES[`${name}/*`];
  return folder === undefined ? specifier : join(folder.slice(0, -1), ...path);
}

/** Finds the imports of a source text: static ones, re-exports, side effects, and dynamic ones of a literal. */
export function importsOf(from: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, kind: Import["kind"], listed = "") => {
    const names = listed.split(",").map((name) => name.trim());
    const values = kind === "type" ? [] : names.filter((name) => name !== "" && !name.startsWith("type "));
    found.push({ from, to: resolveImport(from, specifier), kind, names: values });
  };
  const code = text.replace(/^\s*(\/\/|\/?\*).*$/gm, "");
  for (const [, type, clause = "", specifier = ""] of code.matchAll(
    /^\s*(?:import|export)\s+(type\s+(?=[\w{*]))?(?:([\w\s{},*$]*?)\sfrom\s+)?["']([^"'\n]+)["']/gm,
  )) {
    add(specifier, type === undefined ? "value" : "type", /\{([^}]*)\}/.exec(clause)?.[1]);
  }
  for (const [, specifier = ""] of code.matchAll(/\b(?:import|require|resolve)\(\s*["'`]([^"'`]+)["'`]/g)) {
    add(specifier, "dynamic");
  }
  return found;
}

/** The entry point of voucherctl, which is above all folders, like `src/main.ts`. */
export const COMMAND_ENTRY = "src/cli/main.ts";

/** Finds subfolders of `parent` that import each other, directly or indirectly. Ignores files directly in `parent`. */
export function findFolderCircles(parent: string, imports: readonly Pick<Import, "from" | "to">[]): string[] {
  const folderOf = (file: string) => {
    const [folder, ...rest] = file.startsWith(`${parent}/`) ? file.slice(parent.length + 1).split("/") : [];
    return rest.length > 0 ? folder : undefined;
  };
  const edges = new Map<string, Set<string>>();
  for (const edge of imports) {
    const [from, to] = [folderOf(edge.from), folderOf(edge.to)];
    if (edge.from === COMMAND_ENTRY) continue;
    if (from !== undefined && to !== undefined && from !== to) edges.set(from, (edges.get(from) ?? new Set()).add(to));
  }
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    for (const to of edges.get(from) ?? []) if (!seen.has(to)) reach(to, seen.add(to));
    return seen;
  };
  const folders = [...edges.keys()].sort();
  return folders.flatMap((one, at) =>
    folders
      .slice(at + 1)
      .flatMap((other) => (reach(one).has(other) && reach(other).has(one) ? [`${one} and ${other}`] : [])),
  );
}
