import { globSync } from "node:fs";
import { expect, it } from "vitest";
import { splitAtGuard } from "./broken-copy.ts";
import { CODE_GUARDS } from "./code-guards.ts";

it("each listed guard in the code occurs once in its file, and its tests exist", () => {
  for (const guard of CODE_GUARDS) expect(() => splitAtGuard(guard, "."), guard.rule).not.toThrow();
  const files = new Set(CODE_GUARDS.flatMap(({ tests }) => tests));
  expect([...files].filter((file) => globSync(`${file}*`).length === 0)).toEqual([]);
});
