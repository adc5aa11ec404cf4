import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Import, importsOf } from "./source-files.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const isWing = /^src\/\w+\/wing\.ts$/;
/** Whether a file is a module that runs statements. Such modules are in folders named `db`. */
const runsStatements = (file: string) => file.startsWith("src/") && file.includes("/db/");
const read = (file: string) => readFileSync(join(ROOT, file), "utf8");
/** The imports of the project's own files that exist at run time. */
const usesOf = (file: string): Import[] =>
  importsOf(file, read(file)).filter(({ to, kind }) => kind !== "type" && to.endsWith(".ts"));

/**
 * Finds the names of the statements that a program may run: those in every function of a `db` folder that a loaded file
 * imports by name. Files count as a whole, so the result may contain too many names.
 * @param entries the program's entry files, relative to the repository.
 */
export function statementsOf(...entries: string[]): Set<string> {
  return statementsWithout(null, ...entries);
}

/**
 * Like {@link statementsOf}, but without folders whose files run as another role, and without files that only those
 * folders import.
 */
export function statementsWithout(folders: RegExp | null, ...entries: string[]): Set<string> {
  const found = new Set<string>();
  for (const file of filesOf(entries, folders)) {
    if (runsStatements(file)) continue;
    for (const { names, to } of usesOf(file)) {
      if (runsStatements(to)) for (const statement of statementsBehind(to, names)) found.add(statement);
    }
  }
  return found;
}

/**
 * Finds every file that the entries import, directly or indirectly. Does not follow `wing.ts` of a wing, which names
 * the parts for all programs, because the parts of a program are entries themselves.
 */
function filesOf(entries: readonly string[], without: RegExp | null): Set<string> {
  const files = new Set<string>();
  const visit = (file: string) => {
    if (files.has(file) || without?.test(file) || isWing.test(file)) return;
    files.add(file);
    for (const { to } of usesOf(file)) visit(to);
  };
  for (const entry of entries) visit(entry);
  return files;
}

/** Finds the statements that functions of a module use, directly or through others of the module. */
function statementsBehind(file: string, names: readonly string[]): Set<string> {
  const pieces = read(file).split(/^(?=(?:export )?(?:async )?(?:function\*?|const|class|interface|type) )/m);
  const byName = new Map(
    pieces.flatMap((piece) => {
      const name = /^(?:export )?(?:async )?(?:function\*?|const|class) (\w+)/.exec(piece)?.[1];
      return name === undefined || name === "sql" ? [] : [[name, piece] as const];
    }),
  );
  const found = new Set<string>();
  const seen = new Set<string>();
  const imported = usesOf(file).filter(({ to }) => runsStatements(to));
  const visit = (name: string) => {
    const piece = byName.get(name);
    if (piece === undefined || seen.has(name)) return;
    seen.add(name);
    for (const [, statement = ""] of piece.matchAll(/\bsql\.\w+\(\s*"(\w+)"/g)) found.add(statement);
    for (const { names: candidates, to } of imported) {
      const used = candidates.filter((candidate) => new RegExp(`\\b${candidate}\\b`).test(piece));
      if (used.length > 0) for (const statement of statementsBehind(to, used)) found.add(statement);
    }
    for (const other of byName.keys()) if (new RegExp(`\\b${other}\\b`).test(piece)) visit(other);
  };
  for (const name of names) visit(name);
  return found;
}
