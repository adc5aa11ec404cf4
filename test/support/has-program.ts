import { spawnSync } from "node:child_process";
import { installDebianPackages, onPath } from "../../src/local/debian-packages.ts";

/** Whether a program is on PATH, after trying to install the distribution's package. Announces a failure. */
export function hasProgram(
  program: string,
  packageName = program,
  say: (line: string) => void = console.warn,
): boolean {
  if (onPath(program) === null) installDebianPackages(program, [packageName], say);
  const found = onPath(program) !== null;
  if (!found) say(`SKIPPED: ${program} is missing and cannot be installed; its tests are skipped.`);
  return found;
}

/** Whether Python has a module, after trying to install the distribution's package. Announces a failed installation. */
export function hasPythonModule(
  module: string,
  packageName: string,
  say: (line: string) => void = console.warn,
): boolean {
  const isThere = () => spawnSync("python3", ["-c", `import ${module}`]).status === 0;
  if (!isThere()) installDebianPackages(module, ["python3", packageName], say);
  const found = isThere();
  if (!found) say(`SKIPPED: Python's module ${module} is missing and cannot be installed; its tests are skipped.`);
  return found;
}
