import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";
import { describe, expect, it } from "vitest";
import type { Columns } from "../../src/db/columns.ts";
import type { Statements } from "../../src/db/statements.ts";
import { useDatabase } from "../support/use-service.ts";

const DIRECTORY = new URL("../../src/db/", import.meta.url);

interface Block {
  file: string;
  name: string;
  comment: string;
  text: string;
  columns: Columns;
}

const FILES = readdirSync(DIRECTORY).filter((name) => name.endsWith(".sql"));
const BLOCKS = (await Promise.all(FILES.map(readBlocks))).flat();

/** The statements of a file with the columns that the module beside it declares. */
async function readBlocks(file: string): Promise<Block[]> {
  const module = await import(new URL(file.replace(/\.sql$/, ".ts"), DIRECTORY).href);
  const { columns: declared }: Statements = module.sql;
  const [preamble = "", ...blocks] = readFileSync(new URL(file, DIRECTORY), "utf8").split(/^-- name: /m);
  expect(preamble, `${file} starts with a block`).toBe("");
  expect(Object.keys(declared).sort(), file).toEqual(blocks.map((block) => block.split("\n")[0]).sort());
  return blocks.map((block) => {
    const [name = "", ...lines] = block.trim().split("\n");
    const isComment = (line: string) => line.startsWith("--");
    return {
      file,
      name,
      comment: lines.filter(isComment).join("\n"),
      text: lines
        .filter((line) => !isComment(line))
        .join("\n")
        .trim(),
      columns: declared[name] ?? {},
    };
  });
}

const { servers } = useDatabase();

/** Has Postgres parse a statement and describe its result, without running it. */
function describeResult(client: pg.Client, text: string): Promise<{ name: string; dataTypeID: number }[]> {
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

/** Column names and types, with those of a group under `group.member`. */
function flatten(columns: Columns): Record<string, string> {
  return Object.fromEntries(
    Object.entries(columns).flatMap(([name, column]) =>
      "members" in column
        ? Object.entries(column.members).map(([member, { type }]) => [`${name}.${member}`, type])
        : [[name, column.type]],
    ),
  );
}

describe("the statements of src/db", () => {
  it("exist in every file", () => {
    expect(FILES.length).toBeGreaterThan(0);
    for (const file of FILES) expect(BLOCKS.filter((block) => block.file === file).length, file).toBeGreaterThan(0);
  });

  it("the statements of src/db have unique names, because a connection prepares each name once", () => {
    const repeated = BLOCKS.filter((block, index) => BLOCKS.findIndex((other) => other.name === block.name) !== index);
    expect(repeated.map((block) => `${block.file}: ${block.name}`)).toEqual([]);
  });

  describe.each(BLOCKS)("$file $name", ({ name, comment, text, columns }) => {
    it("is one statement with a comment", () => {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(text).toMatch(/^(SELECT|INSERT|UPDATE|DELETE|WITH)\b[^;]*;$/);
      expect(comment).not.toBe("");
    });

    it("is valid on the migrated schema, with as many parameters as its comment explains", async () => {
      const client = await servers.db.connect();
      try {
        await client.query(`PREPARE ${name} AS ${text}`);
        const { rows } = await client.query<{ count: number }>(
          "SELECT cardinality(parameter_types)::int AS count FROM pg_prepared_statements WHERE name = $1",
          [name],
        );
        const numbers = new Set(Array.from(comment.matchAll(/\$(\d+) /g), ([, number]) => Number(number)));
        expect([...numbers].sort((a, b) => a - b)).toEqual(
          Array.from({ length: rows[0]?.count ?? -1 }, (_, index) => index + 1),
        );
      } finally {
        client.release(true);
      }
    });

    it("casts each parameter, so that Postgres infers no type", () => {
      expect(text.match(/\$\d+(?!\d|::)/g) ?? []).toEqual([]);
    });

    // The audit log stores the state of an entity as a whole.
    it.skipIf(name.startsWith("state_of_"))("returns the columns that its module declares", async () => {
      const client = new pg.Client({ connectionString: servers.ownerUrl });
      await client.connect();
      try {
        const fields = await describeResult(client, text);
        const { rows } = await client.query<{ types: string[] }>(
          "SELECT coalesce(array_agg(format_type(t.oid, NULL) ORDER BY t.n), '{}') AS types FROM unnest($1::oid[]) WITH ORDINALITY AS t (oid, n)",
          [fields.map((field) => field.dataTypeID)],
        );
        const types = fields.map((field, index) => [field.name, rows[0]?.types[index]]);
        expect(Object.fromEntries(types.filter(([, type]) => type !== "void"))).toEqual(flatten(columns));
      } finally {
        await client.end();
      }
    });
  });
});
