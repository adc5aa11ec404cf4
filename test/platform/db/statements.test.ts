import { readFileSync } from "node:fs";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Columns } from "../../../src/platform/db/columns.ts";
import { readStatements, type Statements } from "../../../src/platform/db/statements.ts";
import { findStatementFiles } from "../../support/source-files.ts";
import { useDatabase } from "../../support/use-service.ts";

const ROOT = new URL("../../../", import.meta.url);
const FILES = findStatementFiles();

/** The statements of each file, with the columns and parameters that the module beside it declares. */
const STATEMENTS = await Promise.all(
  FILES.map(async (file) => {
    const { sql }: { sql: Statements } = await import(new URL(file.replace(/\.sql$/, ".ts"), ROOT).href);
    const statements = Object.values(readStatements(new URL(file, ROOT)));
    return statements.map(({ name, text }) => ({
      file,
      name,
      text,
      columns: sql.columns[name],
      parameters: sql.parameters[name],
    }));
  }),
).then((files) => files.flat());

const { servers } = useDatabase();
let client: pg.Client;

beforeAll(async () => {
  client = new pg.Client({ connectionString: servers.ownerUrl });
  await client.connect();
});

afterAll(() => client.end());

it.each(FILES)("%s contains only SQL statements", (file) => {
  const code = readFileSync(new URL(file, ROOT), "utf8").replaceAll(/^--.*/gm, "");
  const own = STATEMENTS.filter((statement) => statement.file === file).map(({ text }) => text);
  expect(own.length).toBeGreaterThan(0);
  expect(code.split(";").map((text) => text.trim())).toEqual([...own, ""]);
});

it("SQL statements have unique names, because a connection prepares each name once", () => {
  const names = STATEMENTS.map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

describe.each(STATEMENTS)("$file $name", ({ name, text, parameters, columns }) => {
  it("a module uses each SQL statement of its file", () => {
    expect(columns).toBeDefined();
  });

  it("an SQL statement is valid on the migrated schema, with parameters of its module's types", async () => {
    await client.query(`PREPARE ${name} AS ${text}`);
    const { rows } = await client.query<{ types: string[] }>(
      "SELECT parameter_types::text[] AS types FROM pg_prepared_statements WHERE name = $1",
      [name],
    );
    expect(rows[0]?.types).toEqual(Object.values(parameters ?? {}).map(({ type }) => type));
  });

  it("an SQL statement casts each parameter, so that Postgres infers no type", () => {
    expect(text.match(/\$\d+(?!\d|::)/g) ?? []).toEqual([]);
  });

  // Skips state_of_ statements, because audit entries store every column of their rows.
  it.skipIf(name.startsWith("state_of_"))("an SQL statement returns the columns that its module declares", async () => {
    const fields = await describeResult(text);
    const { rows } = await client.query<{ types: string[] }>(
      `SELECT coalesce(array_agg(format_type(t.oid, NULL) ORDER BY t.n), '{}') AS types
         FROM unnest($1::oid[]) WITH ORDINALITY AS t (oid, n)`,
      [fields.map((field) => field.dataTypeID)],
    );
    const types = fields.map((field, index) => [field.name, rows[0]?.types[index]]);
    expect(Object.fromEntries(types.filter(([, type]) => type !== "void"))).toEqual(flatten(columns ?? {}));
  });
});

/** Makes Postgres parse a statement and describe its result without running it. */
function describeResult(text: string): Promise<{ name: string; dataTypeID: number }[]> {
  return new Promise((resolve, reject) => {
    let fields: { name: string; dataTypeID: number }[] = [];
    client.query({
      submit(connection: pg.Connection) {
        connection.parse({ name: "", text, types: [] }, true);
        connection.describe({ type: "S", name: "" }, true);
        connection.sync();
      },
      handleRowDescription(message: { fields: typeof fields }) {
        fields = message.fields;
      },
      handleError: reject,
      handleReadyForQuery: () => resolve(fields),
    } as unknown as pg.Submittable);
  });
}

/** Returns column names and types. Columns of a group have names like `group.member`. */
function flatten(columns: Columns): Record<string, string> {
  return Object.fromEntries(
    Object.entries(columns).flatMap(([name, column]) =>
      "members" in column
        ? Object.entries(column.members).map(([member, { type }]) => [`${name}.${member}`, type])
        : [[name, column.type]],
    ),
  );
}
