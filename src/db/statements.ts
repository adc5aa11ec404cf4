import { readFileSync } from "node:fs";
import type { QueryConfig } from "pg";

/** A named statement. Its name makes Postgres prepare it once per connection. */
export interface Statement {
  name: string;
  text: string;
}

/**
 * Loads a `.sql` file that stands beside a module: blocks that begin with `-- name: <statement>`, each holding one statement
 * with its guarantee and parameters in comments.
 * @throws Error when a statement that is asked for is not in the file, or the other way round.
 */
export function loadStatements<const Name extends string>(file: URL, names: readonly Name[]): Record<Name, Statement> {
  const statements: Record<string, Statement> = {};
  for (const block of readFileSync(file, "utf8")
    .split(/^-- name: /m)
    .slice(1)) {
    const name = block.slice(0, block.indexOf("\n")).trim();
    const text = block
      .slice(block.indexOf("\n"))
      .split("\n")
      .filter((line) => !line.startsWith("--"))
      .join("\n")
      .trim()
      .replace(/;$/, "");
    statements[name] = { name, text };
  }
  const found = Object.keys(statements).sort().join(", ");
  const wanted = [...names].sort().join(", ");
  if (found !== wanted) throw new Error(`${file.pathname} holds ${found}, not ${wanted}`);
  return statements as Record<Name, Statement>;
}

/** A statement with its parameters, ready for `query`. */
export function bind(statement: Statement, values: unknown[]): QueryConfig {
  return { name: statement.name, text: statement.text, values };
}
