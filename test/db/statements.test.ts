import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestServers, type TestServers } from "../support/servers.ts";

const DIRECTORY = new URL("../../src/db/", import.meta.url);

interface Block {
  file: string;
  name: string;
  comment: string;
  text: string;
}

function blocksOf(file: string): Block[] {
  const [preamble = "", ...blocks] = readFileSync(new URL(file, DIRECTORY), "utf8").split(/^-- name: /m);
  expect(preamble, `${file} begins with a block`).toBe("");
  return blocks.map((block) => {
    const [name = "", ...lines] = block.trim().split("\n");
    return {
      file,
      name,
      comment: lines.filter((line) => line.startsWith("--")).join("\n"),
      text: lines
        .filter((line) => !line.startsWith("--"))
        .join("\n")
        .trim(),
    };
  });
}

const FILES = readdirSync(DIRECTORY).filter((name) => name.endsWith(".sql"));
const BLOCKS = FILES.flatMap(blocksOf);

let servers: TestServers;

beforeAll(async () => {
  servers = await openTestServers();
});

afterAll(async () => {
  await servers.close();
});

describe("the statements of src/db", () => {
  it("are found", () => {
    expect(FILES.length).toBeGreaterThan(0);
    for (const file of FILES) expect(BLOCKS.filter((block) => block.file === file).length, file).toBeGreaterThan(0);
  });

  it("have names of their own: a connection prepares each name once", () => {
    const twice = BLOCKS.filter((block, index) => BLOCKS.findIndex((other) => other.name === block.name) !== index);
    expect(twice.map((block) => `${block.file}: ${block.name}`)).toEqual([]);
  });

  describe.each(BLOCKS)("$file $name", ({ name, comment, text }) => {
    it("is one statement with a comment that says what it guarantees", () => {
      expect(name).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(text).toMatch(/^(SELECT|INSERT|UPDATE|DELETE|WITH)\b[^;]*;$/);
      expect(comment).not.toBe("");
    });

    it("is accepted by Postgres on the migrated schema, with as many parameters as its comment explains", async () => {
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

    it("casts each parameter where it stands, so that its type is never guessed", () => {
      expect(text.match(/\$\d+(?!\d|::)/g) ?? []).toEqual([]);
    });
  });
});
