import { readFileSync } from "node:fs";
import type { QueryConfig } from "pg";

/** A named statement. Its name makes Postgres prepare it once per connection. */
export interface Statement {
  name: string;
  text: string;
}

/**
 * Loads the `.sql` file that stands beside a module.
 * @throws Error when a statement that is asked for is not in the file, or the other way round.
 */
export function loadStatements<const Name extends string>(file: URL, names: readonly Name[]): Record<Name, Statement> {
  const statements = readStatements(file);
  const found = Object.keys(statements).sort().join(", ");
  const wanted = [...names].sort().join(", ");
  if (found !== wanted) throw new Error(`${file.pathname} holds ${found}, not ${wanted}`);
  return statements as Record<Name, Statement>;
}

/**
 * Reads every statement of a `.sql` file, by name: blocks that begin with `-- name: <statement>`, each holding one statement with its
 * guarantee and parameters in comments.
 */
export function readStatements(file: URL): Record<string, Statement> {
  const statements: Record<string, Statement> = {};
  for (const block of readFileSync(file, "utf8")
    .split(/^-- name: /m)
    .slice(1)) {
    const [name = "", ...lines] = block.split("\n");
    const text = lines.filter((line) => !line.startsWith("--")).join("\n");
    statements[name.trim()] = { name: name.trim(), text: text.trim().replace(/;$/, "") };
  }
  return statements;
}

/**
 * Statements that write, with their parameters, in the order in which they must run. Each writes all that it is given or raises, or a
 * constraint does at the commit, so that nobody has to see what it found. Making them writes nothing: they are for `lookThenWrite` or
 * `write` (transaction.ts).
 */
export type Writes = QueryConfig[];

type Scalar = string | number | boolean | Date | Buffer | null;

/** Parameters that always reach the server: what pg itself cannot send fails alone, and a COMMIT behind it would be carried out. */
export type Values = (Scalar | readonly Scalar[])[];

/** A statement with its parameters, ready for `query`. */
export function bind(statement: Statement, values: Values): QueryConfig {
  return { name: statement.name, text: statement.text, values };
}
