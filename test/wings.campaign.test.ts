import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { copyProject, turnsRed } from "./proof/guards/broken-copy.ts";
import { startNode } from "./support/child-process.ts";

const WINGS = ["marketplace", "transparency", "webhooks"];
const LIST = "src/open/wings.ts";
const CORE_TESTS = ["test/core/redeem/redeem.test.ts", "test/core/look-up/look-up.test.ts"];

const read = (file: string) => readFileSync(file, "utf8");

/** Takes a wing away from a copy of the project: its folder, and its name in the list of wings. */
function takeAway(directory: string, wing: string): void {
  rmSync(join(directory, "src", wing), { recursive: true });
  const file = join(directory, LIST);
  const kept = read(file)
    .split("\n")
    .filter((line) => !line.includes(`/${wing}/`));
  writeFileSync(file, kept.join("\n").replace(new RegExp(`\\bwing\\(${wing}\\),? ?`), ""));
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

it("each folder in the list of wings is one that can be removed", () => {
  const root = join(import.meta.dirname, "..");
  const named = read(join(root, LIST)).match(/(?<=\/)\w+(?=\/wing\.ts")/g) ?? [];
  expect(new Set(named)).toEqual(new Set(WINGS));
  expect(WINGS.filter((wing) => !existsSync(join(root, "src", wing)))).toEqual([]);
});
