import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  countLines,
  findFiles,
  findSources,
  findStatementFiles,
  GENERATED,
  type Import,
  importsOf,
} from "./source-files.ts";

// The measures that `npm run -s house` prints and the architecture test checks. They depend on the formatter, which
// indents a block and puts its last brace below the line that opens it.

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The maximum length of a line for the formatter, in characters. */
export const LINE_MAX = 120;
/** Maximum lines of a function. */
export const FUNCTION_MAX = 60;
/** Maximum files of {@link findSignature}, and their maximum lines. */
export const SIGNATURE_MAX = { files: 92, lines: 10_000 };
/** Maximum lines of a file in `src/open` that opens a process. */
export const COMPOSITION_MAX = 100;
/** Maximum lines of a test file before its first test. */
export const PROLOGUE_MAX = 80;

const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
const indentOf = (line: string) => line.search(/\S/);

/** The hand-written TypeScript: of the service and its packages, and of the tests. */
export function findHandWritten(): { sources: string[]; tests: string[] } {
  const packages = readdirSync(join(ROOT, "packages")).map((name) => `packages/${name}/test`);
  const folders = ["test", ...packages.filter((folder) => existsSync(join(ROOT, folder)))];
  const tests = folders.flatMap(findFiles).filter((file) => file.endsWith(".ts"));
  return { sources: findSources(/\.ts$/).filter((file) => !GENERATED.includes(file)), tests };
}

/** A line of a file. The path begins at the root of the repository. */
interface Place {
  file: string;
  /** The first line is 1. */
  line: number;
}

/** Whether a line opens a function's body: it ends with `=> {`, or with parameters, a result type and a brace. */
const opensFunction = (line: string) =>
  /=> \{$/.test(line) ||
  (/\)(: .+)? \{$/.test(line) && !/^\s*(\} )?(if|else|for|while|switch|catch|do|describe)\b/.test(line));

/** The functions longer than `max` lines, with comments. A `describe` does not count, because it groups tests. */
export function findLongFunctions(text: string, max: number): { line: number; lines: number }[] {
  const lines = text.split("\n");
  // Whether a line ends within a template literal, whose text may look like code.
  let ticks = 0;
  const isInTemplate = lines.map((line) => {
    ticks += line.split("`").length - 1;
    return ticks % 2 === 1;
  });
  return lines.flatMap((line, at) => {
    if (!opensFunction(line)) return [];
    const indent = indentOf(line);
    let first = at;
    while (first > 0 && (/^\s*[\])`]/.test(lines[first] ?? "") || indentOf(lines[first] ?? "") !== indent)) first--;
    if (/^\s*describe\b/.test(lines[first] ?? "")) return [];
    const isEnd = (end: string, n: number) => n > at && indentOf(end) === indent && end.trim().startsWith("}");
    const last = lines.findIndex((end, n) => isEnd(end, n) && isInTemplate[n] === isInTemplate[at]);
    return last - at + 1 > max ? [{ line: first + 1, lines: last - at + 1 }] : [];
  });
}

export function longFunctionsOf(files: readonly string[]): (Place & { lines: number })[] {
  return files.flatMap((file) => findLongFunctions(read(file), FUNCTION_MAX).map((found) => ({ file, ...found })));
}

/** The lines over {@link LINE_MAX} columns, separately for code and comments. */
export function longLinesOf(files: readonly string[]): { code: Place[]; comments: Place[] } {
  const long = files.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((text, at) => (text.length > LINE_MAX ? [{ file, line: at + 1, text }] : [])),
  );
  const isComment = ({ text }: { text: string }) => /^\s*(\/\/|\/?\*)/.test(text);
  return { code: long.filter((line) => !isComment(line)), comments: long.filter(isComment) };
}

/** Finds object literals that are spread into another object literal, which only saves lines. */
export function spreadLiteralsOf(files: readonly string[]): Place[] {
  return files.flatMap((file) =>
    read(file)
      .split("\n")
      .flatMap((text, at) => (/(^|[{,]) *\.\.\.\{ /.test(text) ? [{ file, line: at + 1 }] : [])),
  );
}

/** The files in which a redeem, a look-up, a reserve, a release and a sweep begin, in API and worker. */
const SIGNATURE = [
  ...["reserve/routes/reserve", "reserve/routes/release", "look-up/routes/look-up", "redeem/routes/redeem"],
  ...["redeem/routes/redemption", "redeem/routes/redemptions", "redeem/redeem-committer"],
].map((name) => `src/core/${name}.ts`);

/** The files that Node loads for the six partner routes, the redeem worker and the sweeper. */
export function findSignature(): { files: string[]; lines: number; elsewhere: string[] } {
  const found = new Set<string>();
  const visit = (file: string): void => {
    if (found.has(file) || !file.endsWith(".ts")) return;
    found.add(file);
    for (const { kind, to } of importsOf(file, read(file))) if (kind === "value") visit(to);
  };
  for (const file of [...SIGNATURE, ...findFiles("src/core/sweep")]) visit(file);
  const files = [...found];
  const lines = files.map(countLines).reduce((total, count) => total + count, 0);
  return { files, lines, elsewhere: files.filter((file) => !/^src\/(core|platform)\//.test(file)) };
}

/** Finds imports, including those of types, by core or platform from higher folders. */
export function findClimbing(imports: readonly Import[]): Import[] {
  const below = /^(src\/(core|platform)\/|packages\/tlog\/)/;
  return imports.filter(
    ({ from, to }) => /^src\/(core|platform)\//.test(from) && to.endsWith(".ts") && !below.test(to),
  );
}

/** Finds files that name the type of a process's whole context, except entry points, `npm start` and src/open. */
export function findWholeContexts(files: readonly string[]): string[] {
  const names = files
    .filter((file) => file.startsWith("src/open/open-"))
    .flatMap((file) => Array.from(read(file).matchAll(/^export (?:type|interface) (\w+)/gm), ([, name = ""]) => name));
  const mention = new RegExp(`\\b(${names.join("|")})\\b`);
  const mayKnow = /^(src\/(open|main|local)\b|workers\/(main|prepare-workers)|packages\/)/;
  return files.filter((file) => !mayKnow.test(file) && mention.test(read(file)));
}

/** Finds the wings that a test removes, one after the other. */
export function findWings(tests: readonly string[]): string[] {
  const test = tests.find((file) => file === "test/wings.campaign.test.ts");
  const [, list = ""] = (test && /^const WINGS = \[(.*)\]/m.exec(read(test))) || [];
  return list.match(/\w+/g) ?? [];
}

/** Counts all statements, and those that no module declares. A module checks declared ones when it loads. */
export function countUnchecked(): { unchecked: number; all: number } {
  const statements = findStatementFiles().flatMap((file) => {
    const module = read(file.replace(/\.sql$/, ".ts"));
    const names = Array.from(read(file).matchAll(/^-- name: (\w+)/gm), ([, name = ""]) => name);
    return names.map((name) => new RegExp(`\\bsql\\s*\\.\\w+\\(\\s*"${name}"`).test(module));
  });
  return { unchecked: statements.filter((isDeclared) => !isDeclared).length, all: statements.length };
}
