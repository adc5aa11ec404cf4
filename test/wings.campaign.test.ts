import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, it } from "vitest";
import { copyProject, turnsRed } from "./proof/guards/broken-copy.ts";
import { startNode } from "./support/child-process.ts";

const WINGS = ["marketplace", "transparency", "webhooks"];
/** The lists of wings, one a program. */
const LISTS = "src/open/wings";
const LIST_OF_WORKERS = "workers/wings.ts";
const CORE_TESTS = ["test/core/redeem/redeem.test.ts", "test/core/look-up/look-up.test.ts"];

const read = (file: string) => readFileSync(file, "utf8");
const listFiles = (directory: string, folder: string) =>
  readdirSync(join(directory, folder)).map((name) => join(directory, folder, name));

/** Takes a wing away from a copy of the project: its folder, its workers, and its lines and names in the lists. */
function takeAway(directory: string, wing: string): void {
  rmSync(join(directory, "src", wing), { recursive: true });
  const workers = listFiles(directory, "workers").filter((file) => read(file).includes(`"../src/${wing}/`));
  for (const file of workers) rmSync(file);
  const gone = [`/${wing}/`, ...workers.map((file) => `"./${basename(file)}"`)];
  for (const file of [...listFiles(directory, LISTS), join(directory, LIST_OF_WORKERS)]) {
    const kept = read(file)
      .split("\n")
      .filter((line) => !gone.some((text) => line.includes(text)));
    writeFileSync(file, kept.join("\n").replace(new RegExp(`\\b${wing}, |(, )?\\b${wing}(?=\\])`), ""));
  }
}

it.each([
  ...WINGS.map((wing) => ({ wings: [wing], tests: [] })),
  { wings: WINGS, tests: CORE_TESTS },
])("without $wings, the service compiles and $tests.length test files of the core pass", async ({ wings, tests }) => {
  const { directory, remove } = copyProject();
  try {
    for (const wing of wings) takeAway(directory, wing);
    const project = join(directory, "tsconfig.service.json");
    writeFileSync(project, JSON.stringify({ extends: "./tsconfig.json", include: ["src", "workers"] }));
    const compiler = join(directory, "node_modules/typescript/bin/tsc");
    const { exitCode, stdout } = await startNode([compiler, "-p", project], {}, directory).ended;
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
    if (tests.length > 0) expect(await turnsRed(tests, { cwd: directory })).toBe(false);
  } finally {
    remove();
  }
});

it("each folder in the lists of wings is one that can be removed", () => {
  const root = join(import.meta.dirname, "..");
  const named = listFiles(root, LISTS).flatMap((file) => read(file).match(/(?<=\/)\w+(?=\/in-)/g) ?? []);
  expect(new Set(named)).toEqual(new Set(WINGS));
  expect(WINGS.filter((wing) => !existsSync(join(root, "src", wing)))).toEqual([]);
});
