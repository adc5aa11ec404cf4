import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { copyProject, turnsRed } from "./proof/guards/broken-copy.ts";
import { startNode } from "./support/child-process.ts";

const WINGS = ["marketplace"];
/** The lists of wings, one a program. */
const LISTS = "src/open/wings";
const CORE_TESTS = ["test/core/redeem/redeem.test.ts", "test/core/look-up/look-up.test.ts"];

const listFiles = (directory: string, folder: string) =>
  readdirSync(join(directory, folder)).map((name) => join(directory, folder, name));

/** Takes a wing away from a copy of the project: its folder, its workers, and its names in the lists. */
function takeAway(directory: string, wing: string): void {
  rmSync(join(directory, "src", wing), { recursive: true });
  const isOfWing = (line: string) => new RegExp(`from "[./]+/${wing}/|^\\s*${wing},$`).test(line);
  for (const file of listFiles(directory, LISTS)) {
    const lines = readFileSync(file, "utf8").split("\n");
    const kept = lines.filter((line) => !isOfWing(line)).join("\n");
    writeFileSync(file, kept.replace(new RegExp(`\\b${wing}, |(, )?\\b${wing}(?=\\])`), ""));
  }
}

it.each(WINGS)("the service compiles without the wing %s, and the core's tests pass", async (wing) => {
  const { directory, remove } = copyProject();
  try {
    takeAway(directory, wing);
    const project = join(directory, "tsconfig.service.json");
    writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", include: ["src", "workers"] }));
    const compiler = join(directory, "node_modules/typescript/bin/tsc");
    const { exitCode, stdout } = await startNode([compiler, "-p", project], {}, directory).ended;
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(await turnsRed(CORE_TESTS, { cwd: directory })).toBe(false);
  } finally {
    remove();
  }
});

it("each room that the lists of wings name is one that can be taken away", () => {
  const root = join(import.meta.dirname, "..");
  const imports = listFiles(root, LISTS).flatMap(
    (file) => readFileSync(file, "utf8").match(/(?<=\/)\w+(?=\/in-)/g) ?? [],
  );
  expect(new Set(imports)).toEqual(new Set(WINGS));
  expect(WINGS.filter((wing) => !existsSync(join(root, "src", wing)))).toEqual([]);
});
