import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, expect, it } from "vitest";
import { arrayOf, integer, orNull, text } from "../../../src/platform/db/columns.ts";
import { columnsOf, Statements } from "../../../src/platform/db/statements.ts";

const directory = mkdtempSync(join(tmpdir(), "statements-"));
afterAll(() => rmSync(directory, { recursive: true }));

function load(sql: string): Statements {
  const file = join(directory, `${crypto.randomUUID()}.sql`);
  writeFileSync(file, sql);
  return new Statements(pathToFileURL(file));
}

const MOVE = "-- name: move(from_id, to_id, note?)\n-- Moves.\nSELECT $1::text, $2::text, $3::text;\n";
const DECLARED = { fromId: text, toId: text, note: orNull(text) };

it("an SQL statement takes values by name and sends them in the order of its header", () => {
  const move = load(MOVE).prepare("move", DECLARED);
  expect(move({ note: null, toId: "b", fromId: "a" })).toEqual({
    name: "move",
    text: "SELECT $1::text, $2::text, $3::text",
    values: ["a", "b", null],
  });
});

it("an SQL statement with one parameter takes its value without a name", () => {
  const find = load("-- name: find(id)\nSELECT $1::text;\n").prepare("find", { id: text });
  expect(find("a").values).toEqual(["a"]);
});

it.each([
  ["two parameters swapped in TypeScript", MOVE, { toId: text, fromId: text, note: orNull(text) }],
  ["two parameters swapped in SQL", MOVE.replace("from_id, to_id", "to_id, from_id"), DECLARED],
  ["a parameter with another name", MOVE.replace("to_id", "target_id"), DECLARED],
  ["a parameter that may be null in SQL only", MOVE.replace("to_id", "to_id?"), DECLARED],
  ["a parameter that may be null in TypeScript only", MOVE.replace("note?", "note"), DECLARED],
  ["a parameter missing in TypeScript", MOVE, { fromId: text, toId: text }],
])("an SQL statement with %s fails as soon as its module declares the statement", (_, sql, parameters) => {
  expect(() => load(sql).execute("move", parameters as typeof DECLARED)).toThrow(/^move has the parameters \(/);
});

it("prepareAll sends one array for each field of the rows, then the other values by name", () => {
  const sql = load("-- name: add(id, size?, kind, limit)\nSELECT $1::text[], $2::int[], $3::text, $4::int;\n");
  const add = sql.prepareAll("add", { id: text, size: orNull(integer) }, { kind: text, limit: integer });
  const rows = [
    { size: 1, id: "a" },
    { size: null, id: "b" },
  ];
  const [statement] = add(rows, { limit: 10, kind: "k" });
  expect(statement?.values).toEqual([["a", "b"], [1, null], "k", 10]);
  expect(add([], { limit: 10, kind: "k" })).toEqual([]);
  expect(sql.parameters.add).toEqual({
    id: arrayOf(text),
    size: arrayOf(orNull(integer)),
    kind: text,
    limit: integer,
  });
});

it("columnsOf returns one array for each field of the rows, by the field's name", () => {
  expect(
    columnsOf(
      [
        { a: 1, b: "x" },
        { a: 2, b: "y" },
      ],
      "b",
      "a",
    ),
  ).toEqual({ b: ["x", "y"], a: [1, 2] });
});
